"""One NameNode's map of blocks and a model of dictionaries, to which the same things happen."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

import numpy as np

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports, reports
from namenode_sim.blocks import model as blocks_model
from namenode_sim.blocks.model import ReplicaState, Reported, Stage
from namenode_sim.blocks.state import BlockState
from namenode_sim.edits import ops
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.blocks.block_model import Block, BlockModel, Name, Replica, Told
from tests.worlds.author import (
    FILE_DEEDS,
    Author,
    add_again,
    add_block,
    append,
    close,
    create,
    sync,
    truncate,
)
from tests.worlds.moving_deeds import PAST, plain_file, touch_past

NAMES: Final[tuple[Name, ...]] = (
    ("n1", "a"), ("n1", "b"), ("n2", "a"), ("n3", "a"), ("n4", "a"), ("n5", "a"),
)  # fmt: skip
"""One DataNode has two storages."""

DEEDS: Final = (*FILE_DEEDS, add_again, *(plain_file, create, add_block, sync, close) * 2)
WRITING: Final = (append, append, sync, close, truncate)
LIKELY: Final = ReplicaState.FINALIZED, ReplicaState.FINALIZED, ReplicaState.RBW
STATES: Final = (*LIKELY, *LIKELY, *ReplicaState)


class World:
    """The map and the model; what happens is drawn."""

    def __init__(self, chance: Random) -> None:
        self.author = Author(Random(0), Namespace.empty("hdfs"), kept_out=frozenset({PAST}))
        self.watched = Namespace.empty("hdfs")
        self.watched.watch_blocks()
        minimum, safe = chance.randint(1, 2), chance.randint(1, 4)
        limit = chance.choice((5, 1000))
        self.state = BlockState(minimum=minimum, safe_minimum=safe, postponed_limit=limit)
        self.model = BlockModel(minimum, safe, limit)
        self.now = 0.0

    def ensure(self) -> None:
        """Fail unless the map agrees with itself and with the model."""
        self.state.map.check()
        assert shown(self.state) == expected(self.model)

    def ensure_loads(self) -> None:
        loaded = BlockState()
        apply_edits.load(loaded, self.watched)
        loaded.map.check()
        followed, found = shown(self.state)["blocks"], shown(loaded)["blocks"]
        assert {n: b[:4] for n, b in found.items()} == {n: b[:4] for n, b in followed.items()}
        # The last block of an open file may have stayed complete; an image does not contain that.
        for number, block in found.items():
            assert block[4] is not Stage.COMPLETE or followed[number][4] in {
                Stage.COMPLETE,
                Stage.COMMITTED,
            }

    # ---- what happens ----

    def edits(self, chance: Random) -> None:
        self.author.random.seed(chance.random())
        for _ in range(chance.randint(1, 5)):
            self.author.step(DEEDS)
        self.catch_up()

    def goes_on_writing(self, chance: Random) -> None:
        self.author.random.seed(chance.random())
        self.author.step(WRITING)
        self.catch_up()

    def snapshots(self, chance: Random) -> None:
        """Something happens below a directory with snapshots, or to them."""
        author, random = self.author, self.author.random
        random.seed(chance.random())
        top = f"/{PAST.decode()}"
        new = author.namespace.tree.find(top) is None
        taken = list(author.namespace.snapshots.snapshottable.values())
        if not new and taken and taken[0] and random.random() < 0.4:
            author.write(ops.DeleteSnapshot(top, random.choice(taken[0]).name, author.now))
        else:
            touch_past(author, new=new)
        self.catch_up()

    def catch_up(self) -> None:
        for txid, op in self.author.log[self.watched.last_applied :]:
            changes = self.watched.apply(txid, op)
            apply_edits.apply_edit(self.state, txid, changes)
            self.model.applied = txid
            for change in changes:
                self.model.follow(change)

    def incremental(self, chance: Random) -> None:
        """Report some replicas of a DataNode."""
        name = chance.choice(NAMES)
        items = [self.drawn(chance, deletions=True) for _ in range(chance.randint(1, 4))]
        self.now += 1
        incremental_reports.receive(self.state, self.storage(name), items, self.now)
        for number, told in items:
            self.model.news(name, number, told, self.now)

    def full_report(self, chance: Random) -> None:
        """Report all replicas of a storage; most of them are as they should be."""
        name, rows = chance.choice(NAMES), dict[int, Reported]()
        for number, block in self.model.blocks.items():
            if number > 0 and chance.random() < 0.7:
                rows[number] = Reported(ReplicaState.FINALIZED, block.stamp, block.length)
        for _ in range(chance.randint(0, 3)):
            number, told = self.drawn(chance, deletions=False)
            assert isinstance(told, Reported)
            rows[number] = told
        self.now += 1
        storage, made_after = self.storage(name), self.now - chance.choice((0, 0, 3))
        # What goes for want of room depends on the order, which pieces change.
        most = 100 if self.model.postponed_limit < 100 else chance.choice((2, 100))
        for part in reports.parts(as_rows(rows, chance), most):
            differences = reports.compare(self.state, storage, part, made_after)
            for start in range(0, len(differences), 3):
                reports.settle(self.state, storage, differences, start, start + 3)
        reports.finish(self.state, storage, made_after=made_after)
        self.model.full_report(name, rows, made_after)

    def damaged(self, chance: Random) -> None:
        found = [(n, name) for n, held in self.model.replicas.items() for name in held]
        if found:
            number, name = chance.choice(found)
            mark = blocks_model.CorruptMark(blocks_model.Reason.CORRUPTION_REPORTED, None)
            self.state.mark_corrupt(self.slot(number), self.storage(name), mark)
            self.model.damaged(name, number)

    def recovery_begins(self, chance: Random) -> None:
        writing = [
            number
            for number, block in self.model.blocks.items()
            if block.stage is Stage.UNDER_CONSTRUCTION
        ]
        if writing:
            number = chance.choice(writing)
            self.state.set_stage(self.slot(number), Stage.UNDER_RECOVERY)
            block = self.model.blocks[number]
            self.model.blocks[number] = Block(
                block.file_id, block.stamp, block.length, block.expected, Stage.UNDER_RECOVERY
            )

    def registers(self, chance: Random) -> None:
        node = chance.choice(["n1", "n2", "n3"])
        self.state.registered(node)
        for name in NAMES:
            if name[0] == node and self.state.map.storages.find(*name) is not None:
                self.model.registered(name)

    def fails(self, chance: Random) -> None:
        """Let a storage fail, and perhaps come back."""
        name = chance.choice(NAMES)
        if chance.random() < 0.5:
            self.state.remove_storage(self.storage(name))
        else:
            self.state.empty_storage(self.storage(name))
        self.model.emptied(name)

    def role_changes(self, chance: Random) -> None:
        """Make the NameNode active more often than it steps down."""
        if self.state.role is blocks_model.Role.STANDBY:
            incremental_reports.activate(self.state)
            self.model.activate()
        elif chance.random() < 0.5:
            self.state.demote()
            self.model.demote()

    def orders_leave(self, chance: Random) -> None:
        name, limit = chance.choice(NAMES), chance.randint(1, 4)
        durable = TxId(self.state.applied - chance.choice((0, 1, 2, 6)))
        number = self.storage(name).number
        ordered = self.state.invalidations.take_due(number, durable, limit)
        assert ordered == self.model.orders_leave(name, durable, limit)

    def one_too_many(self, chance: Random) -> None:
        """Let an active that has too many replicas of a complete block give one up."""
        found = [
            (number, name)
            for number, held in self.model.replicas.items()
            for name in held
            if self.model.blocks[number].stage is Stage.COMPLETE
        ]
        if found and self.state.role is blocks_model.Role.ACTIVE:
            number, name = chance.choice(found)
            stamp = self.model.blocks[number].stamp
            self.state.invalidate(self.storage(name).number, number, stamp)
            self.model.order(name, number, stamp)

    def heartbeats(self, chance: Random) -> None:
        """Confirm to a DataNode which NameNode is active."""
        name = chance.choice(NAMES)
        self.storage(name).heartbeated = True
        self.model.heartbeated.add(name)

    def started(self, _chance: Random) -> None:
        """End the safe mode of the start."""
        self.state.set_starting(starting=False)
        self.model.starting = False

    # ---- draws ----

    def storage(self, name: Name) -> blocks_model.Storage:
        return self.state.add_storage(*name)

    def slot(self, number: int) -> blocks_model.Slot:
        slot = self.state.map.find(number)
        assert slot is not None
        return slot

    def drawn(self, random: Random, *, deletions: bool) -> tuple[int, Told]:
        """Draw a report that is likely to be right, about a block that is likely to be there."""
        known = list(self.model.blocks.items())
        counters = self.author.namespace.counters
        newest = counters.generation_stamp_v2
        if known and random.random() < 0.85:
            number, block = random.choice(known[-4:] if random.random() < 0.7 else known)
            stamp, length = block.stamp, block.length
        else:
            number = counters.last_block_id + random.randint(-6, 2)
            stamp, length = newest + 1, 500
        if random.random() < 0.3:
            stamp = random.choice((stamp - 1, stamp + 1, newest, newest + 1))
        if random.random() < 0.2:
            length += random.choice((-1, 1)) if length else 1
        if deletions and random.random() < 0.15:
            return number, blocks_model.Deleted(stamp)
        return number, Reported(random.choice(STATES), stamp, length)


Happening = Callable[[World, Random], None]

HAPPENINGS: Final[tuple[Happening, ...]] = (
    *(World.edits, World.incremental) * 4,
    *(World.goes_on_writing, World.full_report) * 3,
    *(World.snapshots, World.damaged, World.recovery_begins, World.registers, World.fails),
    *(World.role_changes, World.orders_leave, World.one_too_many, World.heartbeats) * 2,
    World.started,
)


def as_rows(told: dict[int, Reported], random: Random) -> reports.Rows:
    listed = list(told.items())
    random.shuffle(listed)
    return reports.in_order(
        reports.Rows(
            np.array([number for number, _ in listed], np.int64),
            np.array([one.length for _, one in listed], np.int64),
            np.array([one.stamp for _, one in listed], np.int64),
            np.array([one.state for _, one in listed], np.uint8),
        )
    )


def shown(state: BlockState) -> dict[str, Any]:
    """Return the map as plain data."""
    blocks, replicas = {}, {}
    for number, slot in state.map.items():
        block = state.map.block(slot)
        blocks[number] = block.file_id, block.stamp, block.length, block.expected, block.stage
        replicas[number] = replicas_of(state, slot)
    return {
        "blocks": blocks,
        "replicas": replicas,
        "waiting": by_block(
            (n, name_of(state, number), told) for n, number, told in state.postponed_reports
        ),
        "invalidations": sorted(
            (name_of(state, number), block_id, (stamp, cause))
            for number, block_id, stamp, cause in state.invalidations
        ),
        "seen": (state.ids.seen_stamp, state.ids.seen_id),
        "confirmed": {(one.node, one.uuid) for one in state.map.storages if one.confirmed},
        "counts": state.map.safe_counts()[:2],
    }


def by_block(waiting: Iterable[tuple[int, Name, Told]]) -> list[tuple[int, dict[Name, Told]]]:
    """Return what waits for each block; the blocks are in order, the reports of a block are not."""
    found: dict[int, dict[Name, Told]] = {}
    for number, name, told in waiting:
        found.setdefault(number, {})[name] = told
    return list(found.items())


def name_of(state: BlockState, number: blocks_model.StorageNumber) -> Name:
    storage = state.map.storages.at(number)
    return storage.node, storage.uuid


def replicas_of(state: BlockState, slot: blocks_model.Slot) -> dict[Name, Replica]:
    block, found = state.map.block(slot), {}
    for number in state.map.storages_of(slot):
        found[name_of(state, number)] = Replica(ReplicaState.FINALIZED, block.stamp, block.length)
    for number, mark in state.map.corrupt_marks(slot).items():
        found[name_of(state, number)] = Replica(ReplicaState.FINALIZED, mark.stamp, 0, mark.reason)
    if construction := state.map.find_construction(slot):
        for one in construction.locations:
            found[name_of(state, one.storage)] = Replica(one.state, one.stamp, one.length)
    return found


def expected(model: BlockModel) -> dict[str, Any]:
    """Return what ``shown`` must give."""
    whole = [
        number
        for number, block in model.blocks.items()
        if block.stage is Stage.COMPLETE and number > 0
    ]
    return {
        "blocks": {
            number: (block.file_id, block.stamp, block.length, block.expected, block.stage)
            for number, block in model.blocks.items()
        },
        "replicas": {
            number: {
                name: one
                if one.corrupt is None
                else Replica(ReplicaState.FINALIZED, one.stamp, 0, one.corrupt)
                for name, one in held.items()
            }
            for number, held in model.replicas.items()
        },
        "waiting": list(model.waiting.items()),
        "invalidations": sorted(
            (name, block_id, order)
            for name, orders in model.invalidations.items()
            for block_id, order in orders.items()
        ),
        "seen": model.seen,
        "confirmed": model.confirmed,
        "counts": (len(whole), sum(model.live(number) >= model.safe_minimum for number in whole)),
    }

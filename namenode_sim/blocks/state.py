"""All that a NameNode knows of blocks and replicas, and the single steps that change it.

It is changed in place, always within one call, by edits (``follow``), reports (``incoming``,
``reports``) and changes of the role.

See docs/reference/blocks.md#the-map.
"""

from dataclasses import replace

from journal.model import TxId
from namenode_sim.blocks import model
from namenode_sim.blocks.columns import CORRUPT, STRIPED, BlockColumns
from namenode_sim.blocks.doomed import Doomed
from namenode_sim.blocks.index import BlockIndex
from namenode_sim.blocks.invalidations import Invalidations
from namenode_sim.blocks.needed import Needed
from namenode_sim.blocks.replicas import Replicas
from namenode_sim.blocks.storages import Storages
from namenode_sim.blocks.touched import Touched
from namenode_sim.blocks.waiting import WAITING_LIMIT, Waiting
from namenode_sim.namespace.state import FIRST_BLOCK_ID, FIRST_GENERATION_STAMP


class BlockState:
    """The map of blocks.

    A committed block is complete with ``minimum`` live replicas, and a complete one safe with
    ``safe_minimum``.  ``complete`` and ``safe`` count them; striped groups count in neither.
    ``seen_*`` are the highest stamp and id that edits have shown in a block, ``given_*`` the
    highest that were given out.  ``starting``: in the safe mode of the start.  ``invalidations``
    are the replicas that storages are to delete, ``applied`` is the last edit followed.

    ``postponed`` blocks have too many replicas, or corrupt ones, and an unconfirmed storage.
    ``touched`` is None where nobody judges redundancy: on a standby, and in the safe mode of the
    start.
    """

    __slots__ = (
        "applied", "bytes_in_future", "columns", "complete", "constructions", "corrupt",
        "doomed", "given_id", "given_stamp", "index", "invalidations", "legacy_stamp",
        "legacy_stamp_limit", "minimum", "needed", "postponed", "replicas", "role", "safe",
        "safe_minimum", "seen_id", "seen_stamp", "starting", "storages", "touched", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        *,
        minimum: int = 1,
        safe_minimum: int | None = None,
        waiting_limit: int = WAITING_LIMIT,
    ) -> None:
        self.minimum = minimum
        self.safe_minimum = minimum if safe_minimum is None else safe_minimum
        if min(self.minimum, self.safe_minimum) < 1:
            raise ValueError(
                f"a block is complete with {minimum} and safe with {safe_minimum} replicas; "
                f"both must be at least 1"
            )
        self.columns = BlockColumns()
        self.index = BlockIndex()
        self.replicas = Replicas(self.columns)
        self.storages = Storages()
        self.constructions: dict[model.Slot, model.Construction] = {}
        self.corrupt: dict[model.Slot, dict[model.StorageNumber, model.CorruptMark]] = {}
        self.doomed = Doomed()
        self.needed = Needed(self.columns)
        self.postponed: dict[model.Slot, None] = {}
        self.touched: Touched | None = None
        self.invalidations = Invalidations()
        self.applied = TxId(0)
        self.waiting = Waiting(waiting_limit)
        self.role = model.Role.STANDBY
        self.starting = True
        self.complete = 0
        self.safe = 0
        self.bytes_in_future = 0
        self.seen_stamp = self.given_stamp = FIRST_GENERATION_STAMP
        self.seen_id = self.given_id = FIRST_BLOCK_ID
        self.legacy_stamp = FIRST_GENERATION_STAMP
        self.legacy_stamp_limit = 0

    # ---- blocks ----

    def add_block(
        self,
        file_id: int,
        block_id: int,
        length: int,
        stamp: int,
        expected: int,
        stage: model.Stage,
    ) -> model.Slot:
        """Note a block that edits or an image show."""
        flags = int(stage) | (STRIPED if block_id < 0 else 0)
        slot = self.columns.add(block_id, length, stamp, file_id, expected, flags)
        self.index.add(block_id, slot)
        if stage is not model.Stage.COMPLETE:
            self.constructions[slot] = model.Construction()
        self.show(block_id, stamp)
        self._tally(slot, 1)
        return slot

    def show(self, block_id: int, stamp: int) -> None:
        """Note that an edit has shown a block's id and stamp."""
        if stamp >= self.legacy_stamp_limit:
            self.seen_stamp = max(self.seen_stamp, stamp)
        self.seen_id = max(self.seen_id, block_id)

    def remove_block(self, slot: model.Slot) -> None:
        """Forget a block; an active has its replicas deleted."""
        block_id = self.columns.ids[slot]
        construction = self.constructions.get(slot, model.Construction())
        if self.role is model.Role.ACTIVE:
            for location in construction.locations:
                self.invalidate(location.storage, block_id, location.stamp)
            for number in self.replicas.storages(slot):
                if construction.at(number) is None:
                    self.invalidate(number, block_id, self._own_stamp(slot, number))
        self._tally(slot, -1)
        for number in self.replicas.storages(slot):
            self.doomed.forget(slot, number)
            self.replicas.remove(slot, self.storages.at(number))
        self.corrupt.pop(slot, None)
        self.needed.put(slot, None)
        self.postponed.pop(slot, None)
        if self.touched is not None:
            self.touched.forget(slot)
        self.constructions.pop(slot, None)
        self.index.remove(block_id)
        self.columns.release(slot)
        self.waiting.pop(block_id)

    def set_stage(self, slot: model.Slot, stage: model.Stage) -> None:
        """Move a block to a stage; one that is not complete has a construction."""
        self._tally(slot, -1)
        self.columns.set_stage(slot, stage)
        self._tally(slot, 1)
        if stage is model.Stage.COMPLETE:
            self._written(slot, self.constructions.pop(slot))
        else:
            self.constructions.setdefault(slot, model.Construction())

    def expect_replicas(self, slot: model.Slot, expected: int) -> None:
        """Note how many replicas a block is to have."""
        self.columns.expected[slot] = expected
        if self.touched is not None:
            self.touched.add(slot)

    def _written(self, slot: model.Slot, construction: model.Construction) -> None:
        """The replicas that a complete block's writer made may not all be reported yet."""
        if self.touched is not None:
            written = (one.storage for one in construction.locations)
            late = (number for number in written if not self.replicas.holds(slot, number))
            self.touched.wait_for(slot, tuple(late))

    def live(self, slot: model.Slot) -> int:
        """How many replicas of a block are not known to be corrupt."""
        return self.replicas.count(slot) - len(self.corrupt.get(slot, ()))

    def is_good(self, slot: model.Slot, number: model.StorageNumber) -> bool:
        """Whether a storage holds a replica that is not known to be corrupt."""
        return self.replicas.holds(slot, number) and number not in self.corrupt.get(slot, ())

    def _tally(self, slot: model.Slot, sign: int) -> None:
        if (
            self.columns.stage(slot) is model.Stage.COMPLETE
            and not self.columns.flags[slot] & STRIPED
        ):
            self.complete += sign
            if self.live(slot) >= self.safe_minimum:
                self.safe += sign
        if self.touched is not None and sign > 0:
            self.touched.add(slot)

    # ---- replicas ----

    def take(self, slot: model.Slot, storage: model.Storage) -> None:
        """Note a good replica; one on another storage of the same DataNode it replaces.

        A committed block is complete once it has enough of them.
        """
        self._tally(slot, -1)
        self._add_cell(slot, storage)
        mark = self.corrupt.get(slot, {}).get(storage.number)
        if mark is not None and mark.reason is model.Reason.GENSTAMP_MISMATCH:
            self._unmark(slot, storage.number)
            self.doomed.forget(slot, storage.number)
        elif mark is not None and mark.stamp is not None:  # a recovery may have changed it
            newer = replace(mark, stamp=self.columns.stamps[slot])
            self.corrupt[slot][storage.number] = newer
        self._tally(slot, 1)
        if slot in self.constructions and self.is_good(slot, storage.number):
            columns = self.columns
            self._put_location(
                slot,
                model.Location(
                    storage.number,
                    model.ReplicaState.FINALIZED,
                    columns.stamps[slot],
                    columns.lengths[slot],
                ),
            )
            self.complete_if_committed(slot)

    def complete_if_committed(self, slot: model.Slot) -> None:
        """Make a committed block complete if it has enough good replicas."""
        if self.columns.stage(slot) is model.Stage.COMMITTED and self.live(slot) >= self.minimum:
            self.set_stage(slot, model.Stage.COMPLETE)

    def _add_cell(self, slot: model.Slot, storage: model.Storage) -> None:
        if self.replicas.holds(slot, storage.number):
            return
        for other in self.storages.beside(storage):
            self._remove_cell(slot, other)
            self._drop_location(slot, other.number)
        self.replicas.add(slot, storage)

    def _remove_cell(self, slot: model.Slot, storage: model.Storage) -> None:
        if self.replicas.holds(slot, storage.number):
            self._unmark(slot, storage.number)
            self.doomed.forget(slot, storage.number)
            self.replicas.remove(slot, storage)

    def drop(self, slot: model.Slot, storage: model.Storage) -> None:
        """Note that a storage has no replica of a block, or that the one it had does not count."""
        self._tally(slot, -1)
        self._remove_cell(slot, storage)
        self._tally(slot, 1)
        self._drop_location(slot, storage.number)

    def lose(self, slot: model.Slot, storage: model.Storage) -> None:
        """Note that a replica is gone with its storage, which may come back with it."""
        self._lose_location(slot, storage.number)
        self.drop(slot, storage)

    def _lose_location(self, slot: model.Slot, number: model.StorageNumber) -> None:
        construction = self.constructions.get(slot)
        if construction is not None and construction.at(number) is not None:
            self.constructions[slot] = replace(construction, lost=construction.lost | {number})
            self._drop_location(slot, number)

    def mark_corrupt(
        self, slot: model.Slot, storage: model.Storage, mark: model.CorruptMark
    ) -> None:
        """Note that a storage's replica is corrupt."""
        self._tally(slot, -1)
        self._add_cell(slot, storage)
        self.doomed.forget(slot, storage.number)  # an order may have named another stamp
        self.corrupt.setdefault(slot, {})[storage.number] = mark
        self.columns.set_flag(slot, CORRUPT, on=True)
        self._tally(slot, 1)
        self._drop_location(slot, storage.number)

    def _unmark(self, slot: model.Slot, number: model.StorageNumber) -> None:
        marks = self.corrupt.get(slot)
        if marks is not None and marks.pop(number, None) is not None and not marks:
            del self.corrupt[slot]
            self.columns.set_flag(slot, CORRUPT, on=False)

    def doom(self, slot: model.Slot, number: model.StorageNumber, now: float) -> None:
        """Have a storage delete its replica of a block; it counts no more."""
        self.invalidate(number, self.columns.ids[slot], self._own_stamp(slot, number))
        self.doomed.add(slot, number, now)

    def _own_stamp(self, slot: model.Slot, number: model.StorageNumber) -> int:
        """The stamp of a replica itself: by another one its DataNode would not delete it."""
        mark = self.corrupt.get(slot, {}).get(number)
        own = mark.stamp if mark is not None else None
        return own if own is not None else self.columns.stamps[slot]

    def note(self, slot: model.Slot, storage: model.Storage, location: model.Location) -> None:
        """Note a replica of a block that is being written; only a finalized one has a cell."""
        known = self.constructions[slot].at(storage.number)
        if known is not None and known.newness() > location.newness():
            return
        mark = self.corrupt.get(slot, {}).get(storage.number)
        if (
            mark is not None
            and mark.reason is model.Reason.CORRUPTION_REPORTED
            and mark.stamp in {None, location.stamp}
        ):
            return  # the very replica that was found damaged
        for other in self.storages.beside(storage):
            self._remove_cell(slot, other)
            self._drop_location(slot, other.number)
        self._unmark(slot, storage.number)
        if location.state is model.ReplicaState.FINALIZED:
            self._add_cell(slot, storage)
        else:
            self._remove_cell(slot, storage)
        self._put_location(slot, location)

    def _put_location(self, slot: model.Slot, location: model.Location) -> None:
        construction = self.constructions[slot]
        others = (one for one in construction.locations if one.storage != location.storage)
        self.constructions[slot] = replace(construction, locations=(*others, location))

    def _drop_location(self, slot: model.Slot, number: model.StorageNumber) -> None:
        construction = self.constructions.get(slot)
        if construction is not None and construction.at(number) is not None:
            others = tuple(one for one in construction.locations if one.storage != number)
            self.constructions[slot] = replace(construction, locations=others)

    def expect(self, slot: model.Slot, locations: tuple[model.Location, ...]) -> None:
        """Note where a block that is being written is to be, instead of what was known.

        What was reported stays: a DataNode can be faster than the client that waits for it.
        """
        stamp, construction = self.columns.stamps[slot], self.constructions[slot]
        final = [one for one in construction.locations if one.state is model.ReplicaState.FINALIZED]
        current = [one for one in construction.locations if one.stamp == stamp]
        known = {one.storage: one for one in (*current, *final)}
        asked = tuple(known.get(one.storage, one) for one in locations)
        others = tuple(one for one in final if one not in asked)
        # A replica that fell out of a pipeline and is in the next one is not corrupt any more.
        for one in asked:
            if one.storage in self.corrupt.get(slot, ()):
                self._remove_cell(slot, self.storages.at(one.storage))
        self.constructions[slot] = replace(construction, locations=asked + others, lost=frozenset())

    def invalidate(self, number: model.StorageNumber, block_id: int, stamp: int) -> None:
        """Have a storage delete a replica, once the edits applied so far are durable."""
        self.invalidations.add(number, block_id, stamp, self.applied)

    # ---- storages ----

    def registered(self, node: str) -> None:
        """Note that a DataNode registers anew: what it lost while it was away is not known.

        Orders that it had got may be lost as well.
        """
        for storage in self.storages.nodes.get(node, ()):
            for slot in self.doomed.of(storage.number):
                stamp = self._own_stamp(slot, storage.number)
                self.invalidate(storage.number, self.columns.ids[slot], stamp)
            storage.reports = 0
            storage.confirmed = storage.heartbeated = False
            storage.recent.clear()
            self.waiting.drop_storage(storage.number)

    def empty_storage(self, storage: model.Storage) -> None:
        """Note that nothing a storage holds counts: it failed, or its DataNode is dead."""
        for slot in storage.slots[::-1]:
            self.lose(model.Slot(slot), storage)
        for slot in list(self.constructions):
            self._lose_location(slot, storage.number)
        self.waiting.drop_storage(storage.number)
        self.invalidations.drop_storage(storage.number)
        storage.reports = 0
        storage.confirmed = storage.heartbeated = False
        storage.recent.clear()

    def remove_storage(self, storage: model.Storage) -> None:
        """Forget a storage and all that it holds."""
        self.empty_storage(storage)
        for slot, construction in list(self.constructions.items()):
            if storage.number in construction.lost:  # another storage may get this number
                left = construction.lost - {storage.number}
                self.constructions[slot] = replace(construction, lost=left)
        self.storages.remove(storage)

    # ---- the role ----

    def demote(self) -> None:
        """Become a standby, which orders nothing, lets reports wait and recovers no block."""
        self.role = model.Role.STANDBY
        self.judge_nothing()
        for slot, construction in list(self.constructions.items()):
            self.constructions[slot] = model.Construction(
                construction.locations, cut=construction.cut, lost=construction.lost
            )
            if self.columns.stage(slot) is model.Stage.UNDER_RECOVERY:
                self.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)

    def judge_nothing(self) -> None:
        """Forget all orders, and what a former judgement of redundancy has found."""
        self.invalidations.clear()
        self.needed.clear()
        self.doomed.clear()
        self.postponed.clear()
        self.touched = None

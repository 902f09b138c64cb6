"""A map of blocks that is obviously right: plain dictionaries, every replica an entry.

Only the table of judgements is the product's, which has a test of its own.
"""

import math
from dataclasses import dataclass, field, replace
from typing import assert_never

from namenode_sim.blocks import model
from namenode_sim.blocks.classify_replica import Circumstances, ReplicaVerdict, classify
from namenode_sim.namespace import changes

Name = tuple[str, str]
"""A DataNode and one of its storages."""

Told = model.Reported | model.Deleted


@dataclass(frozen=True)
class Replica:
    """What one storage has of a block."""

    state: model.ReplicaState
    stamp: int | None
    length: int
    corrupt: model.Reason | None = None

    @property
    def counts(self) -> bool:
        return self.corrupt is not None or self.state is model.ReplicaState.FINALIZED


@dataclass(frozen=True)
class Block:
    """One block, without its replicas."""

    file_id: int
    stamp: int
    length: int
    expected: int
    stage: model.Stage


@dataclass
class BlockModel:
    """What the map must say."""

    minimum: int
    safe_minimum: int
    postponed_limit: int
    blocks: dict[int, Block] = field(default_factory=dict)
    replicas: dict[int, dict[Name, Replica]] = field(default_factory=dict)
    waiting: dict[int, dict[Name, Told]] = field(default_factory=dict)
    invalidations: dict[Name, dict[int, tuple[int, int]]] = field(default_factory=dict)
    recent: dict[Name, dict[int, tuple[float, int]]] = field(default_factory=dict)
    reports: dict[Name, int] = field(default_factory=dict)
    heartbeated: set[Name] = field(default_factory=set)
    confirmed: set[Name] = field(default_factory=set)
    gone: dict[tuple[Name, int], int] = field(default_factory=dict)
    """The stamps of replicas that were reported to be gone."""
    doubted: dict[Name, float] = field(default_factory=dict)
    """When such a replica was last reported to have come."""
    role: model.Role = model.Role.STANDBY
    starting: bool = True
    applied: int = 0
    seen: tuple[int, int] = (1000, 2**30)
    given: tuple[int, int] = (1000, 2**30)

    # ---- edits ----

    def follow(self, change: changes.BlockChange) -> None:  # noqa: C901 - flat dispatch
        match change:
            case changes.BlockAdded():
                stage = model.Stage.COMPLETE if change.complete else model.Stage.UNDER_CONSTRUCTION
                self.blocks[change.block_id] = Block(
                    change.file_id, change.stamp, change.length, change.expected, stage
                )
                self.replicas[change.block_id] = {}
                self._shown(change.block_id, change.stamp)
                self.take_in_postponed(change.block_id)
            case changes.BlockSettled():
                self._settled(change)
            case changes.BlocksGone():
                for number in change.block_ids:
                    self._gone(number)
            case changes.BlocksMoved():
                for number in change.block_ids:
                    block = self.blocks[number]
                    self.blocks[number] = replace(
                        block, file_id=change.file_id, expected=change.expected
                    )
            case changes.ReplicationSet():
                for number in change.block_ids:
                    self.blocks[number] = replace(self.blocks[number], expected=change.expected)
            case changes.StampGiven():
                self.given = max(self.given[0], change.stamp), self.given[1]
                self._active_has_seen()
            case changes.BlockIdGiven():
                self.given = self.given[0], max(self.given[1], change.block_id)
                self._active_has_seen()
            case changes.BlockCut():
                pass
            case _:
                assert_never(change)

    def _shown(self, block_id: int, stamp: int) -> None:
        self.seen = max(self.seen[0], stamp), max(self.seen[1], block_id)

    def _active_has_seen(self) -> None:
        if self.role is model.Role.ACTIVE:
            self.seen = self.given

    def _settled(self, change: changes.BlockSettled) -> None:
        number, block = change.block_id, self.blocks[change.block_id]
        held = self.replicas[number]
        if block.stage is model.Stage.COMPLETE:
            if change.complete and (block.stamp, block.length) == (change.stamp, change.length):
                return
            block = replace(block, stage=model.Stage.UNDER_CONSTRUCTION)
            for name, replica in held.items():
                if replica.counts:
                    self.invalidations.get(name, {}).pop(number, None)
        elif block.stage is model.Stage.COMMITTED and not change.complete:
            block = replace(block, stage=model.Stage.UNDER_CONSTRUCTION)
        if change.stamp != block.stamp:
            for name in [n for n, r in held.items() if not r.corrupt and r.stamp != change.stamp]:
                del held[name]
        self._shown(number, change.stamp)
        self.blocks[number] = block = replace(block, stamp=change.stamp, length=change.length)
        if change.complete:
            self._completed(number, block)
        self.take_in_postponed(number)

    def _completed(self, number: int, block: Block) -> None:
        held, again = self.replicas[number], []
        for name, replica in list(held.items()):
            fits = (replica.stamp, replica.length) == (block.stamp, block.length)
            if replica.corrupt or replica.state is not model.ReplicaState.FINALIZED or fits:
                continue
            assert replica.stamp is not None
            again.append((name, model.Reported(replica.state, replica.stamp, replica.length)))
            del held[name]
        stage = model.Stage.COMPLETE if self.role is model.Role.STANDBY else model.Stage.COMMITTED
        self.blocks[number] = replace(block, stage=stage)
        self._complete_if_enough(number)
        for name, told in again:
            self.told(name, number, told)

    def _complete_if_enough(self, number: int) -> None:
        block, held = self.blocks[number], self.replicas[number]
        if block.stage is model.Stage.COMMITTED and self.live(number) >= self.minimum:
            block = self.blocks[number] = replace(block, stage=model.Stage.COMPLETE)
        if block.stage is model.Stage.COMPLETE:
            for name in [name for name, replica in held.items() if not replica.counts]:
                del held[name]

    def live(self, number: int) -> int:
        return sum(one.counts and one.corrupt is None for one in self.replicas[number].values())

    def _gone(self, number: int) -> None:
        block = self.blocks.pop(number)
        for name, replica in self.replicas.pop(number).items():
            if self.role is model.Role.ACTIVE:
                stamp = block.stamp if replica.stamp is None else replica.stamp
                self.order(name, number, stamp)
        self.waiting.pop(number, None)

    def order(self, name: Name, number: int, stamp: int) -> None:
        orders = self.invalidations.setdefault(name, {})
        orders.pop(number, None)
        orders[number] = stamp, self.applied

    def orders_leave(self, name: Name, durable: int, limit: int) -> list[tuple[int, int]]:
        """Return what a heartbeat's answer orders, and forget it."""
        orders = self.invalidations.get(name, {})
        due = [(number, of[0]) for number, of in orders.items() if of[1] <= durable][:limit]
        for number, _ in due:
            del orders[number]
        return due

    # ---- reports ----

    def is_from_future(self, number: int, stamp: int) -> bool:
        unknown = number not in self.blocks and number > self.seen[1]
        return stamp > self.seen[0] or unknown

    def told(self, name: Name, number: int, told: Told, *, full: bool = False) -> None:
        if number < 0:
            return
        waits = self.waiting.get(number, {}).get(name)
        reports = isinstance(waits, model.Reported) and isinstance(told, model.Reported)
        if reports and not full and _age(told) < _age(waits):  # type: ignore[arg-type]
            return
        self.forget(number, name)
        future = self.is_from_future(number, told.stamp)
        if isinstance(told, model.Deleted):
            if future and self.role is model.Role.STANDBY:
                self._wait(number, name, told)
                return
            self.invalidations.get(name, {}).pop(number, None)
            self.replicas.get(number, {}).pop(name, None)
            return
        block = self.blocks.get(number)
        own = self.replicas.get(number, {}).get(name)
        newer = block is not None and own is not None and not own.corrupt
        around = Circumstances(
            self.role,
            future,
            self.invalidations.get(name, {}).get(number, (None,))[0] == told.stamp,
            newer and not full and own is not None and own.stamp == block.stamp,  # type: ignore[union-attr]
            self.starting and full and self.reports.get(name, 0) == 0,
        )
        stored = (
            None
            if block is None
            else model.BlockInfo(
                number, block.length, block.stamp, block.file_id, block.expected, block.stage
            )
        )
        verdict = classify(stored, told, around)
        if verdict is ReplicaVerdict.WAIT:
            self._wait(number, name, told)
        elif verdict is ReplicaVerdict.INVALIDATE:
            self.order(name, number, told.stamp)
        elif verdict is not ReplicaVerdict.IGNORE:
            self._put(number, name, told, verdict)

    def _put(
        self, number: int, name: Name, told: model.Reported, verdict: ReplicaVerdict | model.Reason
    ) -> None:
        held = self.replicas[number]
        own = held.get(name)
        new = Replica(told.state, told.stamp, told.length)
        if isinstance(verdict, model.Reason):
            new = replace(new, corrupt=verdict)
        elif own is not None and own.corrupt is None and verdict is ReplicaVerdict.NOTE:
            if _age(own) > _age(new):
                return
        elif own is not None and own.corrupt is not None:
            if verdict is ReplicaVerdict.TAKE and own.corrupt is not model.Reason.GENSTAMP_MISMATCH:
                if own.stamp is not None:
                    held[name] = replace(own, stamp=told.stamp)
                return
            damaged = own.corrupt is model.Reason.CORRUPTION_REPORTED
            if verdict is ReplicaVerdict.NOTE and damaged and own.stamp in {None, told.stamp}:
                return
        for other in [one for one in held if one[0] == name[0]]:
            del held[other]
        held[name] = new
        self._complete_if_enough(number)

    def damaged(self, name: Name, number: int) -> None:
        held = self.replicas[number]
        for other in [one for one in held if one[0] == name[0]]:
            del held[other]
        held[name] = Replica(
            model.ReplicaState.FINALIZED, None, 0, model.Reason.CORRUPTION_REPORTED
        )

    def news(self, name: Name, number: int, told: Told, now: float) -> None:
        waits = self.waiting.get(number, {}).get(name)
        if isinstance(told, model.Deleted) and told.stamp < self._stamp_at(name, number, waits):
            self._doubt(name, now)
            return
        recent = self.recent.setdefault(name, {})
        _, newest = recent.get(number, (now, told.stamp))
        recent[number] = now, max(newest, told.stamp)
        own = self.replicas.get(number, {}).get(name)
        if isinstance(told, model.Deleted):
            self._went(name, number, told.stamp)
        elif (
            told.state is model.ReplicaState.FINALIZED
            and number in self.blocks
            and (own is None or own.corrupt is not None or not own.counts)
            and told.stamp <= self.gone.get((name, number), -1)
        ):
            self._doubt(name, now)
        self.told(name, number, told)

    def _doubt(self, name: Name, now: float) -> None:
        self.confirmed.discard(name)
        self.doubted[name] = now

    def _stamp_at(self, name: Name, number: int, waits: Told | None) -> int:
        """Return the newest stamp that a storage is known to have of a block."""
        if waits is not None:
            return waits.stamp if isinstance(waits, model.Reported) else -1
        own = self.replicas.get(number, {}).get(name)
        if own is None:
            return -1
        return self.blocks[number].stamp if own.stamp is None else own.stamp

    def _went(self, name: Name, number: int, stamp: int) -> None:
        self.gone[name, number] = max(stamp, self.gone.get((name, number), -1))

    def full_report(self, name: Name, rows: dict[int, model.Reported], made_after: float) -> None:
        recent = self.recent.get(name, {})
        newer = {number: stamp for number, (at, stamp) in recent.items() if at >= made_after}
        held = {n for n, of in self.replicas.items() if name in of and of[name].counts}
        waits = {number for number, of in self.waiting.items() if name in of}
        for number in (held | waits) - rows.keys() - newer.keys():
            self.forget(number, name)
            if number in held:
                self._went(name, number, self.blocks[number].stamp)
                del self.replicas[number][name]
        for number in sorted(rows):
            if number not in newer or rows[number].stamp > newer[number]:
                self.told(name, number, rows[number], full=True)
        self.reports[name] = self.reports.get(name, 0) + 1
        if self.doubted.get(name, -math.inf) < made_after:
            self.confirmed |= self.heartbeated & {name}

    # ---- waiting ----

    def _wait(self, number: int, name: Name, told: Told) -> None:
        self.waiting.setdefault(number, {})[name] = told
        while sum(map(len, self.waiting.values())) > self.postponed_limit:
            del self.waiting[next(iter(self.waiting))]

    def forget(self, number: int, name: Name) -> None:
        self.waiting.get(number, {}).pop(name, None)
        if not self.waiting.get(number, True):
            del self.waiting[number]

    def take_in_postponed(self, number: int) -> None:
        for name, told in self.waiting.pop(number, {}).items():
            self.told(name, number, told)

    # ---- storages and the role ----

    def registered(self, name: Name) -> None:
        self.reports[name] = 0
        self.confirmed.discard(name)
        self.heartbeated.discard(name)
        self.recent.pop(name, None)
        for number in list(self.waiting):
            self.forget(number, name)

    def emptied(self, name: Name) -> None:
        self.registered(name)
        self.invalidations.pop(name, None)
        for held in self.replicas.values():
            held.pop(name, None)

    def activate(self) -> None:
        self.role = model.Role.ACTIVE
        self.invalidations.clear()
        self.confirmed.clear()
        self.heartbeated.clear()
        waiting, self.waiting = self.waiting, {}
        for number, reports in waiting.items():
            for name, told in reports.items():
                self.told(name, number, told)
        self.seen = max(self.seen[0], self.given[0]), max(self.seen[1], self.given[1])

    def demote(self) -> None:
        self.role = model.Role.STANDBY
        self.invalidations.clear()
        for number, block in self.blocks.items():
            if block.stage is model.Stage.UNDER_RECOVERY:
                self.blocks[number] = replace(block, stage=model.Stage.UNDER_CONSTRUCTION)


def _age(replica: Replica) -> tuple[int, bool]:
    assert replica.stamp is not None
    return replica.stamp, replica.state is model.ReplicaState.FINALIZED

"""Reports about single replicas: judged, and carried out.

See docs/reference/blocks.md#incremental-reports.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from namenode_sim.blocks.classify_replica import Circumstances, ReplicaVerdict, classify
from namenode_sim.blocks.model import (
    CorruptMark,
    Deleted,
    Location,
    Reason,
    ReplicaState,
    Reported,
    Role,
    Storage,
    newness,
)
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.blocks.state import BlockState

RECENT_SECONDS: Final = 600.0
RECENT_LIMIT: Final = 100_000


def receive(
    state: BlockState, storage: Storage, items: Iterable[tuple[int, ReplicaReport]], now: float
) -> None:
    """Take in an incremental report: what came to a storage, or went, in this order.

    After one that may be late the storage is doubted until a full report.
    """
    for block_id, told in items:
        if isinstance(told, Deleted) and _is_of_older(state, storage, block_id, told.stamp):
            storage.doubt(now)
            continue
        _remember(storage, block_id, told.stamp, now)
        if isinstance(told, Deleted):
            if state.map.find(block_id) is not None:
                note_gone(storage, block_id, told.stamp, now)
        elif told.state is ReplicaState.FINALIZED:
            storage.scheduled.take(now)
            if _may_be_late(state, storage, block_id, told.stamp):
                storage.doubt(now)
        take_in(state, storage, block_id, told)


def _remember(storage: Storage, block_id: int, stamp: int, now: float) -> None:
    """Note that this is newer than a full report which is still on its way."""
    recent = storage.recent
    before = recent.pop(block_id, None)
    recent[block_id] = now, stamp if before is None else max(before[1], stamp)
    oldest = next(iter(recent))
    while recent[oldest][0] < now - RECENT_SECONDS or len(recent) > RECENT_LIMIT:
        del recent[oldest]
        oldest = next(iter(recent))


def note_gone(storage: Storage, block_id: int, stamp: int, now: float) -> None:
    """Note that a replica is no longer there, so that late news of it is doubted.

    The newest stamp counts: late news of an older one has it ordered to be deleted, and the answer
    to that says nothing of late news of the newer one.
    """
    gone = storage.gone
    before = gone.pop(block_id, None)
    gone[block_id] = now, stamp if before is None else max(before[1], stamp)
    while next(iter(gone.values()))[0] < now - RECENT_SECONDS or len(gone) > RECENT_LIMIT:
        del gone[next(iter(gone))]


def _may_be_late(state: BlockState, storage: Storage, block_id: int, stamp: int) -> bool:
    """Return whether this reports a replica that was reported to be gone since.

    The bad schedule: the call that reported the replica timed out, its DataNode reported it again
    and deleted it, and the NameNode takes the first call last.
    """
    slot = state.map.find(block_id)
    if slot is None or state.map.is_good(slot, storage.number):
        return False
    return block_id in storage.gone and stamp <= storage.gone[block_id][1]


def _is_of_older(state: BlockState, storage: Storage, block_id: int, stamp: int) -> bool:
    """Return whether a deletion is of an older replica than the one that was reported since.

    The bad schedule: the call that reported the deletion timed out and was repeated, the DataNode
    got a new copy and reported it, and the NameNode takes the first call last.
    """
    waiting = state.postponed_reports.waiting(block_id, storage.number)
    if isinstance(waiting, Reported):
        return stamp < waiting.stamp
    slot = state.map.find(block_id)
    known = None if slot is None else state.map.stamp_on(slot, storage.number)
    return waiting is None and known is not None and stamp < known


def _is_overtaken(state: BlockState, storage: Storage, block_id: int, told: ReplicaReport) -> bool:
    """Return whether a report of a newer state of the same replica waits already."""
    match told, state.postponed_reports.waiting(block_id, storage.number):
        case Reported(), Reported() as waiting:
            return newness(waiting) > newness(told)
        case _:
            return False


def take_in(
    state: BlockState,
    storage: Storage,
    block_id: int,
    told: ReplicaReport,
    *,
    of_full_report: bool = False,
) -> None:
    """Judge one report and do what follows.  Reports about units of striped groups do not count.

    What a first full report says is never late: nothing newer is known of its storage.  An
    incremental report is, where one of a newer state of the replica waits already.
    """
    if block_id < 0:
        return
    if not of_full_report and _is_overtaken(state, storage, block_id, told):
        return
    state.postponed_reports.forget(block_id, storage.number)
    slot = state.map.find(block_id)
    from_future = state.map.is_from_future(block_id, told.stamp)
    if isinstance(told, Deleted):
        _take_in_deletion(state, storage, block_id, told, from_future=from_future)
        return
    stored = None if slot is None else state.map.block(slot)
    around = Circumstances(
        state.role,
        from_future=from_future,
        invalidated=state.invalidations.has(storage.number, block_id, told.stamp),
        superseded=slot is not None
        and not of_full_report
        and state.map.holds_current(slot, storage),
        starting=state.is_starting() and of_full_report and storage.reports == 0,
    )
    if from_future and around.starting and state.role is Role.ACTIVE:
        state.count_future_bytes(told.length)
    _carry_out(state, storage, block_id, told, classify(stored, told, around))


def _carry_out(
    state: BlockState,
    storage: Storage,
    block_id: int,
    told: Reported,
    verdict: ReplicaVerdict | Reason,
) -> None:
    slot = state.map.find(block_id)
    match verdict:
        case ReplicaVerdict.IGNORE:
            pass
        case ReplicaVerdict.WAIT:
            _postpone(state, storage, block_id, told)
        case ReplicaVerdict.INVALIDATE:
            state.invalidate(storage.number, block_id, told.stamp)
        case ReplicaVerdict.TAKE:
            assert slot is not None
            state.take(slot, storage)
        case ReplicaVerdict.NOTE:
            assert slot is not None
            location = Location(storage.number, told.state, told.stamp, told.length)
            state.note(slot, storage, location)
        case Reason():
            assert slot is not None
            state.mark_corrupt(slot, storage, CorruptMark(verdict, told.stamp))
        case _:
            assert_never(verdict)


def _postpone(state: BlockState, storage: Storage, block_id: int, told: ReplicaReport) -> None:
    for number in state.postponed_reports.put(block_id, storage.number, told):
        state.map.storages.at(number).needs_full_report = True


def _take_in_deletion(
    state: BlockState, storage: Storage, block_id: int, told: Deleted, *, from_future: bool
) -> None:
    if from_future and state.role is Role.STANDBY:
        _postpone(state, storage, block_id, told)
        return
    state.invalidations.forget(storage.number, block_id)
    slot = state.map.find(block_id)
    if slot is not None:
        state.drop(slot, storage)


def take_in_postponed(state: BlockState, block_id: int) -> None:
    """Judge what waits for a block that edits have changed; some may have to go on waiting."""
    for number, told in state.postponed_reports.pop(block_id):
        take_in(state, state.map.storages.at(number), block_id, told)


def activate(state: BlockState) -> None:
    """Become the active, whose edits are all there are: nothing waits any more.

    What storages held before does not prove that they hold it now.
    """
    state.activate()
    for block_id, number, told in state.postponed_reports.pop_all():
        take_in(state, state.map.storages.at(number), block_id, told)

"""Reports about single replicas: judged, and carried out.

See docs/reference/blocks.md#incremental-reports.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from namenode_sim.blocks import model
from namenode_sim.blocks.judge import Circumstances, Stored, Verdict, judge
from namenode_sim.blocks.state import BlockState
from namenode_sim.blocks.waiting import Told

RECENT_SECONDS: Final = 600.0
RECENT_LIMIT: Final = 100_000


def receive(
    state: BlockState, storage: model.Storage, items: Iterable[tuple[int, Told]], now: float
) -> None:
    """Take in an incremental report: what came to a storage, or went, in this order."""
    for block_id, told in items:
        _remember(storage, block_id, told.stamp, now)
        if isinstance(told, model.Deleted):
            if state.index.get(block_id) is not None:
                note_gone(storage, block_id, told.stamp, now)
        elif told.state is model.ReplicaState.FINALIZED:
            storage.scheduled.take(now)
            if _may_be_late(state, storage, block_id, told.stamp):
                storage.confirmed, storage.needs_full_report = False, True
                storage.doubted = now
        take_in(state, storage, block_id, told)


def _remember(storage: model.Storage, block_id: int, stamp: int, now: float) -> None:
    """Note that this is newer than a full report which is still on its way."""
    recent = storage.recent
    before = recent.pop(block_id, None)
    recent[block_id] = now, stamp if before is None else max(before[1], stamp)
    oldest = next(iter(recent))
    while recent[oldest][0] < now - RECENT_SECONDS or len(recent) > RECENT_LIMIT:
        del recent[oldest]
        oldest = next(iter(recent))


def note_gone(storage: model.Storage, block_id: int, stamp: int, now: float) -> None:
    """Note that a replica is no longer there, so that late news of it is doubted."""
    gone = storage.gone
    gone.pop(block_id, None)
    gone[block_id] = now, stamp
    while next(iter(gone.values()))[0] < now - RECENT_SECONDS or len(gone) > RECENT_LIMIT:
        del gone[next(iter(gone))]


def _may_be_late(state: BlockState, storage: model.Storage, block_id: int, stamp: int) -> bool:
    """Whether this says that a replica has come of which was told that it is gone.

    The bad schedule: the call that told of the replica timed out, its DataNode told it again and
    deleted it, and the NameNode takes the first call last.
    """
    slot = state.index.get(block_id)
    if slot is None or state.replicas.holds(slot, storage.number):
        return False
    return block_id in storage.gone and stamp <= storage.gone[block_id][1]


def take_in(
    state: BlockState,
    storage: model.Storage,
    block_id: int,
    told: Told,
    *,
    of_full_report: bool = False,
) -> None:
    """Judge one report and do what follows.  Reports about units of striped groups do not count.

    What a first full report says is never late: nothing newer is known of its storage.
    """
    if block_id < 0:
        return
    state.waiting.forget(block_id, storage.number)
    slot = state.index.get(block_id)
    from_future = is_from_future(state, block_id, told.stamp)
    if isinstance(told, model.Deleted):
        _deleted(state, storage, block_id, told, from_future=from_future)
        return
    stored = None if slot is None else _stored(state, slot)
    around = Circumstances(
        state.role,
        from_future=from_future,
        invalidated=state.invalidations.has(storage.number, block_id, told.stamp),
        superseded=slot is not None and not of_full_report and _holds_now(state, slot, storage),
        starting=state.starting and of_full_report and storage.reports == 0,
    )
    if from_future and around.starting and state.role is model.Role.ACTIVE:
        state.bytes_in_future += told.length
    _carry_out(state, storage, block_id, told, judge(stored, told, around))


def is_from_future(state: BlockState, block_id: int, stamp: int) -> bool:
    """Whether a replica is newer than all blocks that edits have shown here.

    A stamp may have been given out before an edit shows the block that it is for.
    """
    if stamp < state.legacy_stamp_limit:
        return stamp > state.legacy_stamp
    if stamp > state.seen_stamp:
        return True
    return block_id > state.seen_id and state.index.get(block_id) is None


def _stored(state: BlockState, slot: model.Slot) -> Stored:
    columns = state.columns
    return Stored(columns.stage(slot), columns.stamps[slot], columns.lengths[slot])


def _holds_now(state: BlockState, slot: model.Slot, storage: model.Storage) -> bool:
    """Whether a storage is known to hold the stamp that a block has now."""
    construction = state.constructions.get(slot)
    location = None if construction is None else construction.at(storage.number)
    if location is not None:
        return location.stamp == state.columns.stamps[slot]
    return state.is_good(slot, storage.number)


def _carry_out(
    state: BlockState,
    storage: model.Storage,
    block_id: int,
    told: model.Reported,
    verdict: Verdict | model.Reason,
) -> None:
    slot = state.index.get(block_id)
    match verdict:
        case Verdict.IGNORE:
            pass
        case Verdict.WAIT:
            _wait(state, storage, block_id, told)
        case Verdict.INVALIDATE:
            state.invalidate(storage.number, block_id, told.stamp)
        case Verdict.TAKE:
            assert slot is not None
            state.take(slot, storage)
        case Verdict.NOTE:
            assert slot is not None
            location = model.Location(storage.number, told.state, told.stamp, told.length)
            state.note(slot, storage, location)
        case model.Reason():
            assert slot is not None
            state.mark_corrupt(slot, storage, model.CorruptMark(verdict, told.stamp))
        case _:
            assert_never(verdict)


def _wait(state: BlockState, storage: model.Storage, block_id: int, told: Told) -> None:
    for number in state.waiting.put(block_id, storage.number, told):
        state.storages.at(number).needs_full_report = True


def _deleted(
    state: BlockState,
    storage: model.Storage,
    block_id: int,
    told: model.Deleted,
    *,
    from_future: bool,
) -> None:
    if from_future and state.role is model.Role.STANDBY:
        _wait(state, storage, block_id, told)
        return
    state.invalidations.forget(storage.number, block_id)
    slot = state.index.get(block_id)
    if slot is not None:
        state.drop(slot, storage)


def judge_waiting(state: BlockState, block_id: int) -> None:
    """Judge what waits for a block that edits have changed; some may have to go on waiting."""
    for number, told in state.waiting.pop(block_id):
        take_in(state, state.storages.at(number), block_id, told)


def activate(state: BlockState) -> None:
    """Become the active, whose edits are all there are: nothing waits any more.

    What storages held before does not prove that they hold it now.
    """
    state.role = model.Role.ACTIVE
    state.judge_nothing()
    for storage in state.storages:
        storage.confirmed = storage.heartbeated = False
    for block_id, number, told in state.waiting.pop_all():
        take_in(state, state.storages.at(number), block_id, told)
    state.seen_stamp = max(state.seen_stamp, state.given_stamp)
    state.seen_id = max(state.seen_id, state.given_id)

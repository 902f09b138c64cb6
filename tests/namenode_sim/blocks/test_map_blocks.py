"""How blocks come into the map, change their stage, and leave it without a trace."""

from collections.abc import Callable
from typing import Final

import pytest

from namenode_sim.blocks import incremental_reports, model
from namenode_sim.blocks.block_ids import BlockIds
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.recheck_queue import DeleteHint, Recheck
from namenode_sim.blocks.state import BlockState
from namenode_sim.namespace.changes import BlockChange, BlocksGone, BlocksMoved, ReplicationSet
from namenode_sim.namespace.state import FIRST_BLOCK_ID, FIRST_GENERATION_STAMP, Counters
from tests.namenode_sim.blocks import test_reports
from tests.namenode_sim.blocks.test_reports import FINALIZED, B, a_map, added, after, told, written

NEW: Final = FIRST_BLOCK_ID + 1


def slot_of(state: BlockState, block_id: int = B) -> model.Slot:
    slot = state.map.find(block_id)
    assert slot is not None
    return slot


# ---- how many replicas make a block complete and safe ----


@pytest.mark.parametrize(("minimum", "safe"), [(0, None), (0, 1), (1, 0), (-1, 2)])
def test_no_block_is_complete_or_safe_without_a_replica(minimum: int, safe: int | None) -> None:
    with pytest.raises(ValueError, match="both must be at least 1"):
        BlockState(minimum=minimum, safe_minimum=safe)


SAFE_WITH: Final = {
    "as many as a complete one": (1, None, 1),
    "as many as a complete one that has two": (2, None, 2),
    "more than a complete one": (1, 2, 2),
    "fewer than a complete one": (2, 1, 1),
}
"""The minimum, the safe minimum, and how many replicas a safe block has."""


@pytest.mark.parametrize(("minimum", "given", "needs"), SAFE_WITH.values(), ids=SAFE_WITH)
def test_a_block_is_safe_with_so_many_replicas(minimum: int, given: int | None, needs: int) -> None:
    state = BlockState(minimum=minimum, safe_minimum=given)
    after(state, written())
    safe = [state.map.safe_counts()[1]]
    for node in ("n1", "n2"):
        told(state, state.add_storage(node, "a"), (B, model.Reported(FINALIZED, 1001, 700)))
        safe.append(state.map.safe_counts()[1])
    assert safe == [int(count >= needs) for count in range(3)]


def test_corrupt_replicas_make_no_block_safe() -> None:
    state, one, other = a_map(*written())
    for storage in (one, other):
        told(state, storage, (B, model.Reported(FINALIZED, 1001, 700)))
    slot = slot_of(state)
    found = [(state.map.live(slot), state.map.safe_counts()[1])]
    for storage in (one, other):
        state.mark_corrupt(slot, storage, model.CorruptMark(model.Reason.CORRUPTION_REPORTED, 1001))
        found.append((state.map.live(slot), state.map.safe_counts()[1]))
    assert found == [(2, 1), (1, 1), (0, 0)]


# ---- ids and stamps ----

FRESH: Final = {
    "the first stamp of all": (FIRST_BLOCK_ID, FIRST_GENERATION_STAMP, False),
    "a stamp after it": (FIRST_BLOCK_ID, FIRST_GENERATION_STAMP + 1, True),
    "an id after the first": (NEW, FIRST_GENERATION_STAMP, True),
    "an id after the first, with the lowest stamp": (NEW, 0, True),
    "a stamp that is impossible": (FIRST_BLOCK_ID, -1, False),
}


@pytest.mark.parametrize(("block_id", "stamp", "is_new"), FRESH.values(), ids=FRESH)
def test_to_a_map_without_blocks_all_is_new_but_the_first_stamp_and_id(
    block_id: int, stamp: int, *, is_new: bool
) -> None:
    assert BlockState().map.is_from_future(block_id, stamp) is is_new


def test_a_block_is_shown_by_its_own_id_and_stamp() -> None:
    state = BlockState()
    state.add_block(test_reports.FILE, NEW + 5, NEW + 7, NEW + 6, 3, model.Stage.COMPLETE)
    assert (state.ids.seen_id, state.ids.seen_stamp) == (NEW + 5, NEW + 6)


SHOWN: Final = {
    "higher ones": (NEW, 2500, NEW, 2500),
    "a lower id": (NEW - 9, 2500, NEW - 1, 2500),
    "a lower stamp of the new kind": (NEW, 2001, NEW, 2002),
    "the last stamp of the old kind": (NEW, 1999, NEW, 2002),
}


@pytest.mark.parametrize(("block_id", "stamp", "seen_id", "seen_stamp"), SHOWN.values(), ids=SHOWN)
def test_what_edits_have_shown_only_rises(
    block_id: int, stamp: int, seen_id: int, seen_stamp: int
) -> None:
    ids = BlockIds()
    ids.load_legacy(Counters(generation_stamp_v1_limit=2000))
    ids.show(FIRST_BLOCK_ID, 2002)
    ids.show(block_id, stamp)
    assert (ids.seen_id, ids.seen_stamp) == (seen_id, seen_stamp)


@pytest.mark.parametrize(("stamp", "seen"), [(1999, 1000), (2000, 2000)], ids=["old", "new"])
def test_a_stamp_below_the_limit_is_of_the_old_kind_and_shows_nothing(
    stamp: int, seen: int
) -> None:
    ids = BlockIds()
    ids.load_legacy(Counters(generation_stamp_v1_limit=2000))
    ids.show(NEW, stamp)
    assert ids.seen_stamp == seen


@pytest.mark.parametrize(("block_id", "complete"), [(-16, 0), (-1, 0), (0, 1), (1, 1)])
def test_striped_groups_have_ids_below_zero_and_do_not_count(block_id: int, complete: int) -> None:
    state, *_ = a_map(*written(block_id))
    state.map.check()
    assert state.map.safe_counts()[:2] == (complete, 0)


# ---- stages ----


def test_a_block_that_is_not_complete_has_a_construction() -> None:
    state, *_ = a_map(*written())
    slot = slot_of(state)
    state.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)
    state.map.check()
    state.cut_block(slot, model.Cut(300, 1002, B))
    construction = state.map.construction(slot)
    state.set_stage(slot, model.Stage.UNDER_RECOVERY)
    state.map.check()
    assert state.map.construction(slot) is construction
    assert construction == model.Construction(cut=model.Cut(300, 1002, B))


def test_of_a_block_that_was_just_written_the_replicas_that_are_not_reported_are_awaited() -> None:
    state, one, other = a_map(*added())
    state.rechecks.start()
    told(state, one, (B, model.Reported(FINALIZED, 1001, 700)))
    told(state, other, (B, model.Reported(test_reports.RBW, 1001, 0)))
    state.set_stage(slot_of(state), model.Stage.COMPLETE)
    assert state.rechecks.pop() == Recheck(slot_of(state), None, (other.number,))
    assert state.rechecks.pop() is None


@pytest.mark.parametrize("judged", [False, True], ids=["nobody judges", "somebody judges"])
def test_another_number_of_replicas_has_a_block_judged_where_somebody_judges(
    *, judged: bool
) -> None:
    state, *_ = a_map(*written(), *written(B + 1))
    if judged:
        state.rechecks.start()
    after(state, [ReplicationSet((B,), 5), BlocksMoved((B + 1,), test_reports.FILE + 1, 7)])
    slots = [slot_of(state, number) for number in (B, B + 1)]
    assert [state.map.block(slot).expected for slot in slots] == [5, 7]
    found = [state.rechecks.pop() for _ in range(3)]
    assert found == ([*(Recheck(slot, None, ()) for slot in slots), None] if judged else [None] * 3)


# ---- the end of a block ----


def test_an_active_has_each_replica_of_a_block_that_is_gone_deleted_by_its_own_stamp() -> None:
    """One is final with a newer stamp, one is being written, one is corrupt."""
    state, one, other = a_map(*added(B, 1002))
    third, fourth = state.add_storage("n3", "a"), state.add_storage("n4", "a")
    incremental_reports.activate(state)
    told(state, one, (B, model.Reported(FINALIZED, 1003, 700)))
    told(state, other, (B, model.Reported(test_reports.RBW, 1002, 0)))
    told(state, third, (B, model.Reported(test_reports.RBW, 1001, 0)))
    state.mark_corrupt(
        slot_of(state), fourth, model.CorruptMark(model.Reason.CORRUPTION_REPORTED, None)
    )
    after(state, [BlocksGone((B,))])
    state.map.check()
    assert test_reports.orders(state) == {
        ("n1", B): 1003,
        ("n2", B): 1002,
        ("n3", B): 1001,
        ("n4", B): 1002,
    }


def everywhere(state: BlockState) -> model.Slot:
    """Add a block of which there is a note in every part of the map."""
    slot = slot_of(state)
    for number, storage in enumerate(state.map.storages):
        if number:
            told(state, storage, (B, model.Reported(FINALIZED, 1001, 700)))
    state.order_deletion(slot, model.StorageNumber(1), now=1.0)
    mark = model.CorruptMark(model.Reason.CORRUPTION_REPORTED, 1001)
    state.mark_corrupt(slot, state.map.storages.at(model.StorageNumber(2)), mark)
    state.needed.put(slot, Priority.LOW)
    state.rechecks.postpone(slot)
    state.rechecks.start()
    state.rechecks.hint(slot, DeleteHint("n1", "n2"))
    state.rechecks.wait_for(slot, (model.StorageNumber(0),))
    return slot


@pytest.mark.parametrize("replicas", [3, 5])
@pytest.mark.parametrize("edits", [added, written], ids=["being written", "complete"])
def test_nothing_is_left_of_a_block_that_is_gone(
    edits: Callable[[], list[BlockChange]], replicas: int
) -> None:
    state, *_ = a_map(*edits())
    for number in range(3, replicas + 1):
        state.add_storage(f"n{number}", "a")
    slot = everywhere(state)
    state.map.check()
    assert state.rechecks.is_started()
    after(state, [BlocksGone((B,))])
    state.map.check()
    assert (len(state.rechecks), state.rechecks.pop()) == (0, None)
    assert [len(storage.slots) for storage in state.map.storages] == [0] * replicas
    assert state.map.safe_counts()[:2] == (0, 0)
    after(state, written(B + 1))
    assert slot_of(state, B + 1) == slot
    state.map.check()
    assert state.rechecks.pop() == Recheck(slot, None, ())


def test_what_waits_for_a_block_goes_with_it() -> None:
    state, one, _ = a_map(*written())
    told(state, one, (B, model.Reported(test_reports.RBW, 1002, 700)))
    assert len(state.postponed_reports) == 1
    after(state, [BlocksGone((B,))])
    assert len(state.postponed_reports) == 0


# ---- a standby ----


def test_a_standby_recovers_no_block_and_leaves_the_rest_of_a_construction() -> None:
    """One block is committed, one is being recovered and to be cut, one is being written."""
    state, one, _ = a_map(*added(), *added(B + 1), *added(B + 2))
    incremental_reports.activate(state)
    after(state, test_reports.closed())
    place = model.Location(one.number, test_reports.RBW, 1001, 0)
    plain = model.Construction((place,), cut=model.Cut(300, 1002, B + 1))
    for number in (B + 1, B + 2):
        slot = slot_of(state, number)
        state.note(slot, one, place)
        state.cut_block(slot, model.Cut(300, 1002, B + 1))
    state.note_recovery(slot_of(state, B + 1), 1002, 5.0, frozenset({one.number}))
    state.set_stage(slot_of(state, B + 1), model.Stage.UNDER_RECOVERY)
    state.demote()
    state.map.check()
    assert [test_reports.stage_of(state, number) for number in (B, B + 1, B + 2)] == [
        model.Stage.COMMITTED,
        model.Stage.UNDER_CONSTRUCTION,
        model.Stage.UNDER_CONSTRUCTION,
    ]
    assert [state.map.construction(slot_of(state, number)) for number in (B + 1, B + 2)] == [
        plain,
        plain,
    ]


@pytest.mark.parametrize("becomes", ["standby", "active"])
def test_a_change_of_the_role_forgets_what_was_judged(becomes: str) -> None:
    state, *_ = a_map(*written())
    state.add_storage("n3", "a")
    incremental_reports.activate(state)
    slot = everywhere(state)
    if becomes == "standby":
        state.demote()
    else:
        incremental_reports.activate(state)
    state.map.check()
    assert (test_reports.orders(state), list(state.map.pending_deletions)) == ({}, [])
    assert (state.needed.priority(slot), list(state.rechecks.postponed)) == (None, [])
    assert not state.rechecks.is_started()

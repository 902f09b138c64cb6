"""How blocks come into the map, change their stage, and leave it without a trace."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from namenode_sim.blocks import incoming
from namenode_sim.blocks.check import check
from namenode_sim.blocks.model import (
    Construction,
    CorruptMark,
    Cut,
    Location,
    Reason,
    Reported,
    Slot,
    Stage,
    StorageNumber,
)
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.state import BlockState
from namenode_sim.blocks.touched import Touch, Touched
from namenode_sim.namespace.changes import BlockChange, BlocksGone, BlocksMoved, ReplicationSet
from namenode_sim.namespace.state import FIRST_BLOCK_ID, FIRST_GENERATION_STAMP
from tests.namenode_sim.blocks.test_reports import (
    FILE,
    FINALIZED,
    RBW,
    B,
    a_map,
    added,
    after,
    closed,
    orders,
    stage_of,
    told,
    written,
)

NEW: Final = FIRST_BLOCK_ID + 1


def slot_of(state: BlockState, block_id: int = B) -> Slot:
    slot = state.index.get(block_id)
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
    safe = [state.safe]
    for node in ("n1", "n2"):
        told(state, state.storages.add(node, "a"), (B, Reported(FINALIZED, 1001, 700)))
        safe.append(state.safe)
    assert safe == [int(count >= needs) for count in range(3)]


def test_corrupt_replicas_make_no_block_safe() -> None:
    state, one, other = a_map(*written())
    for storage in (one, other):
        told(state, storage, (B, Reported(FINALIZED, 1001, 700)))
    slot = slot_of(state)
    found = [(state.live(slot), state.safe)]
    for storage in (one, other):
        state.mark_corrupt(slot, storage, CorruptMark(Reason.CORRUPTION_REPORTED, 1001))
        found.append((state.live(slot), state.safe))
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
    assert incoming.is_from_future(BlockState(), block_id, stamp) is is_new


def test_a_block_is_shown_by_its_own_id_and_stamp() -> None:
    state = BlockState()
    state.add_block(FILE, NEW + 5, NEW + 7, NEW + 6, 3, Stage.COMPLETE)
    assert (state.seen_id, state.seen_stamp) == (NEW + 5, NEW + 6)


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
    state = BlockState()
    state.legacy_stamp_limit, state.seen_stamp = 2000, 2002
    state.show(block_id, stamp)
    assert (state.seen_id, state.seen_stamp) == (seen_id, seen_stamp)


@pytest.mark.parametrize(("stamp", "seen"), [(1999, 1000), (2000, 2000)], ids=["old", "new"])
def test_a_stamp_below_the_limit_is_of_the_old_kind_and_shows_nothing(
    stamp: int, seen: int
) -> None:
    state = BlockState()
    state.legacy_stamp_limit = 2000
    state.show(NEW, stamp)
    assert state.seen_stamp == seen


@pytest.mark.parametrize(("block_id", "complete"), [(-16, 0), (-1, 0), (0, 1), (1, 1)])
def test_striped_groups_have_ids_below_zero_and_do_not_count(block_id: int, complete: int) -> None:
    state, *_ = a_map(*written(block_id))
    check(state)
    assert (state.complete, state.safe) == (complete, 0)


# ---- stages ----


def test_a_block_that_is_not_complete_has_a_construction() -> None:
    state, *_ = a_map(*written())
    slot = slot_of(state)
    state.set_stage(slot, Stage.UNDER_CONSTRUCTION)
    check(state)
    construction = Construction(cut=Cut(300, 1002, B))
    state.constructions[slot] = construction
    state.set_stage(slot, Stage.UNDER_RECOVERY)
    check(state)
    assert state.constructions[slot] is construction


def test_of_a_block_that_was_just_written_the_replicas_that_are_not_reported_are_awaited() -> None:
    state, one, other = a_map(*added())
    state.touched = Touched()
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, other, (B, Reported(RBW, 1001, 0)))
    state.set_stage(slot_of(state), Stage.COMPLETE)
    assert state.touched.pop() == Touch(slot_of(state), None, (other.number,))
    assert state.touched.pop() is None


@pytest.mark.parametrize("judged", [False, True], ids=["nobody judges", "somebody judges"])
def test_another_number_of_replicas_has_a_block_judged_where_somebody_judges(
    *, judged: bool
) -> None:
    state, *_ = a_map(*written(), *written(B + 1))
    state.touched = touched = Touched() if judged else None
    expected = state.columns.expected
    after(state, [ReplicationSet((B,), 5), BlocksMoved((B + 1,), FILE + 1, 7)])
    assert [expected[slot_of(state, number)] for number in (B, B + 1)] == [5, 7]
    if touched is not None:
        assert [touched.pop(), touched.pop(), touched.pop()] == [
            Touch(slot_of(state), None, ()),
            Touch(slot_of(state, B + 1), None, ()),
            None,
        ]


# ---- the end of a block ----


def test_an_active_has_each_replica_of_a_block_that_is_gone_deleted_by_its_own_stamp() -> None:
    """One is final with a newer stamp, one is being written, one is corrupt."""
    state, one, other = a_map(*added(B, 1002))
    third, fourth = state.storages.add("n3", "a"), state.storages.add("n4", "a")
    incoming.activate(state)
    told(state, one, (B, Reported(FINALIZED, 1003, 700)))
    told(state, other, (B, Reported(RBW, 1002, 0)))
    told(state, third, (B, Reported(RBW, 1001, 0)))
    state.mark_corrupt(slot_of(state), fourth, CorruptMark(Reason.CORRUPTION_REPORTED, None))
    after(state, [BlocksGone((B,))])
    check(state)
    assert orders(state) == {("n1", B): 1003, ("n2", B): 1002, ("n3", B): 1001, ("n4", B): 1002}


def everywhere(state: BlockState) -> Slot:
    """A block of which there is a note in every part of the map."""
    slot = slot_of(state)
    for number, storage in enumerate(state.storages):
        if number:
            told(state, storage, (B, Reported(FINALIZED, 1001, 700)))
    state.doom(slot, StorageNumber(1), now=1.0)
    mark = CorruptMark(Reason.CORRUPTION_REPORTED, 1001)
    state.mark_corrupt(slot, state.storages.at(StorageNumber(2)), mark)
    state.needed.put(slot, Priority.LOW)
    state.postponed[slot] = None
    state.touched = Touched()
    state.touched.hint(slot, "n1")
    state.touched.wait_for(slot, (StorageNumber(0),))
    return slot


@pytest.mark.parametrize("replicas", [3, 5])
@pytest.mark.parametrize("edits", [added, written], ids=["being written", "complete"])
def test_nothing_is_left_of_a_block_that_is_gone(
    edits: Callable[[], list[BlockChange]], replicas: int
) -> None:
    state, *_ = a_map(*edits())
    for number in range(3, replicas + 1):
        state.storages.add(f"n{number}", "a")
    slot = everywhere(state)
    check(state)
    assert state.touched is not None
    after(state, [BlocksGone((B,))])
    check(state)
    assert (len(state.touched), state.touched.pop()) == (0, None)
    assert [len(storage.slots) for storage in state.storages] == [0] * replicas
    assert (state.complete, state.safe) == (0, 0)
    after(state, written(B + 1))
    assert slot_of(state, B + 1) == slot
    check(state)
    assert state.touched.pop() == Touch(slot, None, ())


def test_what_waits_for_a_block_goes_with_it() -> None:
    state, one, _ = a_map(*written())
    told(state, one, (B, Reported(RBW, 1002, 700)))
    assert len(state.waiting) == 1
    after(state, [BlocksGone((B,))])
    assert len(state.waiting) == 0


# ---- a standby ----


def test_a_standby_recovers_no_block_and_leaves_the_rest_of_a_construction() -> None:
    """One block is committed, one is being recovered and to be cut, one is being written."""
    state, one, _ = a_map(*added(), *added(B + 1), *added(B + 2))
    incoming.activate(state)
    after(state, closed())
    place = Location(one.number, RBW, 1001, 0)
    plain = Construction((place,), cut=Cut(300, 1002, B + 1))
    recovered = replace(
        plain, recovery_stamp=1002, recovery_began=5.0, tried=frozenset({one.number})
    )
    for number in (B + 1, B + 2):
        slot = slot_of(state, number)
        state.constructions[slot] = recovered if number == B + 1 else plain
    state.set_stage(slot_of(state, B + 1), Stage.UNDER_RECOVERY)
    state.demote()
    check(state)
    assert [stage_of(state, number) for number in (B, B + 1, B + 2)] == [
        Stage.COMMITTED,
        Stage.UNDER_CONSTRUCTION,
        Stage.UNDER_CONSTRUCTION,
    ]
    assert [state.constructions[slot_of(state, number)] for number in (B + 1, B + 2)] == [
        plain,
        plain,
    ]


@pytest.mark.parametrize("becomes", ["standby", "active"])
def test_a_change_of_the_role_forgets_what_was_judged(becomes: str) -> None:
    state, *_ = a_map(*written())
    state.storages.add("n3", "a")
    incoming.activate(state)
    slot = everywhere(state)
    if becomes == "standby":
        state.demote()
    else:
        incoming.activate(state)
    check(state)
    assert (orders(state), list(state.doomed), state.postponed) == ({}, [], {})
    assert (state.needed.priority(slot), state.touched) == (None, None)

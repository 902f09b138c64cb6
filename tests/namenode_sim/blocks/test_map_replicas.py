"""Which replicas of a block the map knows: reported, corrupt, to be deleted, or being written."""

from collections.abc import Callable
from typing import Final

import pytest

from namenode_sim.blocks import incremental_reports, model
from namenode_sim.blocks.state import BlockState
from tests.namenode_sim.blocks import test_reports
from tests.namenode_sim.blocks.test_map_blocks import slot_of
from tests.namenode_sim.blocks.test_reports import FINALIZED, RBW, B, a_map, added, told, written

DAMAGED, OTHER_STAMP = model.Reason.CORRUPTION_REPORTED, model.Reason.GENSTAMP_MISMATCH
WHOLE: Final = model.Reported(FINALIZED, 1001, 700)

Place = tuple[int, model.ReplicaState, int, int]
"""A storage's number, and the state, stamp and length of what it has."""


def places(state: BlockState, block_id: int = B) -> list[Place]:
    locations = state.map.construction(slot_of(state, block_id)).locations
    return [(one.storage, one.state, one.stamp, one.length) for one in locations]


def holding(state: BlockState) -> list[int]:
    return [int(number) for number in state.map.storages_of(slot_of(state))]


# ---- good replicas ----

FORGIVEN: Final = {
    model.Reason.GENSTAMP_MISMATCH: True,
    model.Reason.SIZE_MISMATCH: False,
    model.Reason.INVALID_STATE: False,
    model.Reason.CORRUPTION_REPORTED: False,
}


@pytest.mark.parametrize(("reason", "forgiven"), FORGIVEN.items(), ids=lambda one: str(one))
def test_a_good_replica_takes_the_place_of_one_with_a_wrong_stamp(
    reason: model.Reason, *, forgiven: bool
) -> None:
    """It was to be deleted by the wrong stamp, and stays then."""
    state, one, _ = a_map(*written())
    slot = slot_of(state)
    state.mark_corrupt(slot, one, model.CorruptMark(reason, 1000))
    state.order_deletion(slot, one.number, now=1.0)
    state.take(slot, one)
    state.map.check()
    assert (test_reports.good(state), test_reports.corrupt(state)) == (
        (["n1"], []) if forgiven else ([], [reason])
    )
    assert list(state.map.pending_deletions) == ([] if forgiven else [(slot, one.number)])


def test_of_two_wrong_stamps_one_is_forgiven() -> None:
    state, one, other = a_map(*written())
    slot = slot_of(state)
    for storage in (one, other):
        state.mark_corrupt(slot, storage, model.CorruptMark(OTHER_STAMP, 1000))
    state.take(slot, one)
    state.map.check()
    assert list(state.map.corrupt_marks(slot)) == [other.number]


def test_a_good_replica_that_is_to_go_is_still_to_go_when_it_is_reported_again() -> None:
    state, one, _ = a_map(*written())
    slot = slot_of(state)
    told(state, one, (B, WHOLE))
    state.order_deletion(slot, one.number, now=1.0)
    state.invalidations.clear()  # the order has left
    told(state, one, (B, WHOLE))
    assert list(state.map.pending_deletions) == [(slot, one.number)]


def test_a_damaged_replica_of_a_committed_block_completes_nothing() -> None:
    state, one, _ = a_map(*added())
    incremental_reports.activate(state)
    test_reports.after(state, test_reports.closed())
    slot = slot_of(state)
    state.mark_corrupt(slot, one, model.CorruptMark(DAMAGED, 1001))
    told(state, one, (B, WHOLE))
    assert (test_reports.corrupt(state), places(state)) == ([DAMAGED], [])


# ---- corrupt replicas ----


def test_a_replica_that_is_found_corrupt_is_no_longer_to_go_by_another_stamp() -> None:
    state, one, _ = a_map(*written())
    slot = slot_of(state)
    told(state, one, (B, WHOLE))
    state.order_deletion(slot, one.number, now=1.0)
    state.mark_corrupt(slot, one, model.CorruptMark(OTHER_STAMP, 1000))
    state.map.check()
    assert list(state.map.pending_deletions) == []


OWN: Final = {
    "a good one": (None, 1001),
    "a corrupt one": (model.CorruptMark(OTHER_STAMP, 1000), 1000),
    "a corrupt one whose stamp was not told": (model.CorruptMark(DAMAGED, None), 1001),
}


@pytest.mark.parametrize(("mark", "stamp"), OWN.values(), ids=OWN)
def test_a_replica_is_to_go_by_its_own_stamp(mark: model.CorruptMark | None, stamp: int) -> None:
    state, one, _ = a_map(*written())
    slot = slot_of(state)
    told(state, one, (B, WHOLE))
    if mark is not None:
        state.mark_corrupt(slot, one, mark)
    state.order_deletion(slot, one.number, now=1.0)
    assert (test_reports.orders(state), list(state.map.pending_deletions)) == (
        {("n1", B): stamp},
        [(slot, one.number)],
    )


def test_a_replica_that_is_found_corrupt_is_not_being_written_any_more() -> None:
    state, one, other = a_map(*added())
    for storage in (one, other):
        told(state, storage, (B, model.Reported(RBW, 1001, 0)))
    state.mark_corrupt(slot_of(state), one, model.CorruptMark(DAMAGED, 1001))
    state.map.check()
    assert places(state) == [(other.number, RBW, 1001, 0)]


# ---- replicas that are being written ----

NEWER: Final = {
    "the same again, longer": (RBW, 1001, 0, RBW, 1001, 5, True),
    "its DataNode began anew": (RBW, 1001, 5, test_reports.RWR, 1001, 5, True),
    "it is final": (RBW, 1001, 5, FINALIZED, 1001, 5, True),
    "it was final": (FINALIZED, 1001, 5, RBW, 1001, 5, False),
    "it is final again, longer": (FINALIZED, 1001, 5, FINALIZED, 1001, 6, True),
    "it is written again with a newer stamp": (FINALIZED, 1001, 5, RBW, 1002, 5, True),
    "it was written with an older stamp": (RBW, 1002, 5, FINALIZED, 1001, 5, False),
}
"""Two reports about one storage, and whether the second one counts."""


@pytest.mark.parametrize(
    ("state_before", "stamp_before", "length_before", "replica", "stamp", "length", "counts"),
    NEWER.values(),
    ids=NEWER,
)
def test_the_newest_replica_of_a_storage_counts(
    state_before: model.ReplicaState,
    stamp_before: int,
    length_before: int,
    replica: model.ReplicaState,
    stamp: int,
    length: int,
    *,
    counts: bool,
) -> None:
    state, one, _ = a_map(*added())
    slot, before = slot_of(state), (state_before, stamp_before, length_before)
    for found in (before, (replica, stamp, length)):
        state.note(slot, one, model.Location(one.number, *found))
        state.map.check()
    kept = (replica, stamp, length) if counts else before
    assert places(state) == [(one.number, *kept)]
    assert holding(state) == ([one.number] if kept[0] is FINALIZED else [])


REWRITTEN: Final = {
    "the replica that was damaged": (model.CorruptMark(DAMAGED, 1002), 1002, False),
    "a replica of any stamp was damaged": (model.CorruptMark(DAMAGED, None), 1002, False),
    "a newer one than the damaged": (model.CorruptMark(DAMAGED, 1001), 1002, True),
    "a newer one than that with a wrong stamp": (model.CorruptMark(OTHER_STAMP, 1001), 1002, True),
    "one with the stamp that was wrong": (model.CorruptMark(OTHER_STAMP, 1002), 1002, True),
    "one whose length was wrong": (model.CorruptMark(model.Reason.SIZE_MISMATCH, 1002), 1002, True),
}
"""What is corrupt, the stamp that is reported then, and whether that replica counts."""


@pytest.mark.parametrize("replica", [RBW, FINALIZED], ids=["being written", "final"])
@pytest.mark.parametrize(("mark", "stamp", "counts"), REWRITTEN.values(), ids=REWRITTEN)
def test_a_damaged_replica_stays_corrupt_until_it_is_rewritten_with_another_stamp(
    mark: model.CorruptMark, stamp: int, replica: model.ReplicaState, *, counts: bool
) -> None:
    state, one, _ = a_map(*added(B, 1002))
    incremental_reports.activate(state)
    state.mark_corrupt(slot_of(state), one, mark)
    told(state, one, (B, model.Reported(replica, stamp, 7)))
    assert test_reports.corrupt(state) == ([] if counts else [mark.reason])
    assert places(state) == ([(one.number, replica, stamp, 7)] if counts else [])


@pytest.mark.parametrize("first", [RBW, FINALIZED], ids=["first being written", "first final"])
@pytest.mark.parametrize("second", [RBW, FINALIZED], ids=["then being written", "then final"])
def test_a_datanode_writes_a_block_on_the_last_of_its_storages_that_tells_of_it(
    first: model.ReplicaState, second: model.ReplicaState
) -> None:
    state, one, other = a_map(*added())
    beside = state.add_storage("n1", "b")
    for storage, replica in ((other, RBW), (one, first), (beside, second)):
        told(state, storage, (B, model.Reported(replica, 1001, 0)))
    assert places(state) == [(other.number, RBW, 1001, 0), (beside.number, second, 1001, 0)]
    assert holding(state) == ([beside.number] if second is FINALIZED else [])


def test_a_corrupt_replica_takes_the_place_of_one_being_written_beside_it() -> None:
    state, one, _ = a_map(*added(B, 1002))
    beside = state.add_storage("n1", "b")
    incremental_reports.activate(state)
    told(state, one, (B, model.Reported(RBW, 1002, 0)))
    told(state, beside, (B, model.Reported(RBW, 1001, 0)))
    assert (places(state), holding(state)) == ([], [beside.number])


# ---- where a block is to be written ----

EXPECTED: Final = {
    "told of this stamp": ([(0, RBW, 1002, 5)], [0], [(0, RBW, 1002, 5)]),
    "told of another stamp": ([(0, RBW, 1003, 5)], [0], [(0, RBW, 1002, 0)]),
    "told of a final replica": ([(0, FINALIZED, 1003, 5)], [0], [(0, FINALIZED, 1003, 5)]),
    "nothing told": ([], [1, 0], [(1, RBW, 1002, 0), (0, RBW, 1002, 0)]),
    "another one, of this stamp": ([(0, RBW, 1002, 5)], [1], [(1, RBW, 1002, 0)]),
    "another one, final": (
        [(0, FINALIZED, 1002, 5)],
        [1],
        [(1, RBW, 1002, 0), (0, FINALIZED, 1002, 5)],
    ),
    "one of each": (
        [(0, FINALIZED, 1002, 5), (1, RBW, 1002, 6), (2, FINALIZED, 1003, 7)],
        [2, 1],
        [(2, FINALIZED, 1003, 7), (1, RBW, 1002, 6), (0, FINALIZED, 1002, 5)],
    ),
}
"""What was reported of which storages, where it is expected with stamp 1002, and what is known
then.
"""


@pytest.mark.parametrize(("before", "asked", "then"), EXPECTED.values(), ids=EXPECTED)
def test_what_was_told_of_a_new_pipeline_stays(
    before: list[Place], asked: list[int], then: list[Place]
) -> None:
    state, one, other = a_map(*added(B, 1002))
    storages = [one, other, state.add_storage("n3", "a")]
    slot = slot_of(state)
    for place in before:
        storage = storages[place[0]]
        state.note(slot, storage, model.Location(storage.number, *place[1:]))
    expected = [model.Location(storages[number].number, RBW, 1002, 0) for number in asked]
    state.expect(slot, tuple(expected))
    state.map.check()
    assert places(state) == then


# ---- storages that are emptied, or reported anew ----


def with_three_blocks() -> tuple[BlockState, model.Storage, model.Storage]:
    """Three complete blocks on both storages, one block being written, and a report that waits."""
    state, one, other = a_map(
        *written(), *written(B + 1), *written(B + 2), *added(B + 3), *added(B + 4)
    )
    for storage in (one, other):
        told(state, storage, *((B + number, WHOLE) for number in range(3)))
        told(state, storage, (B + 3, model.Reported(RBW, 1001, 0)))
        told(state, storage, (B + 9, WHOLE))
        state.invalidate(storage.number, B - 9, 900)
        storage.reports, storage.confirmed, storage.heartbeated = 4, True, True
    return state, one, other


GONE: Final[dict[str, Callable[[BlockState, model.Storage], None]]] = {
    "emptied": BlockState.empty_storage,
    "removed": BlockState.remove_storage,
}


@pytest.mark.parametrize("goes", GONE.values(), ids=GONE)
def test_nothing_counts_that_a_storage_had_which_is_gone(
    goes: Callable[[BlockState, model.Storage], None],
) -> None:
    state, one, other = with_three_blocks()
    before = state.map.construction(slot_of(state, B + 4))
    goes(state, one)
    state.map.check()
    assert [test_reports.good(state, B + number) for number in range(3)] == [["n2"]] * 3
    assert (len(one.slots), len(other.slots)) == (0, 3)
    assert places(state, B + 3) == [(other.number, RBW, 1001, 0)]
    assert state.map.construction(slot_of(state, B + 4)) == before
    assert [number for _, number, _ in state.postponed_reports] == [other.number]
    assert test_reports.orders(state) == {("n2", B - 9): 900}
    assert (one.reports, one.confirmed, one.heartbeated, one.recent) == (0, False, False, {})
    assert (other.reports, other.confirmed, other.heartbeated) == (4, True, True)
    assert (state.map.storages.find("n1", "a") is None) == (goes is GONE["removed"])


def test_a_datanode_that_registers_anew_still_has_its_replicas_and_has_told_nothing() -> None:
    state, one, other = with_three_blocks()
    doomed: list[model.Slot] = [slot_of(state, B + number) for number in (0, 1)]
    for slot in doomed:
        state.order_deletion(slot, one.number, now=1.0)
    state.mark_corrupt(doomed[1], one, model.CorruptMark(OTHER_STAMP, 1000))
    state.order_deletion(doomed[1], one.number, now=2.0)
    state.invalidations.clear()  # the orders have left
    state.registered("n1")
    state.map.check()
    assert test_reports.orders(state) == {("n1", B): 1001, ("n1", B + 1): 1000}
    assert [test_reports.good(state, B + number) for number in range(3)] == [
        ["n1", "n2"],
        ["n2"],
        ["n1", "n2"],
    ]
    assert places(state, B + 3) == [(n.number, RBW, 1001, 0) for n in (one, other)]
    assert [number for _, number, _ in state.postponed_reports] == [other.number]
    assert (one.reports, one.confirmed, one.heartbeated, one.recent) == (0, False, False, {})
    assert (other.reports, other.confirmed, other.heartbeated) == (4, True, True)

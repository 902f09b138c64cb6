"""Full reports: which rows count, their pieces and steps, and what stays next to them."""

from itertools import pairwise

import pytest

from namenode_sim.blocks import incremental_reports, reports
from namenode_sim.blocks.model import Deleted, Reason, ReplicaState, Reported
from namenode_sim.namespace.changes import BlockSettled, StampGiven
from tests.namenode_sim.blocks import test_reports
from tests.namenode_sim.blocks.test_reports import FINALIZED, RBW, B, a_map, rows, told, written

STORED, GONE = Reported(FINALIZED, 1001, 700), Deleted(1001)

POSSIBLE = {
    "a replica without bytes": (B, 0, 1001, FINALIZED),
    "the longest length": (B, 2**48 - 1, 1001, FINALIZED),
    "the lowest stamp": (B, 700, 0, FINALIZED),
    "the last state": (B, 700, 1001, ReplicaState.TEMPORARY),
}


@pytest.mark.parametrize("row", POSSIBLE.values(), ids=POSSIBLE.keys())
def test_a_row_at_the_edge_of_what_is_possible_counts(row: tuple[int, int, int, int]) -> None:
    assert len(reports.in_order(rows(row))) == 1


def test_of_rows_that_are_in_order_and_share_an_id_the_newest_stamp_counts() -> None:
    ordered = reports.in_order(rows((7, 5, 1, 0), (9, 5, 3, 0), (9, 5, 4, 0)))
    assert (ordered.ids.tolist(), ordered.stamps.tolist()) == ([7, 9], [1, 4])


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("ids", [[], [-5, 3, 4, 9]], ids=["no row", "four rows"])
def test_the_pieces_of_a_report_have_each_row_once_and_cover_every_id_once(
    ids: list[int], most: int
) -> None:
    pieces = list(reports.parts(rows(*((number, 5, 1, 0) for number in ids)), most))
    assert [number for piece in pieces for number in piece.rows.ids.tolist()] == ids
    for piece in pieces:
        assert len(piece.rows) <= most
        assert all(piece.low <= number < piece.high for number in piece.rows.ids.tolist())
    assert (pieces[0].low, pieces[-1].high) == (-(2**63), 2**63)
    assert all(piece.high == following.low for piece, following in pairwise(pieces))


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_a_report_in_pieces_leaves_what_it_lists_and_drops_what_it_lacks(most: int) -> None:
    """Half of the blocks are listed, so that each piece ends before a block that is missing."""
    held = list(range(B, B + 8))
    listed, lacking = held[::2], held[1::2]
    state, one, _ = a_map(*(change for number in held for change in written(number)))
    told(state, one, *((number, Reported(FINALIZED, 1001, 700)) for number in held))
    whole = reports.in_order(rows(*((number, 700, 1001, FINALIZED) for number in listed)))
    same, absent = 0, list[int]()
    for piece in reports.parts(whole, most):
        found = reports.compare(state, one, piece, made_after=1.0)
        reports.settle(state, one, found, 0, len(found))
        same += found.same
        absent += found.absent
    state.map.check()
    assert (same, absent) == (len(listed), lacking)
    assert [number for number in held if test_reports.good(state, number)] == listed


@pytest.mark.parametrize("step", [1, 2, 3, 4, 6])
def test_each_difference_is_settled_once_in_steps_of_any_size(step: int) -> None:
    """Three blocks are missing; three replicas from the future add their lengths to a sum."""
    state, one, _ = a_map(*(change for number in range(3) for change in written(B + number)))
    incremental_reports.activate(state)
    told(state, one, *((B + number, Reported(FINALIZED, 1001, 700)) for number in range(3)))
    future = rows(*((B + 10 + number, 10**number, 2000, FINALIZED) for number in range(3)))
    (whole,) = reports.parts(future)
    found = reports.compare(state, one, whole, made_after=1.0)
    assert len(found) == 6
    for start in range(0, len(found), step):
        reports.settle(state, one, found, start, start + step)
    state.map.check()
    assert state.map.safe_counts()[2] == 111
    assert [test_reports.good(state, B + number) for number in range(3)] == [[], [], []]


NEWS = {
    "a new replica as the map has it": (False, (B, 700, 1001, FINALIZED), ["n1"], 0),
    "a known replica as the map has it": (True, (B, 700, 1001, FINALIZED), ["n1"], 0),
    "a known replica that is still from the future": (True, (B, 700, 1002, RBW), ["n1"], 1),
    "a known replica that is gone": (True, None, [], 0),
}


@pytest.mark.parametrize(("held", "row", "has", "waits"), NEWS.values(), ids=NEWS.keys())
def test_a_full_report_takes_the_place_of_what_waits_from_its_storage(
    *, held: bool, row: tuple[int, int, int, int] | None, has: list[str], waits: int
) -> None:
    """A standby lets the report of a newer stamp wait, then the full report comes."""
    state, one, _ = a_map(*written())
    if held:
        told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, one, (B, Reported(RBW, 1002, 700)))
    assert len(state.postponed_reports) == 1
    test_reports.reported(state, one, *([] if row is None else [row]), made_after=1.0)
    assert (test_reports.good(state), len(state.postponed_reports)) == (has, waits)


def test_what_waits_for_an_unknown_block_goes_with_a_full_report_that_lacks_it() -> None:
    state, one, other = a_map()
    told(state, one, (B, Reported(FINALIZED, 1001, 700)))
    told(state, other, (B, Reported(FINALIZED, 1001, 700)))
    test_reports.reported(state, one, made_after=1.0)
    assert [number for _, number, _ in state.postponed_reports] == [other.number]


def test_a_replica_that_its_storage_is_to_delete_is_not_taken() -> None:
    state, one, _ = a_map(*written())
    incremental_reports.activate(state)
    state.invalidate(one.number, B, 1001)
    test_reports.reported(state, one, (B, 700, 1001, FINALIZED))
    assert (test_reports.good(state), test_reports.orders(state)) == ([], {("n1", B): 1001})


def test_a_replica_that_is_being_written_stays_expected_when_a_report_lacks_it() -> None:
    """A report of a newer stamp waits next to it, and is forgotten."""
    state, one, _ = a_map(*test_reports.added())
    told(state, one, (B, Reported(RBW, 1001, 0)))
    told(state, one, (B, Reported(RBW, 1002, 0)))
    test_reports.reported(state, one, made_after=1.0)
    slot = state.map.find(B)
    assert slot is not None
    assert len(state.postponed_reports) == 0
    assert [place.storage for place in state.map.construction(slot).locations] == [one.number]


CONFIRMATIONS = {
    "made by a DataNode that obeys": (False, True, True, True),
    "made before the DataNode obeyed": (False, True, False, False),
    "made without a heartbeat": (False, False, True, False),
    "of a storage that was confirmed": (True, True, False, True),
}


@pytest.mark.parametrize(
    ("before", "heartbeated", "after_claim", "confirmed"),
    CONFIRMATIONS.values(),
    ids=CONFIRMATIONS.keys(),
)
def test_a_report_of_a_confirmed_storage_has_its_postponed_blocks_judged_again(
    *, before: bool, heartbeated: bool, after_claim: bool, confirmed: bool
) -> None:
    """Of three blocks, one is postponed and there, one only postponed, and one only there."""
    state, one, other = a_map(*written(), *written(B + 1), *written(B + 2))
    for storage, number in ((one, B), (other, B + 1), (one, B + 2)):
        told(state, storage, (number, Reported(FINALIZED, 1001, 700)))
    incremental_reports.activate(state)
    here, elsewhere = state.map.find(B), state.map.find(B + 1)
    assert here is not None
    assert elsewhere is not None
    state.rechecks.start()
    for slot in (here, elsewhere):
        state.rechecks.postpone(slot)
    one.confirmed, one.heartbeated = before, heartbeated
    reports.finish(state, one, after_claim=after_claim)
    touch = state.rechecks.pop()
    assert one.confirmed is confirmed
    assert (touch and touch.slot) == (here if confirmed else None)
    assert len(state.rechecks) == 0


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_what_a_storage_tells_while_its_report_is_compared_is_newer(
    *, listed: bool, active: bool
) -> None:
    """In the meantime a listed replica is deleted, or one that is not listed is received again."""
    state, one, _ = a_map(*(test_reports.added() if listed else written()))
    if active:
        incremental_reports.activate(state)
    if not listed:
        told(state, one, (B, STORED), now=1.0)
    (whole,) = reports.parts(rows((B, 700, 1001, FINALIZED)) if listed else rows())
    found = reports.compare(state, one, whole, made_after=2.0)
    assert len(found) == 1
    told(
        state, one, *((B, news) for news in ((STORED, GONE) if listed else (GONE, STORED))), now=3.0
    )
    reports.settle(state, one, found, 0, len(found))
    assert test_reports.good(state) == ([] if listed else ["n1"])


@pytest.mark.parametrize(("at", "here"), [(1.9, ["n1"]), (2.0, []), (2.1, [])])
def test_a_report_that_may_have_been_made_before_a_deletion_brings_nothing_back(
    at: float, here: list[str]
) -> None:
    state, one, _ = a_map(*written())
    told(state, one, (B, Deleted(1001)), now=at)
    test_reports.reported(state, one, (B, 700, 1001, FINALIZED), made_after=2.0)
    assert test_reports.good(state) == here


RESTAMPED = (B, 30, 1002, RBW)
"""How a full report lists a replica whose writer has gone on under a new stamp."""

TOLD_MEANWHILE: dict[str, tuple[tuple[Reported | Deleted, ...], list[str], list[Reason]]] = {
    "news of its old stamp": ((Reported(RBW, 1001, 0),), ["n1"], []),
    "its old stamp is gone": ((Deleted(1001),), ["n1"], []),
    "it is gone": ((Deleted(1002),), [], []),
    "it is gone, and late news of its old stamp": (
        (Deleted(1002), Reported(RBW, 1001, 0)),
        [],
        [Reason.GENSTAMP_MISMATCH],
    ),
}


@pytest.mark.parametrize("now", [2.0, 3.0], ids=["just when it was made", "later"])
@pytest.mark.parametrize("compared", [False, True], ids=["before it is compared", "after"])
@pytest.mark.parametrize(
    ("news", "places", "marks"), TOLD_MEANWHILE.values(), ids=TOLD_MEANWHILE.keys()
)
def test_a_row_of_a_newer_stamp_than_was_told_meanwhile_is_taken_in(
    news: tuple[Reported | Deleted, ...],
    places: list[str],
    marks: list[Reason],
    now: float,
    *,
    compared: bool,
) -> None:
    """Only its edits and a full report inform a NameNode of the new stamp."""
    state, one, _ = a_map(
        *test_reports.added(), StampGiven(1002), BlockSettled(B, 0, 1002, complete=False)
    )
    incremental_reports.activate(state)
    meanwhile = [(B, each) for each in news]
    if not compared:
        told(state, one, *meanwhile, now=now)
    (whole,) = reports.parts(rows(RESTAMPED))
    found = reports.compare(state, one, whole, made_after=2.0)
    if compared:
        told(state, one, *meanwhile, now=now)
    reports.settle(state, one, found, 0, len(found))
    state.map.check()
    slot = state.map.find(B)
    assert slot is not None
    known = [
        state.map.storages.at(each.storage).node for each in state.map.construction(slot).locations
    ]
    assert (known, test_reports.corrupt(state)) == (places, marks)

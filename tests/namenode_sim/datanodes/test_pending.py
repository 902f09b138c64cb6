"""Which replicas are on their way, and until when that is believed."""

from typing import Final

from namenode_sim.datanodes.pending import Pending
from tests.namenode_sim.datanodes.test_placement import nodes, place

FIRST, SECOND, THIRD = (place(node) for node in nodes("/a", "/a", "/b"))
WAIT_SECONDS: Final = 10.0


def pending() -> Pending:
    """Two replicas of block 1 since second 0, one of block 2 since second 1."""
    found = Pending(WAIT_SECONDS)
    found.add(1, [FIRST, SECOND], 0.0)
    found.add(2, [THIRD], 1.0)
    return found


def test_more_are_added_to_those_that_were_expected() -> None:
    expected = pending()
    expected.add(1, [SECOND, THIRD], 2.0)
    assert expected.places(1) == (FIRST, SECOND, THIRD)
    assert expected.places(2) == (THIRD,)
    assert expected.places(3) == ()


def test_those_that_were_expected_have_as_much_time_again() -> None:
    expected = pending()
    expected.add(1, [THIRD], 5.0)
    overdue = {now: expected.overdue(now) for now in (10.9, 11.0, 14.9, 15.0)}
    assert overdue == {10.9: [], 11.0: [2], 14.9: [2], 15.0: [2, 1]}
    assert list(expected) == [2, 1]


def test_a_block_of_which_nothing_comes_is_not_held() -> None:
    expected = pending()
    expected.add(3, [], 2.0)
    assert list(expected) == [1, 2]
    assert len(expected) == 2
    assert expected.overdue(20.0) == [1, 2]


def test_some_are_kept_and_have_no_more_time_than_before() -> None:
    expected = pending()
    assert expected.keep(1, lambda one: one is SECOND) == (SECOND,)
    assert expected.places(1) == (SECOND,)
    assert expected.keep(1, lambda _: True) == (SECOND,)
    assert expected.overdue(10.0) == [1]


def test_with_none_kept_the_block_is_gone() -> None:
    expected = pending()
    assert expected.keep(1, lambda _: False) == ()
    assert list(expected) == [2]
    assert expected.keep(1, lambda _: True) == ()


def test_what_is_taken_out_is_not_expected_any_more() -> None:
    expected = pending()
    assert expected.pop(1) == (FIRST, SECOND)
    assert expected.pop(1) == ()
    assert list(expected) == [2]


def test_nothing_is_expected_once_cleared() -> None:
    expected = pending()
    expected.clear()
    assert (list(expected), len(expected), expected.places(1)) == ([], 0, ())

"""Replicas on their way are awaited for one to two periods."""

from typing import Final

import pytest

from namenode_sim.blocks.model import SCHEDULED_SECONDS, Scheduled


def test_what_comes_is_not_awaited_any_more() -> None:
    scheduled = Scheduled()
    scheduled.add(1.0)
    scheduled.add(2.0)
    scheduled.take(3.0)
    assert scheduled.count(3.0) == 1
    scheduled.take(3.0)
    scheduled.take(3.0)  # one that was never scheduled
    assert scheduled.count(3.0) == 0


def test_what_never_comes_is_forgotten() -> None:
    scheduled = Scheduled()
    scheduled.add(SCHEDULED_SECONDS * 5)
    assert scheduled.count(SCHEDULED_SECONDS * 6) == 1
    scheduled.add(SCHEDULED_SECONDS * 6)
    assert scheduled.count(SCHEDULED_SECONDS * 6) == 2
    assert scheduled.count(SCHEDULED_SECONDS * 7) == 1
    assert scheduled.count(SCHEDULED_SECONDS * 8) == 0
    scheduled.add(SCHEDULED_SECONDS * 8)
    assert scheduled.count(SCHEDULED_SECONDS * 20) == 0


def test_what_comes_late_is_taken_from_the_older_period() -> None:
    scheduled = Scheduled()
    scheduled.add(SCHEDULED_SECONDS)
    scheduled.add(SCHEDULED_SECONDS * 2)
    scheduled.take(SCHEDULED_SECONDS * 2)
    assert scheduled.count(SCHEDULED_SECONDS * 3) == 1


AWAITED: Final = {
    "at once": (0.0, 2),
    "at the end of the first period": (SCHEDULED_SECONDS - 0.5, 2),
    "in the second period": (SCHEDULED_SECONDS, 2),
    "at the end of the second period": (2 * SCHEDULED_SECONDS - 0.5, 2),
    "after the second period": (2 * SCHEDULED_SECONDS, 0),
    "much later": (5.5 * SCHEDULED_SECONDS, 0),
}
"""When it is asked, in seconds after two replicas were scheduled, and how many are awaited."""


@pytest.mark.parametrize(("later", "awaited"), AWAITED.values(), ids=AWAITED)
def test_replicas_are_awaited_for_two_periods(later: float, awaited: int) -> None:
    scheduled = Scheduled()
    begun = 3 * SCHEDULED_SECONDS
    for _ in range(2):
        scheduled.add(begun)
    assert scheduled.count(begun + later) == awaited


def test_a_period_lasts_ten_minutes_from_when_somebody_asks_after_the_one_before() -> None:
    scheduled = Scheduled()
    scheduled.add(6000.0)
    asked = (6599.5, 6600.5, 7200.0, 7200.5)
    assert [scheduled.count(now) for now in asked] == [1, 1, 1, 0]


def test_two_that_come_late_are_both_taken_from_the_older_period() -> None:
    scheduled = Scheduled()
    for begun in (SCHEDULED_SECONDS, SCHEDULED_SECONDS, 2 * SCHEDULED_SECONDS):
        scheduled.add(begun)
    left: list[int] = []
    for _ in range(4):
        scheduled.take(2 * SCHEDULED_SECONDS)
        left.append(scheduled.count(2 * SCHEDULED_SECONDS))
    assert left == [2, 1, 0, 0]


def test_what_comes_after_a_period_is_not_taken_from_what_was_given_up_then() -> None:
    scheduled = Scheduled()
    scheduled.add(SCHEDULED_SECONDS)
    scheduled.add(2 * SCHEDULED_SECONDS)
    scheduled.take(3 * SCHEDULED_SECONDS)
    assert scheduled.count(3 * SCHEDULED_SECONDS) == 0

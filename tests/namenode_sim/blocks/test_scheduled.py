"""Replicas on their way are awaited for one to two periods."""

from namenode_sim.blocks.scheduled import PERIOD_SECONDS, Scheduled


def test_what_comes_is_not_awaited_any_more() -> None:
    scheduled = Scheduled()
    scheduled.add(1.0)
    scheduled.add(2.0)
    scheduled.take(3.0)
    assert scheduled.count(3.0) == 1
    scheduled.take(3.0)
    scheduled.take(3.0)  # one that nobody scheduled
    assert scheduled.count(3.0) == 0


def test_what_never_comes_is_forgotten() -> None:
    scheduled = Scheduled()
    scheduled.add(PERIOD_SECONDS * 5)
    assert scheduled.count(PERIOD_SECONDS * 6) == 1
    scheduled.add(PERIOD_SECONDS * 6)
    assert scheduled.count(PERIOD_SECONDS * 6) == 2
    assert scheduled.count(PERIOD_SECONDS * 7) == 1
    assert scheduled.count(PERIOD_SECONDS * 8) == 0
    scheduled.add(PERIOD_SECONDS * 8)
    assert scheduled.count(PERIOD_SECONDS * 20) == 0


def test_what_comes_late_is_taken_from_the_older_period() -> None:
    scheduled = Scheduled()
    scheduled.add(PERIOD_SECONDS)
    scheduled.add(PERIOD_SECONDS * 2)
    scheduled.take(PERIOD_SECONDS * 2)
    assert scheduled.count(PERIOD_SECONDS * 3) == 1

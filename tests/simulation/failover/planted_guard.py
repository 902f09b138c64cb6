"""Bugs of what guards a controller against itself: its guard, its follower, its own delay."""

from typing import Any

from ha.health import core as health_core
from ha.health import monitor
from ha.zkfc.guard import core as guard_core
from ha.zkfc.guard.core import Watch
from ha.zkfc.process import controller
from ha.zkfc.takeover import superseded, superseded_process
from ha.zkfc.takeover.superseded import Answer, Seen, Verdict
from tests.simulation.engine.mutants import Planting, all_of, replacing


def guard_never_fires() -> Planting:
    """Let the guard look, and find everything in order."""

    def look(_watch: Watch, _signs: Any, *, now: float, **_limits: float) -> Any:  # noqa: ANN401
        return Watch(now), None

    return replacing(guard_core, "look", look)


def guard_believes_its_clock() -> Planting:
    """Count all time that has passed by the clock, also that in which nothing could run."""
    return replacing(guard_core, "MOST_INTERVALS", float("inf"))


def ended_without_successor() -> Planting:
    """End a process that gives no answer, whichever is active."""

    def judge(silent: int, seen: Seen) -> tuple[int, Verdict]:
        if seen.answer is not Answer.SILENT:
            return 0, Verdict.LEAVE if seen.answer is Answer.STANDS_BY else Verdict.LOOK_AGAIN
        return silent + 1, Verdict.END if silent else Verdict.LOOK_AGAIN

    return all_of(
        replacing(superseded, "judge", judge), replacing(superseded_process, "judge", judge)
    )


def ended_at_the_first_silence() -> Planting:
    """Take one missed deadline as enough."""
    return replacing(superseded, "SILENT_IN_A_ROW", 1)


def own_delay_blamed() -> Planting:
    """Count silence though our own event loop stood still in the meantime."""

    def outcome(seen: Any, **_delay: float) -> Any:  # noqa: ANN401
        return seen

    return replacing(monitor, "unless_we_were_late", outcome)


def own_delay_excuses_for_ever() -> Planting:
    """Let a NameNode hang as long as it likes where our own loop is late each time."""
    return replacing(health_core, "MOST_UNJUDGED", 10**9)


def old_lock_believed() -> Planting:
    """Promote though no ZooKeeper has answered for longer than a session lives."""
    return replacing(controller, "ensure_heard", lambda _contact, *, now: None)

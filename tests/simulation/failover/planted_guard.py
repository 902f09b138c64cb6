"""Bugs of what guards a controller against itself: its guard, its follower, its own delay."""

from typing import Any, Final

from ha.health import core as health_core
from ha.health import monitor
from ha.zkfc.guard import core as guard_core
from ha.zkfc.guard.core import Watch
from ha.zkfc.process import controller
from ha.zkfc.takeover import superseded, superseded_process
from ha.zkfc.takeover.superseded import Answer, Seen, Supersession
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing
from tests.simulation.failover.mutants import UNCHECKED

_ORDERS: Final = "tests/ha/zkfc/test_orders.py::test_"
_GUARD: Final = "tests/ha/zkfc/test_guard.py::test_"
_MONITOR: Final = "tests/ha/health/test_monitor.py::test_"
_SUPERSEDED: Final = "tests/ha/zkfc/test_superseded.py::test_"
_NO_WORLD: Final = "the simulated controllers run without the guard's thread, and never lag"
bug: Final = Planted(300, beside=UNCHECKED)


@bug.killed_by(
    _GUARD + "a_duty_that_is_not_done_is_found_after_its_time_and_the_patience", why=_NO_WORLD
)
@bug.replacing("the guard never fires", guard_core, "look", 0)
def guard_never_fires(_watch: Watch, _signs: Any, *, now: float, **_limits: float) -> Any:
    return Watch(now), None


@bug.killed_by(
    _GUARD + "a_process_that_was_stopped_gets_its_turn_before_it_is_judged", why=_NO_WORLD
)
@bug("the guard believes its clock", 0)
def guard_believes_its_clock() -> Planting:
    return replacing(guard_core, "MOST_INTERVALS", float("inf"))


@bug("silence ends a process")
def ended_without_successor() -> Planting:
    def judge(silent: int, seen: Seen) -> tuple[int, Supersession]:
        if seen.answer is not Answer.SILENT:
            return (
                0,
                Supersession.LEAVE if seen.answer is Answer.STANDS_BY else Supersession.LOOK_AGAIN,
            )
        return silent + 1, Supersession.END if silent else Supersession.LOOK_AGAIN

    return all_of(
        replacing(superseded, "judge", judge), replacing(superseded_process, "judge", judge)
    )


@bug.killed_by(
    _SUPERSEDED + "one_missed_deadline_ends_nobody",
    why="another is active then, and the process would end by itself at its next edit",
)
@bug("one silence ends a process", 0)
def ended_at_the_first_silence() -> Planting:
    return replacing(superseded, "SILENT_IN_A_ROW", 1)


@bug.killed_by(
    _MONITOR + "silence_while_we_stood_still_ourselves_is_not_held_against_it",
    why="a failover that was not needed breaks no promise",
)
@bug.replacing("our own delay is held against the NameNode", monitor, "discard_if_loop_was_late", 0)
def own_delay_blamed(seen: Any, **_delay: float) -> Any:
    return seen


@bug.killed_by(
    _MONITOR + "a_namenode_that_hangs_is_found_though_we_are_late_each_time", why=_NO_WORLD
)
@bug("our own delay excuses for ever", 0)
def own_delay_excuses_for_ever() -> Planting:
    return replacing(health_core, "MOST_UNJUDGED", 10**9)


@bug.killed_by(
    _ORDERS + "a_promotion_does_not_begin_under_a_lock_that_is_older_than_a_session",
    why="it takes a process that is stopped in the instant before its promotion",
)
@bug("an old lock is believed", 0)
def old_lock_believed() -> Planting:
    return replacing(controller, "require_recent_contact", lambda _contact, *, now: None)

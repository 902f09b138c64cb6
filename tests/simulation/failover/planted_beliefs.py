"""Bugs in what a controller believes, to be planted: it would report that all is well."""

from dataclasses import replace
from typing import Any, Final

from ha.elector.keeper import KazooKeeper
from ha.elector.runner import Elector
from ha.elector.zookeeper.outcome import SessionState
from ha.notices.board import Board
from ha.zkfc.candidacy import core, eligibility
from ha.zkfc.candidacy.eligibility import Standing, apply_notices, is_active_elsewhere
from ha.zkfc.candidacy.eligibility import find_bar as bar_of
from ha.zkfc.candidacy.state import Step
from ha.zkfc.handover.graceful_failover import HandOver
from ha.zkfc.process.controller import Controller
from ha.zkfc.takeover.takeover import Takeover
from tests.simulation.engine.mutants import Planted, Planting, all_of, replacing
from tests.simulation.failover.mutants import UNCHECKED

_STANDING: Final = "tests/ha/zkfc/test_standing.py::test_"
bug: Final = Planted(300, beside=UNCHECKED)


@bug.replacing("a notice that is read is forgotten", core, "apply_notices")
def notices_forgotten(standing: Standing, notices: Any, now: float) -> Standing:
    return apply_notices(standing, replace(notices, pause=None, drain=None), now)


@bug.killed_by(
    "tests/ha/notices/test_board.py::"
    "test_what_is_shown_is_what_stands_there_and_not_what_was_written_last",
    why="it takes a write without an answer, and a NameNode that is well again before the next",
)
@bug("the last word is taken for what is shown", 0)
def last_word_believed() -> Planting:
    really, last = Board._show, dict[Board, Any]()

    async def show(self: Board, session: Any) -> None:
        if not self._shown or last.get(self) != self._own:
            await really(self, session)
            last[self] = self._own

    return replacing(Board, "_show", show)


@bug("a hand-over never ends")
def asked_for_ever() -> Planting:
    count, noted = core._count_hand_overs, HandOver._run_and_record
    kept: dict[HandOver, Any] = {}

    def asked(state: Any, more: int) -> Any:
        return count(state, more) if more > 0 else state

    async def note(self: HandOver, one: Any) -> None:
        kept[self] = one
        await noted(self, one)

    return all_of(
        replacing(core, "_count_hand_overs", asked),
        replacing(HandOver, "_run_and_record", note),
        replacing(HandOver, "request", property(kept.get)),
    )


@bug.replacing("who gave way may always return", core, "apply_notices")
def may_always_return(standing: Standing, notices: Any, now: float) -> Standing:
    return replace(apply_notices(standing, notices, now), may_return=standing.may_return)


@bug.replacing("the end of a session is not heard", KazooKeeper, "_session_changed")
def end_of_session_unheard(
    really: Any, self: KazooKeeper, number: Any, state: SessionState, why: str
) -> None:
    if state is SessionState.CONNECTED:
        really(self, number, state, why)


@bug.replacing("promoted in words only", Takeover, "promote")
async def promoted_in_words(self: Takeover, **_named: Any) -> None:
    return


@bug.killed_by(
    _STANDING + "w16_after_repeated_failovers_a_slow_active_is_kept_for_a_while",
    why="it takes three takeovers by one controller within the window, and a silent host then",
)
@bug("takeovers are not counted", 0)
def takeovers_forgotten() -> Planting:
    return replacing(core, "record_takeover", lambda flapping, _now: flapping)


bug.add("a drained active stays", replacing(core, "_drain", lambda state, _now: Step(state)))


@bug.replacing("a pause bars the active as well", core, "find_bar")
def pause_bars_the_active(standing: Standing, **named: Any) -> Any:
    return bar_of(standing, **{**named, "is_active": False})


@bug.killed_by(
    "tests/ha/zkfc/test_history.py::"
    "test_a_lock_that_was_made_after_a_takeover_is_not_called_its_lock",
    why="it takes two sessions that end one after the other, and a history that looks late",
)
@bug("a takeover is told a later lock", 1500)
def later_lock_is_its_own() -> Planting:
    return replacing(Elector, "active_by", lambda _self, _attempt: True)


@bug("notices of a lock from before ours are believed", 120)
def old_notices_believed() -> Planting:
    def replaced(standing: Standing) -> bool:
        notices = standing.notices
        return notices is not None and is_active_elsewhere(standing, notices)

    return all_of(
        replacing(eligibility, "_without_older_lock", lambda _standing, notices: notices),
        replacing(core, "is_superseded", replaced),
    )


@bug.replacing("a controller does not learn which lock is its", Controller, "_record_own_lock", 60)
def own_lock_unknown(_self: Controller, _made: int) -> None:
    return

"""Bugs in what a controller believes, to be planted: it would report that all is well."""

from dataclasses import replace
from typing import Any

from ha.elector.keeper import KazooKeeper
from ha.elector.runner import Elector
from ha.elector.zookeeper.outcome import SessionState
from ha.notices.board import Board
from ha.zkfc.candidacy import core
from ha.zkfc.candidacy.eligibility import Standing
from ha.zkfc.candidacy.eligibility import bar as bar_of
from ha.zkfc.candidacy.eligibility import noticed as noticed_of
from ha.zkfc.candidacy.state import Step
from ha.zkfc.handover.graceful_failover import HandOver
from ha.zkfc.takeover.takeover import Takeover
from tests.simulation.engine.mutants import Planting, all_of, replacing


def notices_forgotten() -> Planting:
    """Read a pause and a drain, and do not keep them."""

    def noticed(standing: Standing, notices: Any, now: float) -> Standing:  # noqa: ANN401
        return noticed_of(standing, replace(notices, pause=None, drain=None), now)

    return replacing(core, "noticed", noticed)


def last_word_believed() -> Planting:
    """Take what was written last for what is shown, though another write may have been done."""
    really, last = Board._show, dict[Board, Any]()

    async def show(self: Board, session: Any) -> None:  # noqa: ANN401
        if not self._shown or last.get(self) != self._own:
            await really(self, session)
            last[self] = self._own

    return replacing(Board, "_show", show)


def asked_for_ever() -> Planting:
    """Take a hand-over that has ended to be under way."""
    count, noted = core._asked, HandOver._noted
    kept: dict[HandOver, Any] = {}

    def asked(state: Any, more: int) -> Any:  # noqa: ANN401
        return count(state, more) if more > 0 else state

    async def note(self: HandOver, one: Any) -> None:  # noqa: ANN401
        kept[self] = one
        await noted(self, one)

    return all_of(
        replacing(core, "_asked", asked),
        replacing(HandOver, "_noted", note),
        replacing(HandOver, "asked", property(kept.get)),
    )


def may_always_return() -> Planting:
    """Let a former owner take back a lock that it gave away, though another became active since."""

    def noticed(standing: Standing, notices: Any, now: float) -> Standing:  # noqa: ANN401
        return replace(noticed_of(standing, notices, now), may_return=standing.may_return)

    return replacing(core, "noticed", noticed)


def end_of_session_unheard() -> Planting:
    """Take a session that is lost, or over, for a good one."""
    really = KazooKeeper._session_changed

    def changed(self: KazooKeeper, number: Any, state: SessionState, why: str) -> None:  # noqa: ANN401
        if state is SessionState.CONNECTED:
            really(self, number, state, why)

    return replacing(KazooKeeper, "_session_changed", changed)


def promoted_in_words() -> Planting:
    """Skip the NameNode's promotion; everything else goes on."""

    async def promote(self: Takeover, **_named: Any) -> None:  # noqa: ANN401
        return

    return replacing(Takeover, "promote", promote)


def takeovers_forgotten() -> Planting:
    """Leave repeated failovers uncounted."""
    return replacing(core, "took_over", lambda flapping, _now: flapping)


def drained_stays() -> Planting:
    """Do not hand over a drained active; that it is drained is known and shown."""
    return replacing(core, "_drain", lambda state, _now: Step(state))


def pause_bars_the_active() -> Planting:
    """Let a pause keep all out of the election, also the one whose NameNode is the active."""

    def bar(standing: Standing, **named: Any) -> Any:  # noqa: ANN401
        return bar_of(standing, **{**named, "is_active": False})

    return replacing(core, "bar", bar)


def later_lock_is_its_own() -> Planting:
    """Write down in the history whatever lock of ours is found at the time of the look."""
    return replacing(Elector, "active_by", lambda _self, _attempt: True)

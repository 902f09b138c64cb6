"""Bugs of the election and of the takeover's order, to be planted."""

from dataclasses import replace
from typing import Any, Final

from ha.elector import actions, core, events, runner, takeover, term_keeper
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Link, Role, Stage, Term
from ha.elector.runner import Elector
from ha.elector.state import ElectorState, Step
from tests.simulation.engine.mutants import Planted, Planting, replacing
from tests.simulation.failover.mutants import UNCHECKED

_ELECTION: Final = "tests/ha/elector/test_core.py::test_"
_ONE_AFTER_THE_OTHER: Final = (
    "tests/ha/elector/test_work_order.py::"
    "test_a_demotion_does_not_overtake_a_promotion_behind_a_takeover_that_was_called_off"
)
_ORDERS: Final = "tests/ha/zkfc/test_orders.py::test_"
bug: Final = Planted(300, beside=UNCHECKED)


@bug.killed_by(
    _ELECTION + "event_table[created, told by a dead session]",
    why="a session that is closed tells nothing any more, and an expired one has no "
    "request left that could be answered",
)
@bug("news of an old session believed")
def stale_session_believed() -> Planting:
    really = core._handle_lock
    return replacing(
        core,
        "_handle_lock",
        lambda state, event: really(state, replace(event, session=state.session)),
    )


@bug.killed_by(
    _ELECTION + "event_table[taken: whose it is must be asked]",
    why="the look at the lock is answered before anybody is fenced, in all but 1 of 100 worlds",
)
@bug.replacing("NodeExists taken as won", core, "_handle_lock")
def node_exists_is_won(really: Any, state: ElectorState, event: Any) -> Any:
    if isinstance(event, events.LockTaken):
        event = events.LockCreated(event.session)
    return really(state, event)


bug.add(
    "any lock is ours", replacing(core, "_stand_by", lambda state: core._handle_own_lock(state))
)


@bug.killed_by(
    _ELECTION + "event_table[fenced for an abandoned attempt]",
    why="the work of an abandoned attempt is cancelled, and a session answers in order",
)
@bug.replacing("answers of an old attempt believed", core, "_handle_takeover")
def stale_attempt_believed(really: Any, state: ElectorState, event: Any) -> Any:
    changed = {"attempt": state.attempt}
    if isinstance(event, events.BreadcrumbRead | events.BreadcrumbWritten):
        changed["session"] = state.session  # type: ignore[assignment]
    return really(state, replace(event, **changed))


@bug.replacing("active before the fence is done", Elector, "_call_application")
def fence_not_awaited(really: Any, self: Elector, action: Any) -> None:
    really(self, action)
    if isinstance(action, actions.FenceOldActive):
        self.post(events.OldActiveFenced(action.attempt))


@bug.replacing("a breadcrumb that looks alike is ours", takeover, "_after_read")
def alike_is_own(really: Any, state: ElectorState, breadcrumb: Any) -> Any:
    if breadcrumb is not None and len(breadcrumb.content) == len(state.data):
        breadcrumb = replace(breadcrumb, content=state.data)
    return really(state, breadcrumb)


@bug.replacing("the breadcrumb is only replaced", takeover, "_after_read")
def unread_is_none(state: ElectorState, breadcrumb: Any) -> Step:
    version = None if breadcrumb is None else breadcrumb.version
    return takeover._write(replace(state, breadcrumb_version=version))


bug.add(
    "promoted without a breadcrumb",
    replacing(takeover, "_write", lambda state: takeover._promote(state, 0)),
)


@bug("our name before the fence")
def writes_before_fencing() -> Planting:
    read, promote = takeover._after_read, takeover._promote
    fences: dict[Any, Any] = {}

    def reading(state: ElectorState, breadcrumb: Any) -> Step:
        step = read(state, breadcrumb)
        if step.state.stage is not Stage.FENCING:
            return step
        fences[(state.attempt, state.data)] = step
        return takeover._write(step.state)

    def promoting(state: ElectorState, version: int) -> Step:
        step = fences.pop((state.attempt, state.data), None)
        if step is None:
            return promote(state, version)
        return Step(replace(state, stage=Stage.FENCING, breadcrumb_version=version), step.actions)

    def plant(stack: Any) -> None:
        replacing(takeover, "_after_read", reading)(stack)
        replacing(takeover, "_promote", promoting)(stack)

    return plant


@bug.killed_by(
    _ELECTION + "event_table[connected again: look, never create]",
    why="the election looks at the lock each second all the same",
)
@bug.replacing("a reconnect is trusted", core, "_handle_opened")
def reconnect_is_trusted(really: Any, state: ElectorState) -> Any:
    if state.link is Link.SUSPENDED and state.serving:
        active = replace(state, link=Link.CONNECTED, role=Role.ACTIVE, holding=True)
        return Step(active)
    return really(state)


@bug.replacing("an expiry is a reconnect", core, "_start_over")
def expiry_is_a_reconnect(really: Any, state: ElectorState) -> Any:
    step = really(state)
    return Step(replace(step.state, serving=state.serving), step.actions)


@bug.replacing("losing sight of ZooKeeper demotes", Elector, "_call_application")
def neutral_demotes(really: Any, self: Elector, action: Any) -> None:
    really(self, action)
    if isinstance(action, actions.EnterNeutral):
        really(self, actions.ServeAsStandby())


@bug.killed_by(
    _ONE_AFTER_THE_OTHER,
    why="what follows waits for it, and its answers count no more; 1 of 50 worlds shows it",
)
@bug.replacing("a takeover is not abandoned", Elector, "_call_application")
def takeover_not_abandoned(really: Any, self: Elector, action: Any) -> None:
    if not isinstance(action, actions.AbandonTakeover):
        really(self, action)


@bug.replacing("leaving always deletes the breadcrumb", core, "_quit")
def quit_forgets_the_breadcrumb(
    really: Any, state: ElectorState, *, keep_breadcrumb: bool, ended: str
) -> Any:
    return really(state, keep_breadcrumb=False, ended=ended)


@bug.killed_by(
    _ELECTION
    + "event_table[an active's clean quit deletes the breadcrumb while it holds the lock]",
    why="the session sends both at once, and the next owner's breadcrumb has another version",
)
@bug.replacing("the lock goes before the breadcrumb", core, "_leave")
def release_before_the_breadcrumb(
    really: Any, state: ElectorState, *, before_release: tuple[Any, ...] = ()
) -> Any:
    step = really(state, before_release=before_release)
    last = tuple(one for one in step.actions if isinstance(one, actions.DeleteBreadcrumb))
    rest = tuple(one for one in step.actions if one not in last)
    return Step(step.state, (*rest[:-1], *last, *rest[-1:]))


@bug.killed_by(
    _ORDERS + "a_breadcrumb_is_deleted_at_the_version_that_we_wrote",
    why="it takes somebody who deletes the lock by hand; 1 of 60 worlds shows it",
)
@bug.replacing("the breadcrumb goes at any version", KazooKeeper, "perform")
def any_version_is_deleted(really: Any, self: KazooKeeper, action: Any) -> None:
    if isinstance(action, actions.DeleteBreadcrumb):
        action = replace(action, version=-1)
    really(self, action)


@bug.replacing("only watches tell", runner, "step")
def never_looks_by_itself(really: Any, state: ElectorState, event: Any) -> Any:
    if isinstance(event, events.LookDue):
        return Step(state)
    if isinstance(event, events.SessionOpened) and state.link is Link.SUSPENDED:
        return Step(replace(state, link=Link.CONNECTED))
    return really(state, event)


@bug.killed_by(
    _ELECTION + "event_table[our own breadcrumb, in doubt: whoever wrote it may spare another]",
    why="the drawn worlds have an open ACL, where nothing can be in doubt",
)
@bug.replacing("our name in a doubtful breadcrumb spares everybody", takeover, "_after_read", 0)
def doubted_name_spares(really: Any, state: ElectorState, breadcrumb: Any) -> Any:
    if breadcrumb is not None:
        breadcrumb = replace(breadcrumb, term=Term.UNKNOWN)
    return really(state, breadcrumb)


@bug.killed_by(
    "tests/ha/elector/test_doubted.py::test_our_own_name_by_a_strangers_hand_spares_nobody",
    why="the drawn worlds have an open ACL, where nothing can be in doubt",
)
@bug.replacing(
    "who could have written a breadcrumb is not asked", term_keeper, "untrusted_znodes", 0
)
async def nobody_doubts(*_arguments: object, **_named: object) -> dict[str, str]:
    return {}


@bug.killed_by(
    _ELECTION + "a_lock_that_was_gone_must_be_taken_over_again",
    why="it takes somebody who deletes the lock by hand; 1 of 80 worlds shows it",
)
@bug.replacing("a lock lost for a moment was never lost", core, "_create_anew")
def gone_lock_keeps_serving(really: Any, state: ElectorState) -> Any:
    step = really(state)
    return Step(replace(step.state, serving=state.serving), step.actions)

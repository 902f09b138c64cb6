"""Bugs of the election and of the takeover's order, to be planted."""

from dataclasses import replace
from typing import Any

from ha.elector import actions, core, events, runner, takeover, term_keeper
from ha.elector.keeper import KazooKeeper
from ha.elector.model import Link, Role, Stage, Term
from ha.elector.runner import Elector
from ha.elector.state import ElectorState, Step
from tests.simulation.engine.mutants import Planting, replacing


def stale_session_believed() -> Planting:
    """Count news of the lock from any session."""
    really = core._lock_news
    return replacing(
        core,
        "_lock_news",
        lambda state, event: really(state, replace(event, session=state.session)),
    )


def node_exists_is_won() -> Planting:
    """Take a lock that exists already for ours."""
    really = core._lock_news

    def news(state: ElectorState, event: Any) -> Step:  # noqa: ANN401
        if isinstance(event, events.LockTaken):
            event = events.LockCreated(event.session)
        return really(state, event)

    return replacing(core, "_lock_news", news)


def look_believes_anybody() -> Planting:
    """Do not ask whose the lock is: it exists, so we have it."""
    return replacing(core, "_others", lambda state: core._owned(state))


def stale_attempt_believed() -> Planting:
    """Count answers of an abandoned takeover for the present one."""
    really = core._takeover_news

    def news(state: ElectorState, event: Any) -> Step:  # noqa: ANN401
        changed = {"attempt": state.attempt}
        if isinstance(event, events.BreadcrumbRead | events.BreadcrumbWritten):
            changed["session"] = state.session  # type: ignore[assignment]
        return really(state, replace(event, **changed))

    return replacing(core, "_takeover_news", news)


def fence_not_awaited() -> Planting:
    """Go on with the takeover while fencing is still under way."""
    really = Elector._tell_application

    def tell(self: Elector, action: Any) -> None:  # noqa: ANN401
        really(self, action)
        if isinstance(action, actions.FenceOldActive):
            self.post(events.OldActiveFenced(action.attempt))

    return replacing(Elector, "_tell_application", tell)


def alike_is_own() -> Planting:
    """Take a breadcrumb of the same ports for our own."""
    really = takeover._read

    def read(state: ElectorState, breadcrumb: Any) -> Step:  # noqa: ANN401
        if breadcrumb is not None and len(breadcrumb.content) == len(state.data):
            breadcrumb = replace(breadcrumb, content=state.data)
        return really(state, breadcrumb)

    return replacing(takeover, "_read", read)


def unread_is_none() -> Planting:
    """Replace the breadcrumb only: whatever it says, there is nothing to fence."""

    def read(state: ElectorState, breadcrumb: Any) -> Step:  # noqa: ANN401
        version = None if breadcrumb is None else breadcrumb.version
        return takeover._write(replace(state, breadcrumb_version=version))

    return replacing(takeover, "_read", read)


def promotes_without_writing() -> Planting:
    """Do not write our name before our NameNode is promoted."""
    return replacing(takeover, "_write", lambda state: takeover._promote(state, 0))


def writes_before_fencing() -> Planting:
    """Write our name first, and fence the old active only when that has gone through."""
    read, promote = takeover._read, takeover._promote
    fences: dict[Any, Any] = {}

    def reading(state: ElectorState, breadcrumb: Any) -> Step:  # noqa: ANN401
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

    def plant(stack: Any) -> None:  # noqa: ANN401
        replacing(takeover, "_read", reading)(stack)
        replacing(takeover, "_promote", promoting)(stack)

    return plant


def reconnect_is_trusted() -> Planting:
    """Take the lock to be where it was, after a reconnect."""
    really = core._opened

    def opened(state: ElectorState) -> Step:
        if state.link is Link.SUSPENDED and state.serving:
            active = replace(state, link=Link.CONNECTED, role=Role.ACTIVE, holding=True)
            return Step(active)
        return really(state)

    return replacing(core, "_opened", opened)


def expiry_is_a_reconnect() -> Planting:
    """Let a session's end change nothing but the session: an active goes on."""
    really = core._start_over

    def start_over(state: ElectorState) -> Step:
        step = really(state)
        return Step(replace(step.state, serving=state.serving), step.actions)

    return replacing(core, "_start_over", start_over)


def neutral_demotes() -> Planting:
    """End the service when ZooKeeper is out of sight."""
    really = Elector._tell_application

    def tell(self: Elector, action: Any) -> None:  # noqa: ANN401
        really(self, action)
        if isinstance(action, actions.EnterNeutral):
            really(self, actions.ServeAsStandby())

    return replacing(Elector, "_tell_application", tell)


def takeover_not_abandoned() -> Planting:
    """Let what an attempt has under way go on when its ground is gone."""
    really = Elector._tell_application

    def tell(self: Elector, action: Any) -> None:  # noqa: ANN401
        if not isinstance(action, actions.AbandonTakeover):
            really(self, action)

    return replacing(Elector, "_tell_application", tell)


def quit_forgets_the_breadcrumb() -> Planting:
    """Delete the breadcrumb at every leaving, whatever our NameNode may be."""
    really = core._quit

    def quit_(state: ElectorState, *, keep_breadcrumb: bool, ended: str) -> Step:
        return really(state, keep_breadcrumb=False, ended=ended)

    return replacing(core, "_quit", quit_)


def release_before_the_breadcrumb() -> Planting:
    """Release the lock first: by then the breadcrumb is the next owner's."""
    really = core._leave

    def leave(state: ElectorState, *, before_release: tuple[Any, ...] = ()) -> Step:
        step = really(state, before_release=before_release)
        last = tuple(one for one in step.actions if isinstance(one, actions.DeleteBreadcrumb))
        rest = tuple(one for one in step.actions if one not in last)
        return Step(step.state, (*rest[:-1], *last, *rest[-1:]))

    return replacing(core, "_leave", leave)


def any_version_is_deleted() -> Planting:
    """Delete the breadcrumb without a look at its version."""
    really = KazooKeeper.perform

    def perform(self: KazooKeeper, action: Any) -> None:  # noqa: ANN401
        if isinstance(action, actions.DeleteBreadcrumb):
            action = replace(action, version=-1)
        really(self, action)

    return replacing(KazooKeeper, "perform", perform)


def never_looks_by_itself() -> Planting:
    """Rely on watches alone: there is no look each second, nor one after a reconnect."""
    really = core.step

    def step(state: ElectorState, event: Any) -> Step:  # noqa: ANN401
        if isinstance(event, events.LookDue):
            return Step(state)
        if isinstance(event, events.SessionOpened) and state.link is Link.SUSPENDED:
            return Step(replace(state, link=Link.CONNECTED))
        return really(state, event)

    return replacing(runner, "step", step)


def doubted_name_spares() -> Planting:
    """Let our own name in the breadcrumb spare all, whichever node has written it."""
    really = takeover._read

    def read(state: ElectorState, breadcrumb: Any) -> Step:  # noqa: ANN401
        if breadcrumb is not None:
            breadcrumb = replace(breadcrumb, term=Term.UNKNOWN)
        return really(state, breadcrumb)

    return replacing(takeover, "_read", read)


def nobody_doubts() -> Planting:
    """Believe any writer of a znode."""

    async def doubts(*_arguments: object, **_named: object) -> dict[str, str]:
        return {}

    return replacing(term_keeper, "doubts", doubts)


def gone_lock_keeps_serving() -> Planting:
    """Take a lock that was gone for a moment, and is ours again, for never lost."""
    really = core._vanished

    def vanished(state: ElectorState) -> Step:
        step = really(state)
        return Step(replace(step.state, serving=state.serving), step.actions)

    return replacing(core, "_vanished", vanished)

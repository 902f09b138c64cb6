"""The election as a function of state and event: docs/reference/election.md#events.

    INIT --join--> (creates the lock) --another owns it--> STANDBY
                                      --we own it--> TAKING_OVER --promoted--> ACTIVE
    any --suspended, expired--> NEUTRAL --lock read again--> STANDBY | TAKING_OVER | ACTIVE
    any --quit, takeover failed, given up--> INIT

Each answer of ZooKeeper carries its session, and each answer of a takeover its attempt; one of an
earlier session or attempt is ignored.  A takeover is abandoned when the session is suspended or
expires, when the lock is gone, and at a request to quit.
"""

from dataclasses import replace
from typing import assert_never

from ha.elector import actions as elector_actions
from ha.elector import events
from ha.elector.invariants import check
from ha.elector.model import AttemptNumber, Link, Role, SessionNumber, Stage
from ha.elector.state import ElectorState, Step
from ha.elector.takeover import advance_takeover

_TakeoverEvent = (
    events.BreadcrumbRead
    | events.BreadcrumbWritten
    | events.OldActiveFenced
    | events.Promoted
    | events.TakeoverFailed
)
_SessionEvent = (
    events.SessionOpened | events.SessionSuspended | events.SessionExpired | events.SessionRefused
)
_LockEvent = (
    events.LockCreated
    | events.LockTaken
    | events.LockSeen
    | events.LockGone
    | events.LockChanged
    | events.LookUnanswered
    | events.OutcomeUnknown
    | events.RequestRefused
)


def step(state: ElectorState, event: events.Event) -> Step:
    """Return the state after an event, and the actions; raise InvariantBroken for a bug."""
    return check(state, event, _step(state, event))


def _step(state: ElectorState, event: events.Event) -> Step:
    match event:
        case events.JoinRequested():
            return _join(state, event.data)
        case events.QuitRequested():
            return _quit(state, keep_breadcrumb=event.keep_breadcrumb, ended=event.ended)
        case events.LookDue():
            return _look_at_lock(state)
        case (
            events.SessionOpened()
            | events.SessionSuspended()
            | events.SessionExpired()
            | events.SessionRefused()
        ):
            return _handle_session(state, event)
        case (
            events.BreadcrumbRead()
            | events.BreadcrumbWritten()
            | events.OldActiveFenced()
            | events.Promoted()
            | events.TakeoverFailed()
        ):
            return _handle_takeover(state, event)
        case _:
            return _handle_lock(state, event)


# -- requests of the controller --------------------------------------------------------------


def _join(state: ElectorState, data: bytes) -> Step:
    if not data:
        raise ValueError("joining the election needs the data that names this node")
    if state.wanted:
        return Step(state)
    return _open_session(replace(state, wanted=True, data=data, role=Role.INIT))


def _quit(state: ElectorState, *, keep_breadcrumb: bool, ended: str) -> Step:
    if not state.wanted:
        return Step(state)
    # Before the release: after it, breadcrumb and record belong to the lock's next owner.
    last: tuple[elector_actions.Action, ...] = ()
    if state.role is Role.ACTIVE and state.link is Link.CONNECTED:
        if ended:
            last = (elector_actions.RecordEnded(state.session, ended),)
        if not keep_breadcrumb and state.breadcrumb_version is not None:
            last = (
                *last,
                elector_actions.DeleteBreadcrumb(state.session, state.breadcrumb_version),
            )
    return _leave(state, before_release=last)


def _leave(state: ElectorState, *, before_release: tuple[elector_actions.Action, ...] = ()) -> Step:
    """Leave the election: release the lock and close the session."""
    abandoned = _abandon_takeover(state)
    release: tuple[elector_actions.Action, ...] = ()
    if state.holding and state.link is Link.CONNECTED:
        release = (elector_actions.ReleaseLock(state.session),)
    left = ElectorState(session=state.session, attempt=state.attempt)
    return Step(
        left, (*abandoned, *before_release, *release, elector_actions.CloseSession(state.session))
    )


def _open_session(state: ElectorState) -> Step:
    number = SessionNumber(state.session + 1)
    return Step(
        replace(
            state,
            session=number,
            link=Link.CONNECTING,
            holding=False,
            creating=False,
            looking=False,
            serving=False,
            stage=Stage.NONE,
            breadcrumb_version=None,
        ),
        (elector_actions.OpenSession(number),),
    )


# -- the session -----------------------------------------------------------------------------


def _handle_session(state: ElectorState, event: _SessionEvent) -> Step:
    if event.session != state.session or not state.wanted:
        return Step(state)
    match event:
        case events.SessionOpened():
            return _handle_opened(state)
        case events.SessionSuspended():
            return _enter_neutral(
                replace(state, link=Link.SUSPENDED, creating=False, looking=False)
            )
        case events.SessionExpired():
            return _start_over(state)
        case events.SessionRefused():
            return _give_up(state, event.reason)
    assert_never(event)


def _handle_opened(state: ElectorState) -> Step:
    before = state.link
    state = replace(state, link=Link.CONNECTED)
    match before:
        case Link.CONNECTING:
            return _create_lock(state)
        case Link.SUSPENDED:
            # kazoo dropped the watch, and a create without an answer may have succeeded: the lock's
            # ephemeralOwner shows that.
            return _look_at_lock(state)
        case Link.CONNECTED | Link.CLOSED:
            return Step(state)
    assert_never(before)


def _start_over(state: ElectorState) -> Step:
    """Open a new session in a new client; kazoo's own second session would mix the answers."""
    neutral = _enter_neutral(state)
    opened = _open_session(neutral.state)
    return Step(
        opened.state,
        (*neutral.actions, elector_actions.CloseSession(state.session), *opened.actions),
    )


def _enter_neutral(state: ElectorState) -> Step:
    """Enter the neutral role, as the lock's owner is unknown; our NameNode keeps its state.

    See docs/reference/election.md#zookeeper-away.
    """
    actions = _abandon_takeover(state)
    if state.role not in (Role.NEUTRAL, Role.INIT):
        actions = (*actions, elector_actions.EnterNeutral())
    role = Role.INIT if state.role is Role.INIT else Role.NEUTRAL
    return Step(replace(state, role=role, stage=Stage.NONE), actions)


def _give_up(state: ElectorState, reason: str) -> Step:
    left = _leave(state)
    return Step(left.state, (*left.actions, elector_actions.GiveUp(reason)))


# -- the lock --------------------------------------------------------------------------------


def _handle_lock(state: ElectorState, event: _LockEvent) -> Step:  # noqa: C901 - flat dispatch
    if event.session != state.session:
        return Step(state)
    if state.link is not Link.CONNECTED:
        return Step(_apply_stale_event(state, event))
    match event:
        case events.LockCreated():
            return _handle_own_lock(replace(state, creating=False))
        case events.LockTaken():
            return _look_at_lock(replace(state, creating=False))
        case events.LockSeen():
            state = replace(state, looking=False)
            return _handle_own_lock(state) if event.ours else _stand_by(state)
        case events.LockGone():
            return _create_anew(replace(state, looking=False))
        case events.LockChanged():
            return _look_at_lock(state)
        case events.LookUnanswered():
            return Step(replace(state, looking=False))
        case events.OutcomeUnknown():
            # The request may still take effect, at any time until the session has ended.
            return _start_over(state)
        case events.RequestRefused():
            return _give_up(state, f"{event.request}: {event.reason}")
    assert_never(event)


def _apply_stale_event(state: ElectorState, event: _LockEvent) -> ElectorState:
    """Return the state after an answer from before a suspension; it counts if we lost the lock.

    The bad schedule: another session owned the lock for a moment, and the read after the reconnect
    finds our own, newer lock.  Our NameNode was promoted under the earlier lock only.
    """
    lost = isinstance(event, events.LockGone) or (
        isinstance(event, events.LockSeen) and not event.ours
    )
    return replace(state, holding=False, serving=False) if lost else state


def _create_lock(state: ElectorState) -> Step:
    if state.creating:
        return Step(state)
    return Step(
        replace(state, creating=True), (elector_actions.CreateLock(state.session, state.data),)
    )


def _look_at_lock(state: ElectorState) -> Step:
    if not state.wanted or state.link is not Link.CONNECTED or state.looking or state.creating:
        return Step(state)
    return Step(replace(state, looking=True), (elector_actions.WatchLock(state.session),))


def _handle_own_lock(state: ElectorState) -> Step:
    """Handle that our session owns the lock."""
    match state.role:
        case Role.ACTIVE | Role.TAKING_OVER:
            return Step(replace(state, holding=True))
        case Role.NEUTRAL if state.serving:
            # The same session has owned the lock without a break.
            return Step(replace(state, holding=True, role=Role.ACTIVE))
        case Role.INIT | Role.STANDBY | Role.NEUTRAL:
            return _take_over(state)
    assert_never(state.role)


def _take_over(state: ElectorState) -> Step:
    attempt = AttemptNumber(state.attempt + 1)
    taking = replace(
        state,
        role=Role.TAKING_OVER,
        holding=True,
        serving=False,
        attempt=attempt,
        stage=Stage.READING,
        breadcrumb_version=None,
        looking=True,
    )
    # The read needs no sync: our session has seen its own create, and the last owner wrote the
    # breadcrumb before its lock could be deleted.
    return Step(
        taking,
        (
            elector_actions.ReadBreadcrumb(state.session, attempt),
            elector_actions.WatchLock(state.session),
        ),
    )


def _stand_by(state: ElectorState) -> Step:
    """Handle that another session owns the lock."""
    actions = _abandon_takeover(state)
    if state.role is not Role.STANDBY:
        actions = (*actions, elector_actions.ServeAsStandby())
    standby = replace(state, role=Role.STANDBY, holding=False, serving=False, stage=Stage.NONE)
    return Step(standby, actions)


def _create_anew(state: ElectorState) -> Step:
    """Create the lock, because there is none; enter neutral first if we held it."""
    actions: tuple[elector_actions.Action, ...] = ()
    if state.holding:
        neutral = _enter_neutral(state)
        state, actions = neutral.state, neutral.actions
    created = _create_lock(replace(state, holding=False, serving=False))
    return Step(created.state, (*actions, *created.actions))


# -- taking over -----------------------------------------------------------------------------


def _handle_takeover(state: ElectorState, event: _TakeoverEvent) -> Step:
    if event.attempt != state.attempt or state.stage is Stage.NONE:
        return Step(state)
    match event:
        case events.BreadcrumbRead() | events.BreadcrumbWritten() if event.session != state.session:
            return Step(state)
        case events.TakeoverFailed():
            left = _leave(replace(state, stage=Stage.NONE))
            report = elector_actions.ReportFailure(event.attempt, event.reason)
            return Step(left.state, (*left.actions, report))
        case _:
            return advance_takeover(state, event)


def _abandon_takeover(state: ElectorState) -> tuple[elector_actions.Action, ...]:
    return () if state.stage is Stage.NONE else (elector_actions.AbandonTakeover(state.attempt),)

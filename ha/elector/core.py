"""The election as a function of state and event: docs/reference/election.md#events.

    INIT --join--> (asks for the lock) --other's--> STANDBY
                                      --ours-----> TAKING_OVER --promoted--> ACTIVE
    any --suspended, expired--> NEUTRAL --looked again--> STANDBY | TAKING_OVER | ACTIVE
    any --quit, takeover failed, given up--> INIT

Every answer of ZooKeeper carries the session it belongs to and every answer of a takeover its
attempt; what belongs to another session or attempt changes nothing.  An attempt ends with the
ground it stands on: at a suspension, an expiry, the lock's disappearance or a request to quit.
"""

from dataclasses import replace
from typing import assert_never

from ha.elector import actions as elector_actions
from ha.elector import events
from ha.elector.invariants import check
from ha.elector.model import AttemptNumber, Link, Role, SessionNumber, Stage
from ha.elector.state import ElectorState, Step
from ha.elector.takeover import answer_takeover

_TakeoverAnswer = (
    events.BreadcrumbRead
    | events.BreadcrumbWritten
    | events.OldActiveFenced
    | events.Promoted
    | events.TakeoverFailed
)
_SessionNews = (
    events.SessionOpened | events.SessionSuspended | events.SessionExpired | events.SessionRefused
)
_LockNews = (
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
    """Return the state of the election after an event, and the actions to carry out.

    Raises:
        InvariantBroken: if that must never be.
    """
    return check(state, event, _step(state, event))


def _step(state: ElectorState, event: events.Event) -> Step:
    match event:
        case events.JoinRequested():
            return _join(state, event.data)
        case events.QuitRequested():
            return _quit(state, keep_breadcrumb=event.keep_breadcrumb, ended=event.ended)
        case events.LookDue():
            return _look(state)
        case (
            events.SessionOpened()
            | events.SessionSuspended()
            | events.SessionExpired()
            | events.SessionRefused()
        ):
            return _session_news(state, event)
        case (
            events.BreadcrumbRead()
            | events.BreadcrumbWritten()
            | events.OldActiveFenced()
            | events.Promoted()
            | events.TakeoverFailed()
        ):
            return _takeover_news(state, event)
        case _:
            return _lock_news(state, event)


# -- asked by the controller -----------------------------------------------------------------


def _join(state: ElectorState, data: bytes) -> Step:
    if not data:
        raise ValueError("joining the election needs the data that names this node")
    if state.wanted:
        return Step(state)
    return _open(replace(state, wanted=True, data=data, role=Role.INIT))


def _quit(state: ElectorState, *, keep_breadcrumb: bool, ended: str) -> Step:
    if not state.wanted:
        return Step(state)
    # While we still hold the lock: afterwards breadcrumb and record are the next owner's.
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
    """Leave the election: nothing of ours is left at ZooKeeper but perhaps the breadcrumb."""
    abandoned = _abandonment(state)
    release: tuple[elector_actions.Action, ...] = ()
    if state.holding and state.link is Link.CONNECTED:
        release = (elector_actions.ReleaseLock(state.session),)
    left = ElectorState(session=state.session, attempt=state.attempt)
    return Step(
        left, (*abandoned, *before_release, *release, elector_actions.CloseSession(state.session))
    )


def _open(state: ElectorState) -> Step:
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


def _session_news(state: ElectorState, event: _SessionNews) -> Step:
    if event.session != state.session or not state.wanted:
        return Step(state)
    match event:
        case events.SessionOpened():
            return _handle_opened(state)
        case events.SessionSuspended():
            return _neutral(replace(state, link=Link.SUSPENDED, creating=False, looking=False))
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
            return _create(state)
        case Link.SUSPENDED:
            # kazoo dropped the watch, and a create that was under way may have succeeded: only the
            # owner recorded in the lock can answer that.
            return _look(state)
        case Link.CONNECTED | Link.CLOSED:
            return Step(state)
    assert_never(before)


def _start_over(state: ElectorState) -> Step:
    """Open a new session with a new client: kazoo's own second session would mix their answers."""
    neutral = _neutral(state)
    opened = _open(neutral.state)
    return Step(
        opened.state,
        (*neutral.actions, elector_actions.CloseSession(state.session), *opened.actions),
    )


def _neutral(state: ElectorState) -> Step:
    """Enter the neutral role: the lock's owner is not known.  Our NameNode keeps its role.

    See docs/reference/election.md#zookeeper-away.
    """
    actions = _abandonment(state)
    if state.role not in (Role.NEUTRAL, Role.INIT):
        actions = (*actions, elector_actions.EnterNeutral())
    role = Role.INIT if state.role is Role.INIT else Role.NEUTRAL
    return Step(replace(state, role=role, stage=Stage.NONE), actions)


def _give_up(state: ElectorState, reason: str) -> Step:
    left = _leave(state)
    return Step(left.state, (*left.actions, elector_actions.GiveUp(reason)))


# -- the lock --------------------------------------------------------------------------------


def _lock_news(state: ElectorState, event: _LockNews) -> Step:  # noqa: C901 - flat dispatch
    if event.session != state.session:
        return Step(state)
    if state.link is not Link.CONNECTED:
        return Step(_apply_stale_news(state, event))
    match event:
        case events.LockCreated():
            return _own_lock(replace(state, creating=False))
        case events.LockTaken():
            return _look(replace(state, creating=False))
        case events.LockSeen():
            state = replace(state, looking=False)
            return _own_lock(state) if event.ours else _others(state)
        case events.LockGone():
            return _retake(replace(state, looking=False))
        case events.LockChanged():
            return _look(state)
        case events.LookUnanswered():
            return Step(replace(state, looking=False))
        case events.OutcomeUnknown():
            # It may still take effect, now or in a minute.  Only the session's end bounds it.
            return _start_over(state)
        case events.RequestRefused():
            return _give_up(state, f"{event.request}: {event.reason}")
    assert_never(event)


def _apply_stale_news(state: ElectorState, event: _LockNews) -> ElectorState:
    """Note only bad news of an answer from before a suspension; the reconnect brings a new look.

    The bad schedule: the lock was another's for a moment, we hear of it only now, and the next look
    finds it ours again.  Our NameNode's promotion was under the earlier lock; it proves nothing.
    """
    lost = isinstance(event, events.LockGone) or (
        isinstance(event, events.LockSeen) and not event.ours
    )
    return replace(state, holding=False, serving=False) if lost else state


def _create(state: ElectorState) -> Step:
    if state.creating:
        return Step(state)
    return Step(
        replace(state, creating=True), (elector_actions.CreateLock(state.session, state.data),)
    )


def _look(state: ElectorState) -> Step:
    if not state.wanted or state.link is not Link.CONNECTED or state.looking or state.creating:
        return Step(state)
    return Step(replace(state, looking=True), (elector_actions.WatchLock(state.session),))


def _own_lock(state: ElectorState) -> Step:
    """Go on as the owner: the lock is this session's."""
    match state.role:
        case Role.ACTIVE | Role.TAKING_OVER:
            return Step(replace(state, holding=True))
        case Role.NEUTRAL if state.serving:
            # The same session created this lock and never lost it: nothing has moved.
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
    # The breadcrumb read here is fresh without a sync: the session has seen its own create,
    # and the last owner wrote before its lock could go.
    return Step(
        taking,
        (
            elector_actions.ReadBreadcrumb(state.session, attempt),
            elector_actions.WatchLock(state.session),
        ),
    )


def _others(state: ElectorState) -> Step:
    """Stand by: another session owns the lock."""
    actions = _abandonment(state)
    if state.role is not Role.STANDBY:
        actions = (*actions, elector_actions.ServeAsStandby())
    standby = replace(state, role=Role.STANDBY, holding=False, serving=False, stage=Stage.NONE)
    return Step(standby, actions)


def _retake(state: ElectorState) -> Step:
    """Try to create the lock: there is none, its former holder has lost it, even if that was us."""
    actions: tuple[elector_actions.Action, ...] = ()
    if state.holding:
        neutral = _neutral(state)
        state, actions = neutral.state, neutral.actions
    created = _create(replace(state, holding=False, serving=False))
    return Step(created.state, (*actions, *created.actions))


# -- taking over -----------------------------------------------------------------------------


def _takeover_news(state: ElectorState, event: _TakeoverAnswer) -> Step:
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
            return answer_takeover(state, event)


def _abandonment(state: ElectorState) -> tuple[elector_actions.Action, ...]:
    return () if state.stage is Stage.NONE else (elector_actions.AbandonTakeover(state.attempt),)

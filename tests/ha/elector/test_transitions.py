"""Every state of the election, every event in it: what becomes of it, and what is asked for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ha.elector.actions import Action
from ha.elector.core import step
from ha.elector.events import (
    BreadcrumbRead,
    BreadcrumbWritten,
    Event,
    JoinRequested,
    LockChanged,
    LockCreated,
    LockGone,
    LockSeen,
    LockTaken,
    LookDue,
    LookUnanswered,
    OldActiveFenced,
    OutcomeUnknown,
    Promoted,
    QuitRequested,
    RequestRefused,
    SessionExpired,
    SessionOpened,
    SessionRefused,
    SessionSuspended,
    TakeoverFailed,
)
from ha.elector.model import AttemptNumber, Breadcrumb, SessionNumber, Term
from ha.elector.state import ElectorState
from tests.transitions import explored, same_as

TABLE = Path(__file__).with_name("transitions.txt")
SESSION, ATTEMPT = SessionNumber(8), AttemptNumber(5)
MOST_STATES = 1000
CRUMBS = (
    None,
    Breadcrumb(b"me", 0, Term.SETTLED),
    Breadcrumb(b"me", 0, Term.DOUBTED),
    Breadcrumb(b"other", 0, Term.ENDED),
    Breadcrumb(b"other", 0, Term.UNKNOWN),
)


def events(state: ElectorState) -> Iterator[Event]:
    """Yield those of the present session and attempt, and of those before."""
    yield from (JoinRequested(b"me"), JoinRequested(b""), LookDue())
    for keep in (False, True):
        yield from (QuitRequested(keep), QuitRequested(keep, "told"))
    for session in (state.session, SessionNumber(state.session - 1)):
        yield from (SessionOpened(session), SessionSuspended(session), SessionExpired(session))
        yield from (SessionRefused(session, "why"), LockCreated(session), LockTaken(session))
        yield from (LockSeen(session, ours=True), LockSeen(session, ours=False), LockGone(session))
        yield from (LockChanged(session), LookUnanswered(session))
        yield from (OutcomeUnknown(session, "a"), RequestRefused(session, "a", "why"))
        for attempt in (state.attempt, AttemptNumber(state.attempt - 1)):
            yield from (BreadcrumbRead(session, attempt, crumb) for crumb in CRUMBS)
            yield BreadcrumbWritten(session, attempt, 1)
    for attempt in (state.attempt, AttemptNumber(state.attempt - 1)):
        yield from (OldActiveFenced(attempt), Promoted(attempt), TakeoverFailed(attempt, "why"))


def took(state: ElectorState, event: Event) -> tuple[ElectorState, tuple[Action, ...]]:
    result = step(state, event)
    return result.state, result.actions


def normal(state: ElectorState) -> ElectorState:
    """Sessions and attempts are compared with the present ones, and never in another way."""
    return replace(state, session=SESSION, attempt=ATTEMPT)


def test_every_transition_is_as_it_was_reviewed() -> None:
    same_as(TABLE, explored(ElectorState(), events, took, normal, most=MOST_STATES))

"""Every state of the election, every event in it: what becomes of it, and what is asked for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ha.elector import events as on
from ha.elector.actions import Action
from ha.elector.core import step
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


def events(state: ElectorState) -> Iterator[on.Event]:
    """Yield those of the present session and attempt, and of those before."""
    yield from (on.JoinRequested(b"me"), on.JoinRequested(b""), on.LookDue())
    for keep in (False, True):
        yield from (on.QuitRequested(keep), on.QuitRequested(keep, "told"))
    for session in (state.session, SessionNumber(state.session - 1)):
        yield from (
            on.SessionOpened(session),
            on.SessionSuspended(session),
            on.SessionExpired(session),
        )
        yield from (
            on.SessionRefused(session, "why"),
            on.LockCreated(session),
            on.LockTaken(session),
        )
        yield from (
            on.LockSeen(session, ours=True),
            on.LockSeen(session, ours=False),
            on.LockGone(session),
        )
        yield from (on.LockChanged(session), on.LookUnanswered(session))
        yield from (on.OutcomeUnknown(session, "a"), on.RequestRefused(session, "a", "why"))
        for attempt in (state.attempt, AttemptNumber(state.attempt - 1)):
            yield from (on.BreadcrumbRead(session, attempt, crumb) for crumb in CRUMBS)
            yield on.BreadcrumbWritten(session, attempt, 1)
    for attempt in (state.attempt, AttemptNumber(state.attempt - 1)):
        yield from (
            on.OldActiveFenced(attempt),
            on.Promoted(attempt),
            on.TakeoverFailed(attempt, "why"),
        )


def took(state: ElectorState, event: on.Event) -> tuple[ElectorState, tuple[Action, ...]]:
    result = step(state, event)
    return result.state, result.actions


def normal(state: ElectorState) -> ElectorState:
    """Sessions and attempts are compared with the present ones, and never in another way."""
    return replace(state, session=SESSION, attempt=ATTEMPT)


def test_every_transition_is_as_it_was_reviewed() -> None:
    same_as(TABLE, explored(ElectorState(), events, took, normal, most=MOST_STATES))

"""For every order of events, no NameNode is promoted without lock, fence and breadcrumb."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ha.elector import actions
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
    SessionExpired,
    SessionOpened,
    SessionSuspended,
    TakeoverFailed,
)
from ha.elector.model import AttemptNumber, Breadcrumb, Role, SessionNumber
from ha.elector.state import ElectorState

ME, OTHER = b"me", b"other"

_sessions = st.integers(0, 4).map(SessionNumber)
_attempts = st.integers(0, 5).map(AttemptNumber)
_breadcrumbs = st.one_of(
    st.none(), st.builds(Breadcrumb, st.sampled_from([ME, OTHER]), st.integers(0, 3))
)


def _relative() -> st.SearchStrategy[Event]:
    return st.one_of(
        st.just(JoinRequested(ME)),
        st.builds(QuitRequested, keep_breadcrumb=st.booleans()),
        st.just(LookDue()),
        *(
            st.builds(kind, _sessions)
            for kind in (
                SessionOpened, SessionSuspended, SessionExpired, LockCreated, LockTaken, LockGone,
                LockChanged, LookUnanswered,
            )
        ),
        st.builds(LockSeen, _sessions, st.booleans()),
        st.builds(OutcomeUnknown, _sessions, st.just("request")),
        st.builds(BreadcrumbRead, _sessions, _attempts, _breadcrumbs),
        st.builds(BreadcrumbWritten, _sessions, _attempts, st.integers(0, 9)),
        st.builds(OldActiveFenced, _attempts),
        st.builds(Promoted, _attempts),
        st.builds(TakeoverFailed, _attempts, st.just("no")),
    )  # fmt: skip


@dataclass
class Oracle:
    """Knows from events and actions alone what was proven; it never asks the elector."""

    session: SessionNumber = SessionNumber(0)
    attempt: AttemptNumber = AttemptNumber(0)
    locked: bool = False
    fenced: bool = False
    written: bool = False
    served: bool = False
    """Our NameNode was promoted under a lock that has not been lost since."""
    asked: set[str] = field(default_factory=set)

    def forget(self) -> None:
        self.locked = self.fenced = self.written = False
        self.asked.clear()

    def lose(self) -> None:
        self.forget()
        self.served = False

    def saw(self, event: Event) -> None:
        match event:
            case SessionSuspended(session=s) if s == self.session:
                self.forget()
            case SessionExpired(session=s) | LockGone(session=s) if s == self.session:
                self.lose()
            case LockSeen(session=s, ours=False) if s == self.session:
                self.lose()
            case Promoted(attempt=a) if a == self.attempt and "promote" in self.asked:
                self.served = True
            case LockCreated(session=s) | LockSeen(session=s, ours=True) if s == self.session:
                self.locked = True
            case BreadcrumbRead(session=s, attempt=a, breadcrumb=b):
                mine = (s, a) == (self.session, self.attempt) and "read" in self.asked
                if mine and (b is None or b.content == ME):
                    self.fenced = True
            case OldActiveFenced(attempt=a) if a == self.attempt and "fence" in self.asked:
                self.fenced = True
            case BreadcrumbWritten(session=s, attempt=a) if "write" in self.asked:
                self.written = self.written or (s, a) == (self.session, self.attempt)
            case _:
                pass

    def asks(self, action: object) -> None:
        match action:
            case actions.OpenSession(session=s):
                assert s > self.session, "each session is a new one"
                self.lose()
                self.session = s
            case actions.CloseSession(session=s):
                assert s == self.session
                self.forget()
            case (
                actions.CreateLock(session=s)
                | actions.WatchLock(session=s)
                | actions.ReleaseLock(session=s)
            ):
                assert s == self.session
            case actions.ReadBreadcrumb(session=s, attempt=a):
                assert s == self.session
                assert a > self.attempt, "each takeover is a new attempt"
                self.attempt = a
                assert self.locked, "a breadcrumb is read under the lock"
                self.fenced = self.written = False
                self.asked = {"read"}
            case actions.FenceOldActive(content=content):
                assert self.locked, "only the lock's owner fences"
                assert content != ME, "nobody fences himself"
                self.asked.add("fence")
            case actions.WriteBreadcrumb():
                assert self.locked
                assert self.fenced, "fence before the own breadcrumb"
                self.asked.add("write")
            case actions.DeleteBreadcrumb():
                assert self.locked, "the breadcrumb is the next owner's"
            case actions.ServeAsActive():
                assert self.locked, "promoted without the lock"
                assert self.fenced, "promoted without fencing"
                assert self.written, "promoted without a breadcrumb"
                self.asked.add("promote")
            case _:
                pass


def _near(event: Event, state: ElectorState) -> Event:
    """Shift session and attempt to the present ones, so that events matter more often."""
    match event:
        case SessionOpened() | LockCreated() | LockTaken() | LockChanged() | LookUnanswered():
            return type(event)(SessionNumber(state.session - event.session // 4))
        case SessionSuspended() | SessionExpired() | LockGone():
            return type(event)(SessionNumber(state.session - event.session // 2))
        case LockSeen(session=s, ours=ours):
            return LockSeen(SessionNumber(state.session - s // 4), ours)
        case BreadcrumbRead(session=s, attempt=a, breadcrumb=b):
            return BreadcrumbRead(
                SessionNumber(state.session - s // 4), AttemptNumber(state.attempt - a // 5), b
            )
        case BreadcrumbWritten(session=s, attempt=a, version=v):
            return BreadcrumbWritten(
                SessionNumber(state.session - s // 4), AttemptNumber(state.attempt - a // 5), v
            )
        case OldActiveFenced(attempt=a):
            return OldActiveFenced(AttemptNumber(state.attempt - a // 5))
        case Promoted(attempt=a):
            return Promoted(AttemptNumber(state.attempt - a // 5))
        case TakeoverFailed(attempt=a, reason=reason):
            return TakeoverFailed(AttemptNumber(state.attempt - a // 3), reason)
        case _:
            return event


def _answer(action: actions.Action, roll: int) -> Event | None:
    """Return what the world may well answer to this, now or much later."""
    match action:
        case actions.OpenSession(session=s):
            return SessionOpened(s)
        case actions.CreateLock(session=s):
            return LockCreated(s) if roll % 3 else LockTaken(s)
        case actions.WatchLock(session=s):
            return LockSeen(s, ours=roll % 4 > 0)
        case actions.ReadBreadcrumb(session=s, attempt=a):
            return BreadcrumbRead(s, a, Breadcrumb(OTHER if roll % 4 else ME, 1))
        case actions.WriteBreadcrumb(session=s, attempt=a):
            return BreadcrumbWritten(s, a, 2)
        case actions.FenceOldActive(attempt=a):
            return OldActiveFenced(a)
        case actions.ServeAsActive(attempt=a):
            return Promoted(a)
        case _:
            return None


@settings(max_examples=800, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), _relative()), min_size=10, max_size=70))
def test_no_promotion_without_lock_fence_and_breadcrumb(rolls: list[tuple[int, Event]]) -> None:
    state, oracle = ElectorState(), Oracle()
    unanswered: list[actions.Action] = []
    for roll, wished in ((0, JoinRequested(ME)), *rolls):
        event: Event | None = None
        if roll >= 25 and unanswered:
            # Mostly the newest request is answered, sometimes one that is long forgotten.
            event = _answer(unanswered.pop(-1 if roll < 90 else 0), roll)
        event = event or _near(wished, state)
        before = state
        oracle.saw(event)
        result = step(state, event)
        state = result.state
        for action in result.actions:
            oracle.asks(action)
        unanswered.extend(result.actions)
        if state.role is Role.ACTIVE and before.role is not Role.ACTIVE:
            assert oracle.locked, "active without the lock"
            assert oracle.served, "active without a promotion under this lock"
        if not state.wanted:
            assert state.role is Role.INIT


def test_a_lock_that_was_anothers_during_a_suspension_needs_a_new_promotion() -> None:
    state = ElectorState()
    for event in (
        JoinRequested(ME),
        SessionOpened(SessionNumber(1)),
        LockCreated(SessionNumber(1)),
        BreadcrumbRead(SessionNumber(1), AttemptNumber(1), None),
        BreadcrumbWritten(SessionNumber(1), AttemptNumber(1), 0),
        Promoted(AttemptNumber(1)),
        SessionSuspended(SessionNumber(1)),
        LockSeen(SessionNumber(1), ours=False),
        SessionOpened(SessionNumber(1)),
    ):
        state = step(state, event).state
    assert state.role is Role.NEUTRAL
    assert step(state, LockSeen(SessionNumber(1), ours=True)).state.role is Role.TAKING_OVER

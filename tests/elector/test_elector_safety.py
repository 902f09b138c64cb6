"""Whatever happens in whatever order, nobody is promoted without lock, fence and breadcrumb."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ha.elector.actions import (
    CloseSession,
    CreateLock,
    DeleteBreadcrumb,
    FenceOldActive,
    OpenSession,
    ReadBreadcrumb,
    ReleaseLock,
    ServeAsActive,
    WatchLock,
    WriteBreadcrumb,
)
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
    locked: bool = False
    fenced: bool = False
    written: bool = False
    asked: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """Nothing is proven any more."""
        self.locked = self.fenced = self.written = False
        self.asked.clear()

    def saw(self, event: Event) -> None:
        """What an event proves or disproves."""
        match event:
            case SessionSuspended(session=s) | SessionExpired(session=s) | LockGone(session=s):
                if s == self.session:
                    self.forget()
            case LockSeen(session=s, ours=False) if s == self.session:
                self.forget()
            case LockCreated(session=s) | LockSeen(session=s, ours=True) if s == self.session:
                self.locked = True
            case BreadcrumbRead(session=s, breadcrumb=b) if s == self.session:
                if "read" in self.asked and (b is None or b.content == ME):
                    self.fenced = True
            case OldActiveFenced() if "fence" in self.asked:
                self.fenced = True
            case BreadcrumbWritten(session=s) if s == self.session and "write" in self.asked:
                self.written = True
            case _:
                pass

    def asks(self, action: object) -> None:
        """What an action presumes."""
        match action:
            case OpenSession(session=s):
                assert s > self.session, "each session is a new one"
                self.forget()
                self.session = s
            case CloseSession(session=s):
                assert s == self.session
                self.forget()
            case CreateLock(session=s) | WatchLock(session=s) | ReleaseLock(session=s):
                assert s == self.session
            case ReadBreadcrumb(session=s):
                assert s == self.session
                assert self.locked, "a breadcrumb is read under the lock"
                self.fenced = self.written = False
                self.asked = {"read"}
            case FenceOldActive(content=content):
                assert self.locked, "only the lock's owner fences"
                assert content != ME, "nobody fences himself"
                self.asked.add("fence")
            case WriteBreadcrumb():
                assert self.locked
                assert self.fenced, "fence before the own breadcrumb"
                self.asked.add("write")
            case DeleteBreadcrumb():
                assert self.locked, "the breadcrumb is the next owner's"
            case ServeAsActive():
                assert self.locked, "promoted without the lock"
                assert self.fenced, "promoted without fencing"
                assert self.written, "promoted without a breadcrumb"
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


@settings(max_examples=600, deadline=None)
@given(st.lists(_relative(), min_size=5, max_size=60))
def test_no_promotion_without_lock_fence_and_breadcrumb(events: list[Event]) -> None:
    state, oracle = ElectorState(), Oracle()
    for wished in (JoinRequested(ME), *events):
        event = _near(wished, state)
        before = state
        current = not isinstance(event, BreadcrumbRead | BreadcrumbWritten | OldActiveFenced) or (
            event.attempt == state.attempt
        )
        if current:
            oracle.saw(event)
        result = step(state, event)
        state = result.state
        for action in result.actions:
            oracle.asks(action)
        if state.role is Role.ACTIVE and before.role is not Role.ACTIVE:
            assert oracle.locked, "active without the lock"
        if not state.wanted:
            assert state.role is Role.INIT

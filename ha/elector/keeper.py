"""Carries out what the core asks of ZooKeeper, and turns each request's end into an event."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol, TypeVar, assert_never, runtime_checkable

import structlog

from ha.elector import actions, events
from ha.elector.lock_keeper import LockKeeper
from ha.elector.model import AttemptNumber, Breadcrumb, Removal, SessionNumber, Term
from ha.elector.term_keeper import TermKeeper
from ha.elector.zookeeper.client import Session, SessionFactory
from ha.elector.zookeeper.outcome import (
    Done,
    Doubt,
    Outcome,
    Refusal,
    Refused,
    SessionState,
    Unknown,
    ZnodeFacts,
)
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings

log = structlog.get_logger()

T = TypeVar("T")
Crashed = TypeVar("Crashed")
Post = Callable[[events.Event], None]

_ADVICE = {
    Refusal.NO_NODE: "; its parent was deleted: run zkfc --format-zk once, then start all zkfcs",
    Refusal.NO_RIGHTS: "; see ha.zookeeper.auth, and ha.zookeeper.acl of who formatted",
}

_CRASHED: Final = Unknown(Doubt.LATE)
"""The end of a request whose code failed: only a new session settles what ZooKeeper did."""


class Keeper(Protocol):
    """ZooKeeper as the runner sees it; the simulator has another one."""

    def perform(self, action: actions.ZooKeeperAction) -> None:
        """Begin this; its end arrives as an event."""

    @property
    def session_timeout_seconds(self) -> float | None:
        """As negotiated; None without a session."""

    @property
    def last_contact(self) -> float | None:
        """When the newest answered request was sent, on the loop's clock."""

    async def settled(self) -> None:
        """Return when nothing that was begun to leave the election is still under way."""


@runtime_checkable
class LockReader(Protocol):
    """A keeper that can also be asked who holds the lock, in a session that is open already."""

    def read_lock(self) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]] | None:
        """Ask for the lock's content in the newest session; None without one."""


@runtime_checkable
class LockRemover(Protocol):
    """A keeper that can also remove another's lock, in a session that is open already."""

    async def remove_lock(self, made: int, still: Callable[[], bool]) -> Removal:
        """Delete another's lock, the one that this transaction has made, if we may ``still``."""


class KazooKeeper:
    """The keeper of a real ensemble; ``post`` gets the events, on the loop."""

    def __init__(
        self,
        settings: ZooKeeperSettings,
        post: Post,
        *,
        on_release: Callable[[], None] = lambda: None,
        ticket: SessionTicket | None = None,
        keep_ticket: Callable[[SessionTicket | None], None] = lambda _: None,
        open_session: SessionFactory = Session,
    ) -> None:
        """Continue in the first session with the ``ticket`` of a controller that was killed.

        ``keep_ticket`` is called with each session's ticket, and with None when it has been closed.
        """
        self._settings = settings
        self._post = post
        self._on_release = on_release
        self._inherited = ticket
        self._keep_ticket = keep_ticket
        self._open_session = open_session
        self._sessions: dict[SessionNumber, Session] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._releases: set[asyncio.Future[Outcome[None]]] = set()
        self._terms = TermKeeper(settings)
        self._lock = LockKeeper(settings)
        self._contact: float | None = None

    @property
    def session_timeout_seconds(self) -> float | None:
        """As negotiated by the newest session; None without one."""
        newest = max(self._sessions, default=None)
        return None if newest is None else self._sessions[newest].timeout_seconds

    @property
    def last_contact(self) -> float | None:
        """When the newest answered request of any session was sent, on the loop's clock."""
        found = [session.last_contact for session in self._sessions.values()]
        self._contact = max(
            (one for one in (*found, self._contact) if one is not None), default=None
        )
        return self._contact

    @property
    def session_id(self) -> int | None:
        """ZooKeeper's number of the newest session."""
        newest = max(self._sessions, default=None)
        return None if newest is None else self._sessions[newest].session_id

    def read_lock(self) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]] | None:
        """Ask for the lock's content in the newest session; None without one."""
        newest = max(self._sessions, default=None)
        return None if newest is None else self._sessions[newest].read(self._settings.lock)

    async def remove_lock(self, made: int, still: Callable[[], bool]) -> Removal:
        """Delete another's lock in the newest session, see ``LockKeeper.remove``."""
        newest = max(self._sessions, default=None)
        if newest is None:
            return Removal.UNKNOWN
        return await self._lock.remove(self._sessions[newest], made, still)

    async def settled(self) -> None:
        """Return when the released lock and the closed sessions are gone, or given up."""
        while self._releases or self._leaving:
            if self._releases:
                await asyncio.wait(set(self._releases))
            if self._leaving:
                await asyncio.wait(set(self._leaving))

    def perform(self, action: actions.ZooKeeperAction) -> None:  # noqa: C901 - flat dispatch
        """Begin the action; a session that is gone already answers nothing."""
        if isinstance(action, actions.OpenSession):
            self._open(action.session)
            return
        session = self._sessions.get(action.session)
        if session is None:
            return
        match action:
            case actions.CloseSession():
                self._close(action.session)
            case actions.CreateLock():
                created = self._lock.create(session, action.data)
                request = asyncio.ensure_future(_answer_of(lambda: created, _CRASHED))
                request.add_done_callback(partial(self._created, action))
            case actions.WatchLock():
                look = session.look(self._settings.lock, watch=True)
                look.add_done_callback(partial(self._looked, action))
            case actions.ReleaseLock():
                self._release(session)
            case actions.ReadBreadcrumb():
                reading = partial(self._terms.read, session)
                crashed = _CRASHED, Term.UNKNOWN
                read = asyncio.ensure_future(_answer_of(reading, crashed))
                read.add_done_callback(partial(self._read, action))
            case actions.WriteBreadcrumb():
                self._write(session, action)
            case actions.DeleteBreadcrumb():
                delete = session.delete(self._settings.breadcrumb, version=action.version)
                delete.add_done_callback(_breadcrumb_deleted)
            case actions.RecordSettled():
                self._terms.settled(action.session, session, action.content)
            case actions.RecordEnded():
                self._terms.ended(action.session, session, action.told)
            case _:
                assert_never(action)

    # -- sessions ----------------------------------------------------------------------------

    @property
    def inherits(self) -> bool:
        """Whether there is a session of a killed controller that has not been taken over yet."""
        return self._inherited is not None

    async def let_go(self) -> None:
        """End the inherited session, so that its lock does not last until it expires."""
        ticket, self._inherited = self._inherited, None
        if ticket is None:
            return
        heard = asyncio.Event()
        session = self._open_session(
            self._settings, lambda _state, _why: heard.set(), ticket=ticket
        )
        session.open()
        deadline = self._settings.session_timeout_seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await heard.wait()
        confirmed = await session.close(deadline_seconds=self._settings.request_deadline_seconds)
        log.info("zookeeper.inherited_session.closed", session=repr(ticket), confirmed=confirmed)

    def _open(self, number: SessionNumber) -> None:
        ticket, self._inherited = self._inherited, None
        session = self._open_session(
            self._settings,
            partial(self._session_changed, number),
            partial(self._fired, number),
            ticket=ticket,
        )
        self._sessions[number] = session
        session.open()

    def _close(self, number: SessionNumber) -> None:
        session = self._sessions.pop(number)
        # A lock that was just released needs its delete sent first: kazoo keeps the order.
        deadline = self._settings.request_deadline_seconds
        task = asyncio.create_task(self._closed(session, deadline))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _closed(self, session: Session, deadline_seconds: float) -> None:
        if self._releases:
            # stop() halts kazoo's result thread first; wait to hear how the release ended.
            await asyncio.wait(set(self._releases))
        confirmed = await session.close(deadline_seconds=deadline_seconds)
        if confirmed and not self._sessions:
            self._keep_ticket(None)
        log.debug("zookeeper.session.closed", confirmed=confirmed)

    def _session_changed(self, number: SessionNumber, state: SessionState, reason: str) -> None:
        match state:
            case SessionState.CONNECTED:
                if number in self._sessions:
                    self._keep_ticket(self._sessions[number].ticket)
                self._post(events.SessionOpened(number))
            case SessionState.SUSPENDED:
                self._post(events.SessionSuspended(number))
            case SessionState.EXPIRED:
                self._post(events.SessionExpired(number))
            case SessionState.REFUSED:
                self._post(events.SessionRefused(number, reason))
            case _:
                assert_never(state)

    # -- the lock ----------------------------------------------------------------------------

    def _created(self, action: actions.CreateLock, request: asyncio.Future[Outcome[None]]) -> None:
        match request.result():
            case Done():
                self._post(events.LockCreated(action.session))
            case Refused(why=Refusal.NODE_EXISTS):
                self._post(events.LockTaken(action.session))
            case Refused() as refused:
                self._refused(action.session, "create the lock", refused)
            case Unknown() as unknown:
                self._unknown(action.session, "create the lock", unknown)

    def _looked(
        self, action: actions.WatchLock, request: asyncio.Future[Outcome[ZnodeFacts | None]]
    ) -> None:
        match request.result():
            case Done(value=facts):
                seen = (
                    None
                    if facts is None
                    else events.LockSeen(action.session, facts.ours, facts.written_by)
                )
                self._post(seen or events.LockGone(action.session))
            case Refused() as refused:
                self._refused(action.session, "look at the lock", refused)
            case Unknown():
                self._post(events.LookUnanswered(action.session))

    def _fired(self, session: SessionNumber, deleted: bool) -> None:  # noqa: FBT001 - callback
        self._post(events.LockGone(session) if deleted else events.LockChanged(session))

    def _release(self, session: Session) -> None:
        giving_up = partial(self._lock.give_up, session)
        release = asyncio.ensure_future(_answer_of(giving_up, _CRASHED))
        self._releases.add(release)
        release.add_done_callback(self._released)

    def _released(self, request: asyncio.Future[Outcome[None]]) -> None:
        self._releases.discard(request)
        if isinstance(request.result(), Done):
            self._on_release()
        else:
            log.warning("elector.release.unconfirmed", outcome=repr(request.result()))

    # -- the breadcrumb ----------------------------------------------------------------------

    def _read(
        self,
        action: actions.ReadBreadcrumb,
        request: asyncio.Future[tuple[Outcome[tuple[bytes, ZnodeFacts]], Term]],
    ) -> None:
        if request.cancelled():
            return
        outcome, term = request.result()
        match outcome:
            case Done(value=(content, facts)):
                breadcrumb = Breadcrumb(content, facts.version, term)
                self._post(events.BreadcrumbRead(action.session, action.attempt, breadcrumb))
            case Refused(why=Refusal.NO_NODE):
                self._post(events.BreadcrumbRead(action.session, action.attempt, None))
            case Refused() as refused:
                # Anything but "there is none" must not be taken for "there is none".
                self._failed(action.attempt, "read the breadcrumb", refused)
            case Unknown() as unknown:
                self._unknown(action.session, "read the breadcrumb", unknown)

    def _write(self, session: Session, action: actions.WriteBreadcrumb) -> None:
        path = self._settings.breadcrumb
        if action.version is None:
            create = session.create(path, action.content)
            create.add_done_callback(lambda done: self._written(action, done.result(), 0))
        else:
            write = session.write(path, action.content, version=action.version)
            write.add_done_callback(lambda done: self._written(action, done.result(), None))

    def _written(
        self,
        action: actions.WriteBreadcrumb,
        outcome: Outcome[int] | Outcome[None],
        version: int | None,
    ) -> None:
        match outcome:
            case Done(value=value):
                number = value if value is not None else version
                self._post(events.BreadcrumbWritten(action.session, action.attempt, number or 0))
            case Refused() as refused:
                self._failed(action.attempt, "write the breadcrumb", refused)
            case Unknown() as unknown:
                self._unknown(action.session, "write the breadcrumb", unknown)

    # -- what all requests share -------------------------------------------------------------

    def _refused(self, session: SessionNumber, request: str, refused: Refused) -> None:
        if refused.why is not Refusal.EXPIRED:  # the session's own event says that
            reason = f"{refused.why} ({refused.text}) at {self._settings.lock}"
            advice = _ADVICE.get(refused.why, "")
            self._post(events.RequestRefused(session, request, f"{reason}{advice}"))

    def _failed(self, attempt: AttemptNumber, request: str, refused: Refused) -> None:
        if refused.why is not Refusal.EXPIRED:
            self._post(events.TakeoverFailed(attempt, f"cannot {request}: {refused.why}"))

    def _unknown(self, session: SessionNumber, request: str, unknown: Unknown) -> None:
        # A lost connection has its own event, and the look after the reconnect settles by the
        # lock's owner.  A late answer with the connection up has nothing that would settle it.
        if unknown.why is Doubt.LATE:
            self._post(events.OutcomeUnknown(session, request))


async def _answer_of(request: Callable[[], Awaitable[T]], crashed: Crashed) -> T | Crashed:
    """Return what a request of several steps ends in, ``crashed`` where its code fails.

    Otherwise the election would wait without end for an event that never comes.
    """
    try:
        return await request()
    except Exception:
        log.exception("elector.request.crashed")
        return crashed


def _breadcrumb_deleted(request: asyncio.Future[Outcome[None]]) -> None:
    """Log that a breadcrumb stays; it costs the next owner a needless polite fence, no more."""
    outcome = request.result()
    if not isinstance(outcome, Done):
        log.warning("elector.breadcrumb.kept", outcome=repr(outcome))

"""Carries out the core's ZooKeeper actions, and posts the outcome of each as an event."""

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
"""The outcome of a request whose code raised: only a new session makes the state known."""


class Keeper(Protocol):
    """The runner's interface to ZooKeeper; the simulation has its own implementation."""

    def perform(self, action: actions.ZooKeeperAction) -> None:
        """Begin the action; its outcome is posted as an event."""

    @property
    def session_timeout_seconds(self) -> float | None:
        """The negotiated timeout; None without a session."""

    @property
    def last_contact(self) -> float | None:
        """When the last answered request was sent, on the loop's clock."""

    async def wait_idle(self) -> None:
        """Return when no release of the lock and no close of a session is under way."""


@runtime_checkable
class LockReader(Protocol):
    """A keeper that can read the lock in its open session."""

    def read_lock(self) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]] | None:
        """Ask for the lock's content in the newest session; None without one."""


@runtime_checkable
class LockRemover(Protocol):
    """A keeper that can delete a peer's lock in its open session."""

    async def remove_lock(self, made: int, still: Callable[[], bool]) -> Removal:
        """Delete the peer's lock that transaction ``made`` created, if ``still`` returns True."""


class KazooKeeper:
    """The keeper for a real ensemble; ``post`` gets the events on the event loop."""

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
        """Open the first session with the ``ticket`` of a killed controller, if given.

        ``keep_ticket`` is called with each session's ticket, and with None after its close.
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
        """The negotiated timeout of the newest session; None without one."""
        newest = max(self._sessions, default=None)
        return None if newest is None else self._sessions[newest].timeout_seconds

    @property
    def last_contact(self) -> float | None:
        """When the last answered request of any session was sent, on the loop's clock."""
        found = [session.last_contact for session in self._sessions.values()]
        self._contact = max(
            (one for one in (*found, self._contact) if one is not None), default=None
        )
        return self._contact

    @property
    def session_id(self) -> int | None:
        """ZooKeeper's id of the newest session; None without one."""
        newest = max(self._sessions, default=None)
        return None if newest is None else self._sessions[newest].session_id

    def read_lock(self) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]] | None:
        """Ask for the lock's content in the newest session; None without one."""
        newest = max(self._sessions, default=None)
        return None if newest is None else self._sessions[newest].read(self._settings.lock)

    async def remove_lock(self, made: int, still: Callable[[], bool]) -> Removal:
        """Delete a peer's lock in the newest session; see ``LockKeeper.remove``."""
        newest = max(self._sessions, default=None)
        if newest is None:
            return Removal.UNKNOWN
        return await self._lock.remove(self._sessions[newest], made, still)

    async def wait_idle(self) -> None:
        """Return when each release of the lock and close of a session has ended or timed out."""
        while self._releases or self._leaving:
            if self._releases:
                await asyncio.wait(set(self._releases))
            if self._leaving:
                await asyncio.wait(set(self._leaving))

    def perform(self, action: actions.ZooKeeperAction) -> None:  # noqa: C901 - flat dispatch
        """Begin the action; ignore one for a session that was closed."""
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
                request = asyncio.ensure_future(_run_request(lambda: created, _CRASHED))
                request.add_done_callback(partial(self._post_created, action))
            case actions.WatchLock():
                look = session.look(self._settings.lock, watch=True)
                look.add_done_callback(partial(self._post_lock, action))
            case actions.ReleaseLock():
                self._release(session)
            case actions.ReadBreadcrumb():
                reading = partial(self._terms.read, session)
                crashed = _CRASHED, Term.UNKNOWN
                read = asyncio.ensure_future(_run_request(reading, crashed))
                read.add_done_callback(partial(self._post_breadcrumb, action))
            case actions.WriteBreadcrumb():
                self._write(session, action)
            case actions.DeleteBreadcrumb():
                delete = session.delete(self._settings.breadcrumb, version=action.version)
                delete.add_done_callback(_log_kept_breadcrumb)
            case actions.RecordSettled():
                self._terms.record_settled(action.session, session, action.content)
            case actions.RecordEnded():
                self._terms.record_ended(action.session, session, action.told)
            case _:
                assert_never(action)

    # -- sessions ----------------------------------------------------------------------------

    @property
    def inherits(self) -> bool:
        """Whether a session of a killed controller is neither continued nor closed yet."""
        return self._inherited is not None

    async def close_inherited(self) -> None:
        """Close the inherited session, so that its lock does not last until it expires."""
        ticket, self._inherited = self._inherited, None
        if ticket is None:
            return
        changed = asyncio.Event()
        session = self._open_session(
            self._settings, lambda _state, _why: changed.set(), ticket=ticket
        )
        session.open()
        deadline = self._settings.session_timeout_seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                await changed.wait()
        confirmed = await session.close(deadline_seconds=self._settings.request_deadline_seconds)
        log.info("zookeeper.inherited_session.closed", session=repr(ticket), confirmed=confirmed)

    def _open(self, number: SessionNumber) -> None:
        ticket, self._inherited = self._inherited, None
        session = self._open_session(
            self._settings,
            partial(self._session_changed, number),
            partial(self._post_change, number),
            ticket=ticket,
        )
        self._sessions[number] = session
        session.open()

    def _close(self, number: SessionNumber) -> None:
        session = self._sessions.pop(number)
        # Later, so that kazoo sends the delete of a released lock before the close.
        deadline = self._settings.request_deadline_seconds
        task = asyncio.create_task(self._close_session(session, deadline))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _close_session(self, session: Session, deadline_seconds: float) -> None:
        if self._releases:
            # kazoo's stop() ends the thread that delivers results: wait for the release first.
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

    def _post_created(
        self, action: actions.CreateLock, request: asyncio.Future[Outcome[None]]
    ) -> None:
        match request.result():
            case Done():
                self._post(events.LockCreated(action.session))
            case Refused(why=Refusal.NODE_EXISTS):
                self._post(events.LockTaken(action.session))
            case Refused() as refused:
                self._post_refused(action.session, "create the lock", refused)
            case Unknown() as unknown:
                self._post_unknown(action.session, "create the lock", unknown)

    def _post_lock(
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
                self._post_refused(action.session, "look at the lock", refused)
            case Unknown():
                self._post(events.LookUnanswered(action.session))

    def _post_change(self, session: SessionNumber, deleted: bool) -> None:  # noqa: FBT001 - callback
        self._post(events.LockGone(session) if deleted else events.LockChanged(session))

    def _release(self, session: Session) -> None:
        releasing = partial(self._lock.release, session)
        release = asyncio.ensure_future(_run_request(releasing, _CRASHED))
        self._releases.add(release)
        release.add_done_callback(self._finish_release)

    def _finish_release(self, request: asyncio.Future[Outcome[None]]) -> None:
        self._releases.discard(request)
        if isinstance(request.result(), Done):
            self._on_release()
        else:
            log.warning("elector.release.unconfirmed", outcome=repr(request.result()))

    # -- the breadcrumb ----------------------------------------------------------------------

    def _post_breadcrumb(
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
                # Not an absent breadcrumb: with none, the former active would not be fenced.
                self._post_failed(action.attempt, "read the breadcrumb", refused)
            case Unknown() as unknown:
                self._post_unknown(action.session, "read the breadcrumb", unknown)

    def _write(self, session: Session, action: actions.WriteBreadcrumb) -> None:
        path = self._settings.breadcrumb
        if action.version is None:
            create = session.create(path, action.content)
            create.add_done_callback(lambda done: self._post_written(action, done.result(), 0))
        else:
            write = session.write(path, action.content, version=action.version)
            write.add_done_callback(lambda done: self._post_written(action, done.result(), None))

    def _post_written(
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
                self._post_failed(action.attempt, "write the breadcrumb", refused)
            case Unknown() as unknown:
                self._post_unknown(action.session, "write the breadcrumb", unknown)

    # -- failed requests ---------------------------------------------------------------------

    def _post_refused(self, session: SessionNumber, request: str, refused: Refused) -> None:
        if refused.why is not Refusal.EXPIRED:  # SessionExpired is posted, too
            reason = f"{refused.why} ({refused.text}) at {self._settings.lock}"
            advice = _ADVICE.get(refused.why, "")
            self._post(events.RequestRefused(session, request, f"{reason}{advice}"))

    def _post_failed(self, attempt: AttemptNumber, request: str, refused: Refused) -> None:
        if refused.why is not Refusal.EXPIRED:
            self._post(events.TakeoverFailed(attempt, f"cannot {request}: {refused.why}"))

    def _post_unknown(self, session: SessionNumber, request: str, unknown: Unknown) -> None:
        # After a lost connection the lock is read again.  A late answer over a live connection has
        # no later event that would show the outcome.
        if unknown.why is Doubt.LATE:
            self._post(events.OutcomeUnknown(session, request))


async def _run_request(request: Callable[[], Awaitable[T]], crashed: Crashed) -> T | Crashed:
    """Return the outcome of a request of several steps; ``crashed`` if its code raises.

    Otherwise the election would wait for ever for an event.
    """
    try:
        return await request()
    except Exception:
        log.exception("elector.request.crashed")
        return crashed


def _log_kept_breadcrumb(request: asyncio.Future[Outcome[None]]) -> None:
    """Log that our breadcrumb was not deleted; the next owner will ask us to become standby."""
    outcome = request.result()
    if not isinstance(outcome, Done):
        log.warning("elector.breadcrumb.kept", outcome=repr(outcome))

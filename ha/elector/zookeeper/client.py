"""ZooKeeper sessions with kazoo: each client is one session, each request has one Outcome.

kazoo's threads only pass results to the event loop.  docs/reference/kazoo.md has the properties
of kazoo that this module works around.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import structlog
from kazoo import client as kazoo_client
from kazoo import exceptions as kazoo_errors
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, Id

from ha.elector.zookeeper.credentials import AclEntry
from ha.elector.zookeeper.loop_handler import Handler
from ha.elector.zookeeper.outcome import (
    Done,
    Doubt,
    Outcome,
    Refused,
    SessionState,
    Unknown,
    ZnodeFacts,
    meaning_of,
)
from ha.elector.zookeeper.servers import Servers
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings
from ha.elector.zookeeper.tls import reason_of
from ha.elector.zookeeper.transaction import Part, build, failure_in
from ha.elector.zookeeper.whoami_request import WhoAmI

log = structlog.get_logger()

T = TypeVar("T")
OnState = Callable[[SessionState, str], None]
Measure = Callable[[str, str, float], None]
"""Is called after each request to ZooKeeper with its operation, its result and its seconds."""


class SessionFactory(Protocol):
    """Builds a session; see ``Session``."""

    def __call__(
        self,
        settings: ZooKeeperSettings,
        on_state: OnState,
        on_change: Callable[[bool], None] = ...,
        *,
        ticket: SessionTicket | None = None,
    ) -> "Session":
        """Build a session that is not open yet; the arguments are those of ``Session``."""


class _AsyncResult(Protocol):
    """The methods of kazoo's result objects that are used here."""

    exception: BaseException | None
    value: Any

    def set_exception(self, exception: BaseException) -> None: ...

    def rawlink(self, callback: Callable[["_AsyncResult"], None]) -> None: ...


class _Client(kazoo_client.KazooClient):  # type: ignore[misc] # untyped
    """Refuses requests while it is not connected; kazoo would queue them."""

    over = False

    def _call(self, request: object, async_object: _AsyncResult) -> object:
        if self.over or self.client_state != KeeperState.CONNECTED:
            async_object.set_exception(kazoo_errors.ConnectionLoss())
            return False
        return super()._call(request, async_object)


class Session:
    """One ZooKeeper session.  Its methods, but ``end_now``, must be called on the event loop.

    ``on_state`` is called on the loop with each new state and a reason.  EXPIRED and REFUSED are
    the last ones, as kazoo would then begin another session by itself.  ``on_change`` is called
    once for each watch that fires, with True if the znode was deleted.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        on_state: OnState,
        on_change: Callable[[bool], None] = lambda _: None,
        *,
        ticket: SessionTicket | None = None,
        measure: Measure = lambda *_: None,
    ) -> None:
        self._settings = settings
        self._measure = measure
        self._on_state = on_state
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._closing = False
        self.ticket: SessionTicket | None = None
        """With it another process can continue this session; None before the first connection."""
        self.timeout_seconds: float | None = None
        """The session timeout that the server granted; None before the first connection."""
        self.last_contact: float | None = None
        """When the last request that succeeded was sent, on the loop's clock."""
        self._troubles: dict[str, str] = {}
        self._client = _Client(
            hosts=settings.hosts,
            timeout=settings.session_timeout_seconds,
            client_id=None if ticket is None else (ticket.session_id, ticket.password),
            handler=Handler(settings),
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=1.5, max_delay=1.0),
            command_retry=KazooRetry(max_tries=1, ignore_expire=False),
            auth_data=[(entry.scheme, entry.secret) for entry in settings.auth],
            sasl_options=None if settings.sasl is None else settings.sasl.options(),
            read_only=False,
        )
        self._acl = [_acl(entry) for entry in settings.acl]
        connection = self._client._connection
        self._connect, self._invoke = connection._connect, connection._invoke
        connection._connect, connection._invoke = self._noting_timeout, self._impatient
        connection._expand_client_hosts = self._servers
        self._client.add_listener(self._listener)

    @property
    def trouble(self) -> str:
        """The reason of each server's last failed connection; empty while connected."""
        return "; ".join(dict(sorted(self._troubles.copy().items())).values())

    @property
    def session_id(self) -> int | None:
        """ZooKeeper's id of this session; None before the first connection."""
        return None if self.ticket is None else self.ticket.session_id

    @property
    def configured_acl(self) -> frozenset[AclEntry]:
        """The ACL that this session gives to the znodes that it creates."""
        return frozenset(self._settings.acl)

    def open(self) -> None:
        """Start to connect; kazoo retries without end, and ``on_state`` gets the result."""
        self._client.start_async()

    async def close(self, *, deadline_seconds: float) -> bool:
        """End the session at the server, which deletes its ephemeral znodes at once.

        Return False if that was not confirmed: they may then exist until the session expires.
        """
        if self._closing:
            return True
        self._closing = True
        connected = bool(self._client.connected)
        closed: asyncio.Future[None] = self._loop.create_future()
        # kazoo's stop() may hang, so it runs in a daemon thread.
        threading.Thread(target=self._stop, args=(closed,), daemon=True).start()
        try:
            async with asyncio.timeout(deadline_seconds):
                await closed
        except TimeoutError:
            log.warning("zookeeper.close.abandoned", deadline_seconds=deadline_seconds)
            return False
        finally:
            for future in tuple(self._waiting):
                self._settle(future, Unknown(Doubt.LOST))
        return connected

    def end_now(self) -> None:
        """End the session at the server, called in a thread of a process whose event loop hangs."""
        self._client.over = self._closing = True
        self._stop(None)

    # -- requests ----------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False
    ) -> asyncio.Future[Outcome[None]]:
        """Create a znode with the configured ACL."""
        start = partial(self._client.create_async, path, data, acl=self._acl, ephemeral=ephemeral)
        return self._request(start, lambda _: None)

    def create_numbered(self, prefix: str, data: bytes) -> asyncio.Future[Outcome[str]]:
        """Create a persistent sequential znode, and return its path."""
        start = partial(self._client.create_async, prefix, data, acl=self._acl, sequence=True)
        return self._request(start, str)

    def look(self, path: str, *, watch: bool = False) -> asyncio.Future[Outcome[ZnodeFacts | None]]:
        """Return the znode's facts, or None if it does not exist.

        It uses ``exists``, which sets a watch on a missing znode, too; ``get`` does not.
        """
        # Bound methods of an object are equal: kazoo keeps one watcher for any number of looks.
        watcher = self._watched if watch else None
        return self._request(partial(self._client.exists_async, path, watcher), self._facts)

    def read(self, path: str) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]]:
        """Read the znode's bytes and facts."""
        return self._request(
            partial(self._client.get_async, path), lambda pair: (pair[0], self._facts_of(pair[1]))
        )

    def write(self, path: str, data: bytes, *, version: int) -> asyncio.Future[Outcome[int]]:
        """Set the znode's bytes if it has this version; return the new version."""
        start = partial(self._client.set_async, path, data, version)
        return self._request(start, lambda stat: int(stat.version))

    def delete(self, path: str, *, version: int = -1) -> asyncio.Future[Outcome[None]]:
        """Delete the znode if it has this version (-1: any)."""
        return self._request(partial(self._client.delete_async, path, version), lambda _: None)

    def transact(self, parts: Sequence[Part]) -> asyncio.Future[Outcome[None]]:
        """Carry out all parts in one ZooKeeper transaction, or none of them."""
        transaction = self._client.transaction()
        build(transaction, parts, self._acl)
        return self._request(transaction.commit_async, lambda _: None)

    def children(
        self, path: str, *, watch: bool = False
    ) -> asyncio.Future[Outcome[tuple[str, ...]]]:
        """Return the names of the znode's children; a watch is not set if there is no znode."""
        watcher = self._watched if watch else None
        return self._request(partial(self._client.get_children_async, path, watcher), tuple)

    def acl(self, path: str) -> asyncio.Future[Outcome[tuple[frozenset[AclEntry], int]]]:
        """Return the znode's ACL and the version of the ACL (not of the data: HADOOP-14543)."""
        return self._request(
            partial(self._client.get_acls_async, path),
            lambda pair: (frozenset(map(_entry, pair[0])), int(pair[1].aversion)),
        )

    def set_acl(self, path: str, *, acl_version: int) -> asyncio.Future[Outcome[None]]:
        """Set the znode's ACL to the configured one if its ACL has this version."""
        start = partial(self._client.set_acls_async, path, self._acl, acl_version)
        return self._request(start, lambda _: None)

    def who_am_i(self) -> asyncio.Future[Outcome[tuple[str, ...]]]:
        """Return the identities that the server has authenticated; ZooKeeper before 3.7 refuses."""

        def whoami_async() -> _AsyncResult:
            result: _AsyncResult = self._client.handler.async_result()
            self._client._call(WhoAmI(), result)
            return result

        return self._request(whoami_async, tuple)

    def _request(
        self, start: Callable[[], _AsyncResult], value: Callable[[Any], T]
    ) -> asyncio.Future[Outcome[T]]:
        future: asyncio.Future[Outcome[T]] = self._loop.create_future()
        self._waiting.add(future)
        deadline = self._settings.request_deadline_seconds
        timer = self._loop.call_later(deadline, self._settle, future, Unknown(Doubt.LATE))
        future.add_done_callback(lambda _: timer.cancel())
        future.add_done_callback(partial(self._ended, _name(start), self._loop.time()))
        start().rawlink(lambda result: self._hand_over(self._settle, future, _end(result, value)))
        return future

    def _ended(self, op: str, sent: float, future: asyncio.Future[Outcome[Any]]) -> None:
        if future.cancelled():
            return
        outcome = future.result()
        self._measure(op, type(outcome).__name__.lower(), self._loop.time() - sent)
        if isinstance(outcome, Done):
            # Not the time of the answer, which may have been in the socket of a stopped process.
            self.last_contact = max(sent, self.last_contact or sent)

    def _settle(self, future: asyncio.Future[Any], outcome: Outcome[Any]) -> None:
        self._waiting.discard(future)
        if not future.done():
            future.set_result(outcome)

    def _facts(self, stat: ZnodeStat | None) -> ZnodeFacts | None:
        return None if stat is None else self._facts_of(stat)

    def _facts_of(self, stat: ZnodeStat) -> ZnodeFacts:
        ours = self.ticket is not None and stat.ephemeralOwner == self.ticket.session_id
        return ZnodeFacts(
            version=int(stat.version),
            ours=ours,
            written_by=int(stat.mzxid),
            owner=int(stat.ephemeralOwner),
            written_at=stat.mtime / 1000,
        )

    # -- on kazoo's threads: only pass results to the event loop -----------------------------

    def _hand_over(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            log.debug("zookeeper.answer.after_the_end")  # the loop is closed, without callers

    def _listener(self, state: str) -> None:
        client = self._client
        if client.over:
            return
        if state == KazooState.CONNECTED:
            # ``_noting_timeout`` reports it, after the credentials were accepted.
            if self.ticket is None:
                self.ticket = SessionTicket(client._session_id, client._session_passwd)
        elif state == KazooState.SUSPENDED:
            self._hand_over(self._report, SessionState.SUSPENDED, "connection lost")
        elif client.client_state == KeeperState.AUTH_FAILED:
            client.over = True
            self._hand_over(self._report, SessionState.REFUSED, "authentication failed")
        else:
            # The session expired, or kazoo's thread ended: neither can be continued.
            client.over = True
            self._hand_over(self._report, SessionState.EXPIRED, client.client_state)

    def _report(self, state: SessionState, reason: str) -> None:
        if not self._closing:
            self._on_state(state, reason)

    def _watched(self, event: WatchedEvent) -> None:
        if event.type != EventType.NONE:  # NONE: kazoo drops its watches with the connection
            self._hand_over(self._on_change, event.type == EventType.DELETED)

    def _servers(self) -> Servers:
        client = self._client
        return Servers(client.hosts, self._troubles.__setitem__, client._stopped.is_set)

    def _noting_timeout(self, *arguments: object) -> tuple[float, float]:
        """Connect, report the session timeout, and return half of it, not 2/3, as read timeout."""
        host, _, port = arguments
        try:
            read_timeout, connect_timeout = self._connect(*arguments)
        except Exception as failure:
            # kazoo wraps the failure, and logs most of them as timeouts.
            server = f"{host}:{port}"
            self._troubles[server] = f"{server}: {reason_of(failure.__context__ or failure)}"
            raise
        self._troubles.clear()
        negotiated = read_timeout * 1.5 / 1000
        if not self._client.over:
            self._hand_over(self._connected, negotiated)
        return negotiated / 2 * 1000, connect_timeout

    def _impatient(self, timeout_seconds: float, *arguments: object, **named: object) -> object:
        """Send the handshake or a credential, with ``handshake_cap_seconds`` as the limit."""
        cap = self._settings.handshake_cap_seconds
        return self._invoke(min(timeout_seconds, cap), *arguments, **named)

    def _connected(self, seconds: float) -> None:
        differs = abs(seconds - self._settings.session_timeout_seconds) > 0.001
        if self.timeout_seconds is None and differs:
            log.warning(
                "zookeeper.session_timeout.differs",
                asked_seconds=self._settings.session_timeout_seconds,
                granted_seconds=seconds,
            )
        self.timeout_seconds = seconds
        self._report(SessionState.CONNECTED, "")

    def _stop(self, closed: asyncio.Future[None] | None) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as failure:  # noqa: BLE001 - the session ends, whatever kazoo raises
            log.warning("zookeeper.close.failed", reason=repr(failure))
        if closed is not None:
            self._hand_over(lambda: None if closed.done() else closed.set_result(None))


def _end(result: _AsyncResult, value: Callable[[Any], T]) -> Outcome[T]:
    failure = result.exception or failure_in(result.value)
    if failure is None:
        return Done(value(result.value))
    name = type(failure).__name__
    meaning = meaning_of(name)
    return Unknown(meaning) if isinstance(meaning, Doubt) else Refused(meaning, name)


def _name(start: Callable[[], object]) -> str:
    """Return the operation's name for the metrics: ``create`` for ``create_async``."""
    called = start.func if isinstance(start, partial) else start
    return str(getattr(called, "__name__", "other")).removesuffix("_async")


def _acl(entry: AclEntry) -> ACL:
    return ACL(entry.permissions, Id(entry.scheme, entry.identity))


def _entry(acl: ACL) -> AclEntry:
    return AclEntry(acl.id.scheme, acl.id.id, acl.perms)

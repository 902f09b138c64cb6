"""A client session of the model, with the interface of the real ZooKeeper client."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from ha.elector.zookeeper.credentials import AclEntry
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
from ha.elector.zookeeper.transaction import Part
from tests.simulation.engine.clock import PROCESS, Process, VirtualLoop
from tests.simulation.failover.zk_ensemble import Ensemble
from tests.simulation.failover.zk_server import Link, Replica, Reply, Request
from tests.simulation.failover.zk_tree import News, Znode

OnState = Callable[[SessionState, str], None]
Value = Callable[["ModelSession", Any], Any]

_RETRY_SECONDS: Final = (0.1, 0.15, 0.22, 0.34, 0.5, 0.75, 1.0)


class ModelSession:
    """One ZooKeeper session of one simulated process; see ``elector.zookeeper.client.Session``."""

    def __init__(
        self,
        ensemble: Ensemble,
        settings: ZooKeeperSettings,
        on_state: OnState,
        on_change: Callable[[bool], None] = lambda _: None,
        *,
        ticket: SessionTicket | None = None,
    ) -> None:
        process = PROCESS.get()
        assert process is not None, "sessions belong to simulated processes"
        self.process: Process = process
        self._ensemble = ensemble
        self._settings = settings
        self._on_state = on_state
        self._on_change = on_change
        self._loop: VirtualLoop = ensemble.loop
        self._rng: Random = ensemble.faults.random("session", process.machine, ensemble.loop.now)
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self._link: Link | None = None
        self._connected = False
        self._session_id = 0 if ticket is None else ticket.session_id
        self._seen = 0
        self._closing = False
        self._over = False
        self._failures = 0
        self._refused_by: str | None = None
        self._untried: list[Replica] = []
        self._heard_at = self._sent_at = 0.0
        self.timeout_seconds: float | None = None
        self.last_contact: float | None = None
        self.ticket = ticket

    @property
    def session_id(self) -> int | None:
        """The ensemble's number of this session, once it was connected."""
        return self._session_id or None

    @property
    def configured_acl(self) -> frozenset[AclEntry]:
        """The ACL that this session gives to znodes."""
        return frozenset(self._settings.acl)

    # ---- connecting ------------------------------------------------------------------------

    def open(self) -> None:
        self._ensemble.listener.opened(self)
        self._connect()
        self._tick()

    def _connect(self) -> None:
        if self._over or self._closing or not self.process.alive:
            return
        replica = self._server()
        link = self._link = Link(self._ensemble, replica, self.process.machine, self._hear)
        arrive = partial(
            self._ensemble.accept,
            link,
            self._session_id,
            self._seen,
            self._settings.session_timeout_seconds,
            partial(self._accepted, link),
        )
        link.connect(arrive)
        cap = self._settings.connect_cap_seconds + self._settings.handshake_cap_seconds
        self._loop.call_later(cap, self._abandon, link)

    def _server(self) -> Replica:
        """Return the next server: kazoo pauses when it has asked each in vain (seed 206857)."""
        if not self._untried:
            servers = list(self._ensemble.replicas.values())
            chosen = self._rng.randrange(len(servers))
            if servers[chosen].name == self._refused_by:
                chosen = (chosen + 1) % len(servers)
            self._untried = [*servers[chosen:], *servers[:chosen]]
        return self._untried.pop(0)

    def _abandon(self, link: Link) -> None:
        if self._link is link and not self._connected:
            link.forget()
            self._again()

    def _again(self) -> None:
        self._refused_by = None if self._link is None else self._link.replica.name
        self._link = None
        if self._untried:
            self._loop.call_soon(self._connect)
            return
        pause = _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)]
        self._failures += 1
        self._loop.call_later(pause * (0.8 + 0.4 * self._rng.random()), self._connect)

    def _accepted(self, link: Link, session: int) -> None:
        if link is not self._link or self._closing or self._connected:
            return
        if session < 0:
            link.forget()
            self._again()
        elif session == 0:
            self._over = True
            link.forget()
            self._report(SessionState.EXPIRED, "EXPIRED_SESSION")
        else:
            self._session_id = session
            self.ticket = SessionTicket(session, b"")
            self._connected = True
            self._failures = 0
            self._untried = []
            self._heard_at = self._sent_at = self._loop.time()
            self.timeout_seconds = self._settings.session_timeout_seconds
            self._report(SessionState.CONNECTED, "")

    def _hear(self, link: Link, act: Callable[[], None] | News | None) -> None:
        """Take something from the server: to be handled when this process runs."""
        if self.process.alive:
            self.process.context.run(self._loop.call_soon, self._handle, link, act)

    def _handle(self, link: Link, act: Callable[[], None] | News | None) -> None:
        if isinstance(act, News):
            self._watched(act)
            return
        if link is not self._link:
            return
        self._heard_at = self._loop.time()
        if act is not None:
            act()
        elif self._connected:
            self._lost()
        else:
            self._again()

    def _lost(self) -> None:
        """Lose the connection: what was asked may have been done."""
        self._connected = False
        if self._link is not None:
            self._link.forget()
            self._link = None
        waiting = tuple(self._waiting)
        # kazoo's threads hand over the state and the requests' ends in either order.
        if self._rng.random() < 0.5:
            self._report(SessionState.SUSPENDED, "connection lost")
        else:
            self._loop.call_soon(self._report, SessionState.SUSPENDED, "connection lost")
        for future in waiting:
            self._loop.call_soon(self._settle, future, Unknown(Doubt.LOST))
        self._failures = 0
        self._again()

    def _tick(self) -> None:
        if self._over or self._closing or not self.process.alive:
            return
        timeout, now = self._settings.session_timeout_seconds, self._loop.time()
        if self._connected and self._link is not None:
            if now - self._heard_at >= timeout / 2:
                self._lost()
            elif now - self._sent_at >= timeout / 3:
                self._send(Request("ping"), lambda _reply: None)
        self._loop.call_later(timeout / 6, self._tick)

    def _report(self, state: SessionState, reason: str) -> None:
        if not self._closing:
            self._on_state(state, reason)

    def _watched(self, news: News) -> None:
        if self._over or self._closing:
            return
        place = self.process.machine
        if name := self._ensemble.faults.strikes("late-watch", place):
            delay = self._ensemble.faults.random(name).choice((0.02, 0.3, 1.5, 6.0))
            self._ensemble.trace.add(place, f"hears {delay} s later of {news}", name)
            self._loop.call_later(delay, self._changed, news)
        else:
            self._changed(news)

    def _changed(self, news: News) -> None:
        self._on_change(news.kind == "deleted")

    # ---- leaving ---------------------------------------------------------------------------

    def end_now(self) -> None:
        """Refuse: the guard's thread, which asks for that, is not simulated."""
        raise NotImplementedError

    async def close(self, *, deadline_seconds: float) -> bool:
        """End the session at the servers; False when that was not confirmed in time."""
        if self._closing:
            return True
        self._closing = True
        self._ensemble.listener.closing(self)
        connected = self._connected and self.process.alive and not self._over
        try:
            if connected:
                closed: asyncio.Future[None] = self._loop.create_future()
                self._send(Request("close"), partial(_confirm, closed))
                async with asyncio.timeout(deadline_seconds):
                    await closed
        except TimeoutError:
            return False
        finally:
            if self._link is not None:
                self._link.forget()
            for future in tuple(self._waiting):
                self._settle(future, Unknown(Doubt.LOST))
        return connected

    # ---- requests --------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False
    ) -> asyncio.Future[Outcome[None]]:
        request = Request("create", path, data, ephemeral=ephemeral, acl=self._settings.acl)
        return self._request(request, lambda _: None)

    def create_numbered(self, prefix: str, data: bytes) -> asyncio.Future[Outcome[str]]:
        """Create a lasting znode whose name ends in the next number; return its path."""
        request = Request("create", prefix, data, sequence=True, acl=self._settings.acl)
        return self._request(request, lambda made: made[0])

    def look(self, path: str, *, watch: bool = False) -> asyncio.Future[Outcome[ZnodeFacts | None]]:
        """Return whether the znode exists, and is this session's."""
        return self._request(
            Request("exists", path, watch=watch),
            lambda found: None if found is None else self._facts(found),
        )

    def read(self, path: str) -> asyncio.Future[Outcome[tuple[bytes, ZnodeFacts]]]:
        return self._request(Request("get", path), lambda found: (found.data, self._facts(found)))

    def write(self, path: str, data: bytes, *, version: int) -> asyncio.Future[Outcome[int]]:
        """Set the znode's bytes if it is at this version; return the new version."""
        return self._request(Request("set", path, data, version), int)

    def delete(self, path: str, *, version: int = -1) -> asyncio.Future[Outcome[None]]:
        """Delete the znode if it is at this version (-1: any)."""
        return self._request(Request("delete", path, version=version), lambda _: None)

    def transact(self, parts: Sequence[Part]) -> asyncio.Future[Outcome[None]]:
        request = Request("multi", parts[-1].path, parts=tuple(parts), acl=self._settings.acl)
        return self._request(request, lambda _: None)

    def children(
        self, path: str, *, watch: bool = False
    ) -> asyncio.Future[Outcome[tuple[str, ...]]]:
        return self._request(Request("children", path, watch=watch), tuple)

    def acl(self, path: str) -> asyncio.Future[Outcome[tuple[frozenset[AclEntry], int]]]:
        return self._request(
            Request("acl", path), lambda found: (frozenset(found.acl), found.acl_version)
        )

    def set_acl(self, path: str, *, acl_version: int) -> asyncio.Future[Outcome[None]]:
        request = Request("set-acl", path, version=acl_version, acl=self._settings.acl)
        return self._request(request, lambda _: None)

    def who_am_i(self) -> asyncio.Future[Outcome[tuple[str, ...]]]:
        """Refuse: the model's servers are too old for that question."""
        told: asyncio.Future[Outcome[tuple[str, ...]]] = self._loop.create_future()
        told.set_result(Refused(Refusal.OTHER, "unimplemented"))
        return told

    def _facts(self, found: Znode) -> ZnodeFacts:
        return ZnodeFacts(
            version=found.version,
            ours=found.owner == self._session_id,
            written_by=found.written,
            owner=found.owner,
        )

    def _request(self, request: Request, value: Callable[[Any], Any]) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[future] = None
        deadline = self._settings.request_deadline_seconds
        timer = self._loop.call_later(deadline, self._settle, future, Unknown(Doubt.LATE))
        future.add_done_callback(lambda _: timer.cancel())
        if self._connected and not self._closing and not self._over:
            self._ensemble.listener.asked(self, request)
            future.add_done_callback(partial(self._told, request))
            answered = partial(self._answered, request, future, value, self._loop.time())
            self._send(request, answered)
        else:
            self._ensemble.listener.unsent(self, request)
            self._loop.call_soon(self._settle, future, Unknown(Doubt.LOST))
        return future

    def _told(self, request: Request, future: asyncio.Future[Any]) -> None:
        if future.cancelled() or isinstance(future.result(), Unknown):
            self._ensemble.listener.failed(self, request)

    def _send(self, request: Request, respond: Callable[[Reply], None]) -> None:
        if self._link is not None and self.process.alive:
            self._sent_at = self._loop.time()
            self._link.send(request, respond)

    def _answered(
        self, request: Request, future: asyncio.Future[Any], value: Callable[[Any], Any],
        sent: float, reply: Reply,
    ) -> None:  # fmt: skip
        if not future.done():
            self._ensemble.listener.answered(self, request, reply)
        self._seen = max(self._seen, reply.seen)
        if reply.error is not None:
            self._settle(future, Refused(reply.error.why, reply.error.text))
        else:
            self.last_contact = max(sent, self.last_contact or sent)
            self._settle(future, Done(value(reply.value)))

    def _settle(self, future: asyncio.Future[Any], outcome: Outcome[Any]) -> None:
        self._waiting.pop(future, None)
        if not future.done():
            future.set_result(outcome)


def _confirm(closed: "asyncio.Future[None]", _reply: Reply) -> None:
    if not closed.done():
        closed.set_result(None)

"""Probes the local NameNode over one open connection, and hears its death from that connection."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from ha.conf.topology import HostPort
from ha.health.core import (
    Answered,
    Broken,
    Faulted,
    Health,
    HealthSettings,
    HealthState,
    Outcome,
    Refused,
    Unanswered,
    Unwell,
    step,
)
from ha.rpc.errors import ConnectFailed, DeadlineExceeded
from ha.service.client import ServiceClient
from ha.service.errors import HealthCheckFailed, ServiceRefused, ServiceUnreachable
from ha.service.model import ServiceStatus

log = structlog.get_logger()


class Listener(Protocol):
    """Who is told.  Both are called on the loop and must not block: no probe waits for them."""

    def status_reported(self, status: ServiceStatus) -> None:
        """The NameNode's own report, each round that brings one, before any change of health."""

    def health_changed(self, health: Health, reason: str) -> None:
        """The judgement has changed."""


class HealthMonitor:
    """Watches one NameNode until cancelled.

    Each round asks getServiceStatus, then monitorHealth (hadoop-ha 2.3).  Between rounds it waits
    for the connection's end as well as for the clock, so that a killed NameNode is known within
    milliseconds.  A frozen one keeps its sockets; only the probe's deadline finds it.
    """

    def __init__(
        self,
        address: HostPort,
        settings: HealthSettings,
        listener: Listener,
        *,
        measure: Callable[[float, Outcome], None] = lambda _seconds, _outcome: None,
    ) -> None:
        self._address = address
        self._listener = listener
        self._measure = measure
        self._state = HealthState(settings=settings)
        self._client: ServiceClient | None = None
        self._hurry = asyncio.Event()

    @property
    def state(self) -> HealthState:
        """The judgement after the last probe; a frozen value."""
        return self._state

    @property
    def client(self) -> ServiceClient | None:
        """The open connection, for whoever must tell the NameNode something without delay."""
        return self._client

    def probe_now(self) -> None:
        """Do not wait for the next round."""
        self._hurry.set()

    async def run(self) -> None:
        """Probe for ever."""
        loop = asyncio.get_running_loop()
        outcome: Outcome | None = None
        try:
            while True:
                if outcome is None:
                    begun = loop.time()
                    outcome = await self._probe()
                    self._measure(loop.time() - begun, outcome)
                wait_seconds = self._judge(outcome)
                if not isinstance(outcome, Answered | Unwell):
                    await self._hang_up()
                outcome = await self._rest(wait_seconds)
        finally:
            await self._hang_up()

    def _judge(self, outcome: Outcome) -> float:
        before = self._state
        result = step(before, outcome)
        self._state = result.state
        if before.health is not result.state.health:
            log.info(
                "health.changed",
                address=str(self._address),
                before=before.health.value,
                after=result.state.health.value,
                reason=result.state.reason,
            )
            self._listener.health_changed(result.state.health, result.state.reason)
        return result.probe_after_seconds

    async def _probe(self) -> Outcome:
        deadline = self._state.settings.rpc_timeout_seconds
        try:
            if self._client is None:
                self._client = await ServiceClient.open(self._address, deadline_seconds=deadline)
            status = await self._client.status(deadline_seconds=deadline)
            self._listener.status_reported(status)
            await self._client.monitor_health(deadline_seconds=deadline)
        except HealthCheckFailed as failure:
            return Unwell(str(failure))
        except ServiceRefused as failure:
            return Faulted(str(failure))
        except ServiceUnreachable as failure:
            return _silence(failure)
        return Answered()

    async def _rest(self, seconds: float) -> Outcome | None:
        """Wait for the next round; the connection's end cuts it short and is an outcome."""
        self._hurry.clear()
        if seconds <= 0:
            return None
        waits: set[asyncio.Task[object]] = {asyncio.ensure_future(self._hurry.wait())}
        closed: asyncio.Task[Exception] | None = None
        if self._client is not None:
            closed = asyncio.ensure_future(self._client.wait_closed())
            waits.add(closed)
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if closed is not None and closed.done() and not closed.cancelled():
            return Broken(str(closed.result()))
        return None

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _silence(failure: ServiceUnreachable) -> Outcome:
    match failure.__cause__:
        case DeadlineExceeded():
            return Unanswered(str(failure))
        case ConnectFailed() as refused:
            late = isinstance(refused.__cause__, TimeoutError)
            return Unanswered(str(failure)) if late else Refused(str(failure))
        case _:
            return Broken(str(failure))

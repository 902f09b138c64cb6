"""Probes the local NameNode over one open connection, whose end shows that the process died."""

import asyncio
import math
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from ha.conf.topology import HostPort
from ha.daemon.own_delay import OwnDelay
from ha.health import core
from ha.health.core import discard_if_loop_was_late, step
from ha.health.pid_file import Over, PidFile, Running
from ha.rpc.client import Connect, RpcConnection
from ha.rpc.errors import ConnectFailed, DeadlineExceeded
from ha.security.sasl.mechanism import SaslFailure
from ha.service.client import ServiceClient
from ha.service.errors import HealthCheckFailed, ServiceRefused, ServiceUnreachable
from ha.service.model import ServiceState, ServiceStatus

log = structlog.get_logger()

CALLS: Final = 3
"""A probe connects, asks for the status and then for the health, each within the deadline."""
DELAY_STEPS: Final = 8
"""So often within a deadline our own event loop is looked at."""


class Listener(Protocol):
    """Receives changes.  The methods run on the loop and must not block."""

    def status_reported(self, status: ServiceStatus) -> None:
        """Take the NameNode's report, in each round that has one, before any change of health."""

    def health_changed(self, health: core.Health, reason: str) -> None:
        """Take note that the judgement, or the kind of trouble, has changed."""


class HealthMonitor:
    """Watches one NameNode until cancelled.

    Each round asks getServiceStatus, then monitorHealth.  Between rounds it waits for the
    connection's end as well as for the clock, so that a killed NameNode is known within
    milliseconds.  A frozen one keeps its sockets; only the probe's deadline finds it.  With a pid
    file, the end of its process is known even where a child of it still holds the sockets.
    """

    def __init__(
        self,
        address: HostPort,
        settings: core.HealthSettings,
        listener: Listener,
        *,
        measure: Callable[[float, core.ProbeOutcome], None] = lambda _seconds, _outcome: None,
        process: PidFile | None = None,
        connect: Connect = RpcConnection.open,
        heartbeat: Callable[[float], None] = lambda _within_seconds: None,
    ) -> None:
        """Call ``heartbeat`` with each step and the seconds within which the next one comes."""
        self._address = address
        self._listener = listener
        self._measure = measure
        self._process = process
        self._connect = connect
        self._heartbeat = heartbeat
        self._state = core.HealthState(settings=settings)
        self._client: ServiceClient | None = None
        self._hurry = asyncio.Event()

    @property
    def state(self) -> core.HealthState:
        """The judgement after the last probe; a frozen value."""
        return self._state

    @property
    def client(self) -> ServiceClient | None:
        """The open connection, for requests to the NameNode that must not wait."""
        return self._client

    def probe_now(self) -> None:
        """Begin a probe at once, or after the one that runs."""
        self._hurry.set()

    async def run(self) -> None:
        """Probe for ever.

        Whatever ends this is reported as MONITOR_FAILED and raised: a controller that no longer
        knows its NameNode must not stay in the election
        (docs/reference/health.md#end-of-the-monitor).
        """
        try:
            await self._rounds()
        except Exception as failure:
            self._state = core.note_monitor_failure(
                self._state, f"the health monitor died: {failure!r}"
            )
            log.exception("health.monitor.failed", address=str(self._address))
            self._listener.health_changed(self._state.health, self._state.reason)
            raise
        finally:
            self._heartbeat(math.inf)
            if self._process is not None:
                self._process.close()
            await self._hang_up()

    async def _rounds(self) -> None:
        outcome: core.ProbeOutcome | None = None
        while True:
            if outcome is None:
                outcome = await self._measured_probe()
            wait_seconds = self._judge(outcome)
            if not isinstance(outcome, core.Answered | core.Starting | core.Unwell):
                await self._hang_up()
            self._heartbeat(wait_seconds)
            outcome = await self._rest(wait_seconds)

    async def _measured_probe(self) -> core.ProbeOutcome:
        loop, deadline = asyncio.get_running_loop(), self._state.settings.rpc_timeout_seconds
        begun = loop.time()
        self._heartbeat(CALLS * deadline)
        self._hurry.clear()  # what is asked for from here on, this probe may be too early for
        with OwnDelay(deadline / DELAY_STEPS) as delay:
            silent = self._with_process(await self._probe())
        outcome = discard_if_loop_was_late(
            silent, late_seconds=delay.seconds, deadline_seconds=deadline
        )
        if isinstance(outcome, core.Unjudged):
            log.warning("health.probe.unjudged", address=str(self._address), reason=outcome.reason)
        self._measure(loop.time() - begun, outcome)
        return outcome

    def _judge(self, outcome: core.ProbeOutcome) -> float:
        before = self._state
        result = step(before, outcome)
        after = self._state = result.state
        if (before.health, before.trouble) != (after.health, after.trouble):
            log.info(
                "health.changed",
                address=str(self._address),
                before=before.health.value,
                after=after.health.value,
                trouble=after.trouble.value,
                reason=after.reason,
            )
            self._listener.health_changed(after.health, after.reason)
        return result.probe_after_seconds

    def _with_process(self, outcome: core.ProbeOutcome) -> core.ProbeOutcome:
        """Add to the outcome what the pid file shows: that the process has ended, or its pid."""
        process = self._process
        if process is None:
            return outcome
        if isinstance(outcome, core.Answered | core.Starting | core.Unwell | core.Faulted):
            process.answered()
            return outcome
        match process.look():
            # A dead number that never was seen to answer may be a stale file: it does not
            # overrule a connection that was accepted.
            case Over(pid=pid, answered=answered) if answered or not isinstance(
                outcome, core.Unanswered
            ):
                process.close()  # else its end would wake us again at once, for ever
                return core.Ended(f"process {pid} of {process.path} has ended")
            case Running(pid=pid):
                return _of_living(outcome, pid)
            case _:
                return outcome

    async def _probe(self) -> core.ProbeOutcome:
        deadline = self._state.settings.rpc_timeout_seconds
        try:
            if self._client is None:
                self._client = await ServiceClient.open(
                    self._address, deadline_seconds=deadline, connect=self._connect
                )
            status = await self._client.status(deadline_seconds=deadline)
            self._listener.status_reported(status)
            if status.state is ServiceState.INITIALIZING:
                return core.Starting(status.not_ready_reason or "it is still starting")
            await self._client.monitor_health(deadline_seconds=deadline)
        except HealthCheckFailed as failure:
            return core.Unwell(str(failure))
        except ServiceRefused as failure:
            return core.Faulted(str(failure))
        except ServiceUnreachable as failure:
            return _silence(failure, self._address)
        return core.Answered()

    async def _rest(self, seconds: float) -> core.ProbeOutcome | None:
        """Wait for the next round; the connection's end cuts it short and is an outcome."""
        if seconds <= 0:
            return None
        hurry = asyncio.ensure_future(self._hurry.wait())
        waits: list[asyncio.Task[object]] = [hurry]
        closed: asyncio.Task[Exception] | None = None
        if self._client is not None:
            closed = asyncio.ensure_future(self._client.wait_closed())
            waits.append(closed)
        if self._process is not None:
            waits.append(asyncio.ensure_future(self._process.ended()))
        try:
            done, _ = await asyncio.wait(
                waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
        if closed in done:
            return self._with_process(core.Broken(str(closed.result())))
        if done - {hurry}:
            return self._with_process(core.Broken("the process has ended"))
        return None

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _silence(failure: ServiceUnreachable, address: HostPort) -> core.ProbeOutcome:
    match failure.__cause__:
        case DeadlineExceeded():
            return core.Unanswered(str(failure))
        case ConnectFailed(__cause__=ConnectionRefusedError()):
            return core.Refused(f"nobody listens at {address}: connection refused")
        case ConnectFailed() as refused:
            # Where the name or our own ticket is lacking, the process may well live.
            late = isinstance(refused.__cause__, TimeoutError | SaslFailure | None)
            return core.Unanswered(str(failure)) if late else core.Refused(str(failure))
        case _:
            return core.Broken(str(failure))


def _of_living(outcome: core.ProbeOutcome, pid: int) -> core.ProbeOutcome:
    match outcome:
        case core.Refused(reason=reason):
            return core.Refused(f"process {pid} runs, but {reason}")
        case core.Unanswered(reason=reason):
            return core.Unanswered(f"process {pid} runs, but does not answer: {reason}")
        case _:
            return outcome

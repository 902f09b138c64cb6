"""Probes the local NameNode over one open connection, whose end shows the end of the process."""

import asyncio
import math
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from ha.conf.topology import HostPort
from ha.daemon.own_delay import OwnDelay
from ha.health import core
from ha.health.core import discard_if_loop_was_late, step
from ha.health.pid_file import Ended, PidFile, Running
from ha.rpc.client import Connect, RpcConnection
from ha.rpc.errors import ConnectFailed, DeadlineExceeded
from ha.security.sasl.mechanism import SaslFailure
from ha.service.client import ServiceClient
from ha.service.errors import HealthCheckFailed, ServiceRefused, ServiceUnreachable
from ha.service.model import ServiceState, ServiceStatus

log = structlog.get_logger()

CALLS: Final = 3
"""A probe connects, calls getServiceStatus and then monitorHealth, each within the deadline."""
DELAY_STEPS: Final = 8
"""The number of times within a deadline that our own event loop's delay is measured."""


class Listener(Protocol):
    """Receives reports and changes; the methods run on the event loop and must not block."""

    def status_reported(self, status: ServiceStatus) -> None:
        """Handle the NameNode's report; called in each round before ``health_changed``."""

    def health_changed(self, health: core.Health, reason: str) -> None:
        """Handle a change of the judgement or of the trouble."""


class HealthMonitor:
    """Monitors one NameNode until cancelled.

    Each round calls getServiceStatus and monitorHealth.  Between rounds it also waits for the end
    of the connection, which shows a killed NameNode within milliseconds.  A stopped NameNode keeps
    its sockets, and is found by the probe's deadline.  With a pid file, the end of the process is
    found even if a child process still has the sockets open.
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
        """The state after the last probe."""
        return self._state

    @property
    def client(self) -> ServiceClient | None:
        """The open connection, for requests that must not wait for a new one; None without one."""
        return self._client

    def probe_now(self) -> None:
        """Begin a probe at once, or after the running one."""
        self._hurry.set()

    async def run(self) -> None:
        """Probe until cancelled.

        An exception is reported as MONITOR_FAILED and raised: a controller without a monitor must
        not stay in the election (docs/reference/health.md#end-of-the-monitor).
        """
        try:
            await self._run_rounds()
        except Exception as failure:
            self._state = core.record_monitor_failure(
                self._state, f"the health monitor died: {failure!r}"
            )
            log.exception("health.monitor.failed", address=str(self._address))
            self._listener.health_changed(self._state.health, self._state.reason)
            raise
        finally:
            self._heartbeat(math.inf)
            if self._process is not None:
                self._process.close()
            await self._close_client()

    async def _run_rounds(self) -> None:
        outcome: core.ProbeOutcome | None = None
        while True:
            if outcome is None:
                outcome = await self._probe_and_measure()
            wait_seconds = self._judge(outcome)
            if not isinstance(outcome, core.Answered | core.Starting | core.Unwell):
                await self._close_client()
            self._heartbeat(wait_seconds)
            outcome = await self._wait(wait_seconds)

    async def _probe_and_measure(self) -> core.ProbeOutcome:
        loop, deadline = asyncio.get_running_loop(), self._state.settings.rpc_timeout_seconds
        begun = loop.time()
        self._heartbeat(CALLS * deadline)
        self._hurry.clear()  # a later request needs another probe
        with OwnDelay(deadline / DELAY_STEPS) as delay:
            silent = self._consult_pid_file(await self._probe())
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

    def _consult_pid_file(self, outcome: core.ProbeOutcome) -> core.ProbeOutcome:
        """Return the outcome with the pid file's information: the process's end, or its pid."""
        process = self._process
        if process is None:
            return outcome
        if isinstance(outcome, core.Answered | core.Starting | core.Unwell | core.Faulted):
            process.hold()
            return outcome
        match process.look():
            # Without an answer of this process the pid file may be stale; then an accepted
            # connection counts more.
            case Ended(pid=pid, answered=answered) if answered or not isinstance(
                outcome, core.Unanswered
            ):
                process.close()  # else wait_ended() would return at once in each round
                return core.Ended(f"process {pid} of {process.path} has ended")
            case Running(pid=pid):
                return _add_pid(outcome, pid)
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
            return _classify_failure(failure, self._address)
        return core.Answered()

    async def _wait(self, seconds: float) -> core.ProbeOutcome | None:
        """Wait for the next round; return an outcome if the connection or process ends before."""
        if seconds <= 0:
            return None
        hurry = asyncio.ensure_future(self._hurry.wait())
        waits: list[asyncio.Task[object]] = [hurry]
        closed: asyncio.Task[Exception] | None = None
        if self._client is not None:
            closed = asyncio.ensure_future(self._client.wait_closed())
            waits.append(closed)
        if self._process is not None:
            waits.append(asyncio.ensure_future(self._process.wait_ended()))
        try:
            done, _ = await asyncio.wait(
                waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for wait in waits:
                wait.cancel()
        if closed in done:
            return self._consult_pid_file(core.Broken(str(closed.result())))
        if done - {hurry}:
            return self._consult_pid_file(core.Broken("the process has ended"))
        return None

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _classify_failure(failure: ServiceUnreachable, address: HostPort) -> core.ProbeOutcome:
    match failure.__cause__:
        case DeadlineExceeded():
            return core.Unanswered(str(failure))
        case ConnectFailed(__cause__=ConnectionRefusedError()):
            return core.Refused(f"nobody listens at {address}: connection refused")
        case ConnectFailed() as refused:
            # Without an address or a Kerberos ticket of ours, the process may be alive.
            late = isinstance(refused.__cause__, TimeoutError | SaslFailure | None)
            return core.Unanswered(str(failure)) if late else core.Refused(str(failure))
        case _:
            return core.Broken(str(failure))


def _add_pid(outcome: core.ProbeOutcome, pid: int) -> core.ProbeOutcome:
    match outcome:
        case core.Refused(reason=reason):
            return core.Refused(f"process {pid} runs, but {reason}")
        case core.Unanswered(reason=reason):
            return core.Unanswered(f"process {pid} runs, but does not answer: {reason}")
        case _:
            return outcome

"""The method ``sshfence``: kills the process on the target's port over ssh.

paramiko blocks, so it runs in a thread.  At the deadline the event loop closes the connection, and
so ends the thread.

See docs/reference/fencing.md#sshfence.
"""

import asyncio
import contextlib
import shlex
import socket
import time
from collections.abc import Callable
from typing import Final

import paramiko
import structlog

from fencing.model import FencingOutcome, SshMethod, Target
from fencing.remote_shell import MAX_ANSWER_BYTES, Answer, new_nonce
from fencing.ssh_login import SshFailed, log_in
from fencing.ssh_settings import SshSettings
from fencing.ssh_verdict import (
    Port,
    SshResult,
    judge_killed,
    judge_port,
    port_at,
    port_seen,
)
from ha.conf.own_user import system_user

log = structlog.get_logger()

MAX_OUTPUT_BYTES: Final = 16 * 1024
MAX_LINES: Final = 50
"""The number of last lines of a command's output that are logged."""
PROBE_SECONDS: Final = 2.0
GONE_WITHIN_SECONDS: Final = 1.0
"""How long a killed process may take to close its port."""
_PROBES: Final = (
    "nc -v -w {seconds} -z {host} {port} 2>&1 </dev/null",
    "timeout {seconds} bash -c {bash} 2>&1 </dev/null",
    # A netcat without -z or -v (busybox's; ncat of RHEL 7.0), on a host without bash.
    "timeout {seconds} nc -w {seconds} {host} {port} 2>&1 </dev/null",
)
"""Run on the target's host in this order, until one shows whether the port is open."""


async def fence_over_ssh(
    method: SshMethod, target: Target, settings: SshSettings, *, deadline_seconds: float
) -> tuple[FencingOutcome, str, str]:
    """Kill the process on the target's port; return outcome, detail and the commands' output."""
    session = _Session(method, target, settings)
    work = asyncio.create_task(asyncio.to_thread(session.run), name="sshfence")
    try:
        async with asyncio.timeout(deadline_seconds):
            verdict = await asyncio.shield(work)
    except TimeoutError:
        session.abort()
        detail = f"gave up after {deadline_seconds:.1f} s while {session.doing}"
        return FencingOutcome.TIMED_OUT, detail, session.output()
    finally:
        session.abort()
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
    return verdict.outcome, verdict.detail, session.output()


class _Session:
    """One login and its commands, in their own thread."""

    def __init__(self, method: SshMethod, target: Target, settings: SshSettings) -> None:
        self._target = target
        self._settings = settings
        self._user, self._port = method.user or system_user(), method.port
        self._client = paramiko.SSHClient()
        self._nonce = new_nonce()
        self._output: list[str] = []
        self._aborted = False
        self.doing = "starting"

    def output(self) -> str:
        """Return the end of the commands' output."""
        return "\n".join(self._output)[-MAX_OUTPUT_BYTES:]

    def abort(self) -> None:
        """Close the connection, so that the thread's pending call fails."""
        self._aborted = True
        with contextlib.suppress(Exception):
            self._client.close()

    def run(self) -> SshResult:
        """Log in, kill the process, and check the port."""
        host = self._target.host
        self.doing = f"logging in at {self._user}@{host}:{self._port}"
        try:
            log_in(self._client, self._user, host, self._port, self._settings)
            return self._kill()
        except SshFailed as failure:
            return SshResult(FencingOutcome.FAILED, str(failure))
        except (OSError, EOFError, paramiko.SSHException) as failure:
            return SshResult(
                FencingOutcome.FAILED, f"ssh failed while {self.doing}: {_describe(failure)}"
            )
        finally:
            self._client.close()

    def _kill(self) -> SshResult:
        port = self._target.port
        self.doing = f"killing the process on port {port}"
        ended = self._run_remotely(f"fuser -k -n tcp {port}")
        killed = _pids(ended)
        left = self._find_remaining(killed) if ended.status == 0 else frozenset[int]()
        if (verdict := judge_killed(ended.status, killed, left)) is not None:
            return verdict
        self.doing = f"checking whether port {port} is closed"
        from_here = self._probe_from_here()
        # Any other answer is final, so the probe on the host would only cost time.
        on_host = self._probe_on_host() if from_here is Port.CLOSED else None
        return judge_port(on_host, from_here)

    def _find_remaining(self, killed: frozenset[int]) -> frozenset[int]:
        """Return the processes on the port after the kill.  Raises SshFailed if unknown."""
        end = time.monotonic() + GONE_WITHIN_SECONDS
        while True:
            seen = self._run_remotely(f"fuser -n tcp {self._target.port}")
            if seen.status not in (0, 1):
                raise SshFailed(
                    f"killed {sorted(killed)}, and whether they ended is not known: fuser "
                    f"then ended with status {seen.status}"
                )
            left = _pids(seen)
            if not killed & left or time.monotonic() > end:
                return left

    def _probe_on_host(self) -> Port:
        host, port, seconds = self._target.host, self._target.port, int(PROBE_SECONDS)
        bash = shlex.quote(f"exec 3<>/dev/tcp/{host}/{port}")
        for probe in _PROBES:
            answer = self._run_remotely(
                probe.format(seconds=seconds, host=shlex.quote(host), port=port, bash=bash)
            )
            if (seen := port_seen(answer.status, answer.said, host)) is not Port.UNKNOWN:
                return seen
        return Port.UNKNOWN

    def _probe_from_here(self) -> Port:
        host, port = self._target.host, self._target.port
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            return Port.UNKNOWN
        return port_at(map(_probe, sorted({one[4][:2] for one in found})))

    def _run_remotely(self, command: str) -> Answer:
        """Run a command in the remote shell, and return its answer.

        Raises SshFailed without an answer behind the marker within the limit.
        """
        if self._aborted:
            raise SshFailed("the time was up")
        timeout = self._settings.command_timeout_seconds
        end = time.monotonic() + timeout
        transport = self._client.get_transport()
        if transport is None:
            raise SshFailed("the connection was lost")
        with contextlib.closing(transport.open_session(timeout=timeout)) as channel:
            channel.settimeout(timeout)
            channel.exec_command(self._nonce.script(command))
            channel.shutdown_write()
            try:
                out = self._read(channel, end)
            except TimeoutError as failure:
                raise SshFailed(
                    f"{command} did not end within {timeout:g} s while {self.doing}"
                ) from failure
            answer = self._nonce.answer_in(out)
            self._log_output("stderr", _read_ready_stderr(channel), log.warning)
            self._log_output("stdout", self._nonce.noise_in(out), log.info)
            if answer is None:
                raise SshFailed(self._describe_refusal(command, channel, end))
        self._log_output("answer", answer.said, log.info)
        return answer

    def _read(self, channel: paramiko.Channel, end: float) -> bytes:
        """Return the output of a command until its answer or its end."""
        out = b""
        while self._nonce.answer_in(out) is None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            channel.settimeout(left)
            data = channel.recv(MAX_ANSWER_BYTES)
            if not data:
                break
            out = (out + data)[-MAX_ANSWER_BYTES:]
        return out

    def _describe_refusal(self, command: str, channel: paramiko.Channel, end: float) -> str:
        ended = channel.status_event.wait(max(0.0, end - time.monotonic()))
        status = f"ended with status {channel.exit_status}" if ended else "closed its output"
        wrote = f", and wrote: {self.output()[-200:]!r}" if self._output else ""
        return (
            f"the shell of {self._user}@{self._target.host} did not answer {command!r}: it "
            f"{status}{wrote}. Nothing is known of the process → give this user a shell that runs "
            f"commands (no nologin, no ForceCommand)"
        )

    def _log_output(self, stream: str, text: str, tell: Callable[..., object]) -> None:
        for line in text.splitlines()[-MAX_LINES:]:
            if line.strip():
                tell(f"fencing.{stream}", host=self._target.host, line=line.strip())
                self._output.append(line.strip())


def _probe(address: tuple[object, ...]) -> Port:
    """Return the state of the port by a connection from this host to one address."""
    try:
        with socket.create_connection(address, timeout=PROBE_SECONDS):  # type: ignore[arg-type]
            return Port.LISTENS
    except ConnectionRefusedError:
        return Port.CLOSED
    except OSError:
        return Port.UNKNOWN


def _read_ready_stderr(channel: paramiko.Channel) -> str:
    """Return the command's stderr that has arrived, without waiting for more."""
    data = channel.recv_stderr(MAX_OUTPUT_BYTES) if channel.recv_stderr_ready() else b""
    return str(data.decode("utf-8", "replace"))


def _pids(answer: Answer) -> frozenset[int]:
    return frozenset(
        int(word) for word in answer.said.split() if word.isascii() and word.isdecimal()
    )


def _describe(failure: BaseException) -> str:
    if isinstance(failure, TimeoutError | socket.timeout):
        return "no answer in time"
    return str(failure) or type(failure).__name__

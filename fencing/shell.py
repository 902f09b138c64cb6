"""The method ``shell(command)``: runs a command in bash, and kills its processes at a deadline."""

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import structlog

from fencing.output import Lines
from ha.conf.secrets import redact
from ha.record import dataclass

log = structlog.get_logger()

ABBREVIATED_CHARACTERS = 20
"""The length to which a command in a log line is cut, as in Hadoop's shell fencer."""

REAP_SECONDS = 1.0
"""How long we wait for the end of a killed process."""

_STDOUT, _STDERR = 1, 2

MARK: Final = "nnha_fencing_run"
"""The environment variable by which the command's processes are found."""

_ROUNDS: Final = 10
"""Searches are repeated: a process that was not found yet may start another one."""
_SLACK_SECONDS: Final = 1.0
_START_TIME: Final = 19
"""The index of starttime after the name in /proc/PID/stat, in clock ticks (proc(5), field 22)."""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """Identifies the processes of one run."""

    value: str
    since_ticks: float
    """The earliest start of a process of the run; reading /proc of older ones may hang."""

    @property
    def variable(self) -> dict[str, str]:
        """The variable for the command's environment."""
        return {MARK: self.value}


def new_mark() -> ProcessMark:
    """Return a mark that no other process has."""
    since = time.clock_gettime(time.CLOCK_BOOTTIME) - _SLACK_SECONDS
    return ProcessMark(secrets.token_hex(16), since * os.sysconf("SC_CLK_TCK"))


def kill_marked(mark: ProcessMark) -> None:
    """Kill every process with the mark whose environment this user may read.

    A daemon leaves its process group, session and parent, but keeps its environment.  Parents are
    no help once one has ended, and PR_SET_CHILD_SUBREAPER would make all orphans ours.
    """
    for _ in range(_ROUNDS):
        if sum(_kill_if_marked(pid, mark) for pid in _find_newer_processes(mark)) == 0:
            return


def _find_newer_processes(mark: ProcessMark) -> Iterator[int]:
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                after_name = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if int(after_name[_START_TIME]) >= mark.since_ticks:
                    yield int(process.name)
            except (OSError, IndexError, ValueError):
                continue  # the process has just ended


def _kill_if_marked(pid: int, mark: ProcessMark) -> bool:
    try:
        # Opened before the check: the pid may pass to another process before the kill.
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if f"{MARK}={mark.value}".encode() not in environment:
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(process)


@dataclass(frozen=True, slots=True)
class Finished:
    """The command ended by itself; a negative status is the signal that killed bash."""

    status: int
    output: str


@dataclass(frozen=True, slots=True)
class Overran:
    """The command was killed at the deadline with all processes that it had started."""

    output: str


@dataclass(frozen=True, slots=True)
class NotStarted:
    """No process was started: bash is missing, or the machine lacks resources."""

    reason: str


async def run_command(
    command: str, environment: Mapping[str, str], *, deadline_seconds: float
) -> Finished | Overran | NotStarted:
    """Run ``bash -e -c command`` without input in a new process group, and log its output.

    At the end, however it comes, all processes left in that group are killed.  The bad schedule
    without that: a background process of the script kills the NameNode after it has become active
    again.  At the deadline, processes that have left the group are killed, too; a command that ends
    by itself may leave some on purpose, by setsid.

    See docs/reference/fencing.md#shell.
    """
    deadline = asyncio.get_running_loop().time() + deadline_seconds
    mark = new_mark()
    try:
        transport, run = await _start(command, environment, mark)
    except (OSError, ValueError) as error:
        return NotStarted(f"bash cannot be started: {error}")
    try:
        async with asyncio.timeout_at(deadline):
            await run.exited.wait()
    except TimeoutError:
        _kill_all(transport.get_pid(), mark)
        await _wait_reaped(run)
        return Overran(run.output())
    else:
        status = transport.get_returncode()
        _kill_group(transport.get_pid())
        await _wait_reaped(run)
        return Finished(-1 if status is None else status, run.output())
    finally:
        await _clean_up(transport, run, mark)


async def _start(
    command: str, environment: Mapping[str, str], mark: ProcessMark
) -> tuple[asyncio.SubprocessTransport, "_Run"]:
    """Start bash; raise OSError or ValueError if that fails.

    The bad schedule without the shield: the caller is cancelled after bash was started and before
    its pipes are connected.  asyncio kills bash only, and waits for ever for the end of the pipes,
    which bash's children hold.
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.create_task(
        loop.subprocess_exec(
            lambda: _Run(command),
            *("bash", "-e", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            env={**environment, **mark.variable},
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _clean_up(*starting.result(), mark)
        raise


async def _clean_up(transport: asyncio.SubprocessTransport, run: "_Run", mark: ProcessMark) -> None:
    """Kill the command's remaining processes, and wait for their end."""
    if run.exited.is_set():
        _kill_group(transport.get_pid())
    else:
        _kill_all(transport.get_pid(), mark)
    # Also if we are cancelled: nothing else would wait for the child.
    await _wait_reaped(run)
    transport.close()
    run.close()


def abbreviate(command: str, length: int) -> str:
    """Return the command cut in the middle to ``length`` characters, as Hadoop logs it."""
    if len(command) <= length or length < len("a...b"):
        return command
    first = (length - 3) // 2
    return f"{command[:first]}...{command[-(length - first - 3) :]}"


class _Run(asyncio.SubprocessProtocol):
    """Logs the two streams of a running command, and notices its end."""

    def __init__(self, command: str) -> None:
        self._command = abbreviate(redact(command), ABBREVIATED_CHARACTERS)
        self._pid: int | None = None
        self.exited = asyncio.Event()
        self.gone = asyncio.Event()
        self._streams = {_STDOUT: Lines(self._log_stdout), _STDERR: Lines(self._log_stderr)}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pid = cast("asyncio.SubprocessTransport", transport).get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._streams[fd].feed(data)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()

    def close(self) -> None:
        """Log an unfinished last line, and the number of lines that were not logged."""
        for stream in self._streams.values():
            stream.close()
        dropped = sum(stream.dropped for stream in self._streams.values())
        if dropped:
            log.warning("fencing.output_cut", command=self._command, lines=dropped)

    def output(self) -> str:
        """Return the last lines of both streams, stderr after stdout."""
        for stream in self._streams.values():
            stream.close()
        return "\n".join(line for stream in self._streams.values() for line in stream.tail)

    def _log_stdout(self, line: str) -> None:
        log.info("fencing.stdout", command=self._command, pid=self._pid, line=line)

    def _log_stderr(self, line: str) -> None:
        log.warning("fencing.stderr", command=self._command, pid=self._pid, line=line)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _kill_all(group: int, mark: ProcessMark) -> None:
    _kill_group(group)  # first, so that they start no more processes
    kill_marked(mark)


async def _wait_reaped(run: _Run) -> None:
    """Wait for the end of the process and its pipes, at most REAP_SECONDS (disk sleep)."""
    # In a task that is being cancelled, asyncio.timeout raises no TimeoutError on Python 3.11.2.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(run.gone.wait(), REAP_SECONDS)

"""``shell(command)``: run a command in bash, with a deadline that ends all it started."""

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
"""How long a killed process may take to vanish before we stop waiting for it."""

_STDOUT, _STDERR = 1, 2

MARK: Final = "nnha_fencing_run"
"""The environment variable that the command and all that it starts carry."""

_ROUNDS: Final = 10
"""One that is not yet found may start another one while we look."""
_SLACK_SECONDS: Final = 1.0
_START_TIME: Final = 19
"""The place of starttime in /proc/PID/stat behind the name, in clock ticks (proc(5), field 22)."""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """What one run's processes are known by."""

    value: str
    since_ticks: float
    """None of them is older; to look into older ones could hang with one that hangs."""

    @property
    def variable(self) -> dict[str, str]:
        """For the command's environment."""
        return {MARK: self.value}


def fresh_mark() -> ProcessMark:
    """Make a mark that no other process carries."""
    since = time.clock_gettime(time.CLOCK_BOOTTIME) - _SLACK_SECONDS
    return ProcessMark(secrets.token_hex(16), since * os.sysconf("SC_CLK_TCK"))


def kill_strays(mark: ProcessMark) -> None:
    """Kill every process that carries the mark, as far as this user may look into it.

    A process may leave its group, its session and its parent (``setsid``, a daemon); its
    environment it takes along.  Parents show nothing once one of them has ended, and to adopt
    orphans (PR_SET_CHILD_SUBREAPER) would give a controller children that are none of its own.
    """
    for _ in range(_ROUNDS):
        if sum(_killed(pid, mark) for pid in _young(mark)) == 0:
            return


def _young(mark: ProcessMark) -> Iterator[int]:
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                after_name = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if int(after_name[_START_TIME]) >= mark.since_ticks:
                    yield int(process.name)
            except (OSError, IndexError, ValueError):
                continue  # it has just ended


def _killed(pid: int, mark: ProcessMark) -> bool:
    try:
        # Held before it is looked at: its number may be another one's by the time of the kill.
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
    """The command ended by itself (status as bash reports it; negative = killed by a signal)."""

    status: int
    output: str


@dataclass(frozen=True, slots=True)
class Overran:
    """The deadline passed, and all that the command had started was killed."""

    output: str


@dataclass(frozen=True, slots=True)
class NotStarted:
    """There is no process: bash is missing, or the machine has no room for one."""

    reason: str


async def run_command(
    command: str, environment: Mapping[str, str], *, deadline_seconds: float
) -> Finished | Overran | NotStarted:
    """Run ``bash -e -c command`` with nothing to read, and log what it writes line by line.

    The command gets a process group of its own.  When this function ends, in whatever way, every
    process left in that group is killed: a kill that a script left behind in the background could
    otherwise hit the NameNode after it was rightly made active again.  A command that does not end
    by itself is killed with what has left that group, too; one that ends may leave something on
    purpose, with setsid.

    See docs/reference/fencing.md#shell.
    """
    deadline = asyncio.get_running_loop().time() + deadline_seconds
    mark = fresh_mark()
    try:
        transport, run = await _start(command, environment, mark)
    except (OSError, ValueError) as error:
        return NotStarted(f"bash cannot be started: {error}")
    try:
        async with asyncio.timeout_at(deadline):
            await run.exited.wait()
    except TimeoutError:
        _kill_all(transport.get_pid(), mark)
        await _reaped(run)
        return Overran(run.output())
    else:
        status = transport.get_returncode()
        _kill_group(transport.get_pid())
        await _reaped(run)
        return Finished(-1 if status is None else status, run.output())
    finally:
        await _left(transport, run, mark)


async def _start(
    command: str, environment: Mapping[str, str], mark: ProcessMark
) -> tuple[asyncio.SubprocessTransport, "_Run"]:
    """Start bash; raises OSError or ValueError where it cannot be started.

    The bad schedule: the caller is cancelled when bash runs already and its pipes are not connected
    yet.  asyncio would kill bash alone, and wait for its pipes, which others hold, without end.
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
            await _left(*starting.result(), mark)
        raise


async def _left(transport: asyncio.SubprocessTransport, run: "_Run", mark: ProcessMark) -> None:
    """Kill what still runs of the command, and collect it."""
    if run.exited.is_set():
        _kill_group(transport.get_pid())
    else:
        _kill_all(transport.get_pid(), mark)
    # A cancelled caller waits for this moment too; nothing else would collect the child.
    await _reaped(run)
    transport.close()
    run.close()


def abbreviate(command: str, length: int) -> str:
    """Cut the command in its middle to ``length`` characters, as Hadoop's fencer logs it."""
    if len(command) <= length or length < len("a...b"):
        return command
    first = (length - 3) // 2
    return f"{command[:first]}...{command[-(length - first - 3) :]}"


class _Run(asyncio.SubprocessProtocol):
    """One running command: its two streams, and whether it has ended."""

    def __init__(self, command: str) -> None:
        self._command = abbreviate(redact(command), ABBREVIATED_CHARACTERS)
        self._pid: int | None = None
        self.exited = asyncio.Event()
        self.gone = asyncio.Event()
        self._streams = {_STDOUT: Lines(self._heard), _STDERR: Lines(self._complained)}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._pid = cast("asyncio.SubprocessTransport", transport).get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._streams[fd].feed(data)

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()

    def close(self) -> None:
        """Log what is still held back, and how much was never logged."""
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

    def _heard(self, line: str) -> None:
        log.info("fencing.stdout", command=self._command, pid=self._pid, line=line)

    def _complained(self, line: str) -> None:
        log.warning("fencing.stderr", command=self._command, pid=self._pid, line=line)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _kill_all(group: int, mark: ProcessMark) -> None:
    _kill_group(group)  # first, so that it starts nothing more
    kill_strays(mark)


async def _reaped(run: _Run) -> None:
    """Wait until the process and its pipes are gone, which SIGKILL can delay (disk sleep)."""
    # In a task that is being cancelled, asyncio.timeout raises no TimeoutError on Python 3.11.2.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(run.gone.wait(), REAP_SECONDS)

"""``shell(command)``: run a command in bash, with a deadline that ends all it started."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import structlog

from fencing.output import Lines
from fencing.redaction import redacted
from fencing.strays import Mark, fresh_mark, kill_strays

log = structlog.get_logger()

ABBREVIATED_CHARACTERS = 20
"""As in Hadoop's shell fencer: a command in a log line is cut to this."""

REAP_SECONDS = 1.0
"""How long a killed process may take to vanish before we stop waiting for it."""

_STDOUT, _STDERR = 1, 2


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
    loop = asyncio.get_running_loop()
    deadline = loop.time() + deadline_seconds
    mark = fresh_mark()
    try:
        transport, run = await loop.subprocess_exec(
            lambda: _Run(command),
            *("bash", "-e", "-c", command),
            stdin=asyncio.subprocess.DEVNULL,
            env={**environment, **mark.variable},
            start_new_session=True,
        )
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
        if run.exited.is_set():
            _kill_group(transport.get_pid())
        else:
            _kill_all(transport.get_pid(), mark)
        # A cancelled caller waits for this moment too; nobody else would collect the child.
        await _reaped(run)
        transport.close()
        run.close()


def abbreviate(command: str, length: int) -> str:
    """The command cut in its middle to ``length`` characters, as Hadoop's fencer logs it."""
    if len(command) <= length or length < len("a...b"):
        return command
    first = (length - 3) // 2
    return f"{command[:first]}...{command[-(length - first - 3) :]}"


class _Run(asyncio.SubprocessProtocol):
    """One running command: its two streams, and whether it has ended."""

    def __init__(self, command: str) -> None:
        self._command = abbreviate(redacted(command), ABBREVIATED_CHARACTERS)
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
        """The last lines of both streams, stderr after stdout."""
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


def _kill_all(group: int, mark: Mark) -> None:
    _kill_group(group)  # first, so that it starts nothing more
    kill_strays(mark)


async def _reaped(run: _Run) -> None:
    """Wait until the process and its pipes are gone, which SIGKILL can delay (disk sleep)."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(REAP_SECONDS):
            await run.gone.wait()

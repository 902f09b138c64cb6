"""Whether the process that a pid file names runs: known at once, without asking the NameNode."""

import asyncio
import os
import select
from pathlib import Path

import structlog

from ha.record import dataclass

log = structlog.get_logger()

_PID_FILE_LIMIT_BYTES = 64
_MOST_PID = 1 << 22
"""PID_MAX_LIMIT of Linux; a number beyond 31 bits is no argument of a system call."""


@dataclass(frozen=True, slots=True)
class Running:
    """The process lives."""

    pid: int


@dataclass(frozen=True, slots=True)
class Over:
    """The process has ended."""

    pid: int
    answered: bool
    """It is the process that was running while the NameNode answered us."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The pid file does not show it."""

    reason: str


class PidFile:
    """Watches the process of a NameNode on this machine by its pid file.

    A number in a file may be stale, or may have been given to another process since.  So the
    process is held by a descriptor from the moment at which the NameNode answered: the end of
    that process is certain.  Of one that never answered, only the number is known.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = 0
        self._descriptor: int | None = None

    def answered(self) -> None:
        """Take the process in the file to be the NameNode, which has just answered."""
        pid = self._read()
        if isinstance(pid, Unknown) or (pid == self._pid and not self._has_ended()):
            return
        self.close()
        try:
            self._descriptor = os.pidfd_open(pid)
        except OSError as failure:
            log.debug("health.pid_file.stale", path=str(self.path), pid=pid, reason=repr(failure))
            return
        self._pid = pid

    def look(self) -> Running | Over | Unknown:
        """Return what is known of the process now."""
        pid = self._read()
        if self._descriptor is not None and (isinstance(pid, Unknown) or pid == self._pid):
            return Over(self._pid, answered=True) if self._has_ended() else Running(self._pid)
        if isinstance(pid, Unknown):
            return pid
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return Over(pid, answered=False)
        except PermissionError:
            return Running(pid)  # somebody else's, but it lives
        return Running(pid)

    async def ended(self) -> None:
        """Return when the process that answered ends; never, where none is held."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        descriptor = self._descriptor
        if descriptor is None:
            await over
            return

        def readable() -> None:
            if not over.done():
                over.set_result(None)

        loop.add_reader(descriptor, readable)
        try:
            await over
        finally:
            loop.remove_reader(descriptor)

    def close(self) -> None:
        """Let go of the process."""
        descriptor, self._descriptor, self._pid = self._descriptor, None, 0
        if descriptor is not None:
            os.close(descriptor)

    def _read(self) -> int | Unknown:
        try:
            with self.path.open("rb") as file:
                text = file.read(_PID_FILE_LIMIT_BYTES).decode("ascii").strip()
            pid = int(text)
        except OSError as failure:
            return Unknown(f"the pid file {self.path} cannot be read: {failure.strerror}")
        except ValueError:
            return Unknown(f"the pid file {self.path} holds no number")
        if not 0 < pid <= _MOST_PID:
            return Unknown(f"the pid file {self.path} holds no pid: {pid}")
        return pid

    def _has_ended(self) -> bool:
        if self._descriptor is None:
            return False
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(0))

"""Checks by a pid file whether the NameNode's process runs, without a request to it."""

import asyncio
import os
import select
from pathlib import Path

import structlog

from ha.record import dataclass

log = structlog.get_logger()

_PID_FILE_LIMIT_BYTES = 64
_MOST_PID = 1 << 22
"""PID_MAX_LIMIT of Linux; system calls fail for a number of more than 31 bits."""


@dataclass(frozen=True, slots=True)
class Running:
    """The process runs."""

    pid: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The process has ended."""

    pid: int
    answered: bool
    """True for the process that was held when the NameNode answered."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The pid file does not show whether the process runs."""

    reason: str


class PidFile:
    """Watches the process of a NameNode on this machine by its pid file.

    The pid in a file may be stale, or belong to another process by now.  So a pidfd of the process
    is opened when the NameNode has answered, and its end is certain then.  Before, only the number
    is known.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pid = 0
        self._descriptor: int | None = None

    def hold(self) -> None:
        """Open a pidfd of the process in the file; call this when the NameNode has answered."""
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

    def look(self) -> Running | Ended | Unknown:
        """Return whether the process runs."""
        pid = self._read()
        if self._descriptor is not None and (isinstance(pid, Unknown) or pid == self._pid):
            return Ended(self._pid, answered=True) if self._has_ended() else Running(self._pid)
        if isinstance(pid, Unknown):
            return pid
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return Ended(pid, answered=False)
        except PermissionError:
            return Running(pid)  # it is another user's process
        return Running(pid)

    async def wait_ended(self) -> None:
        """Return when the held process ends; wait for ever if none is held."""
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
        """Close the pidfd."""
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

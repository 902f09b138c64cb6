"""Sees the process of our own NameNode end, if it runs on this machine."""

import os
import select
from datetime import UTC, datetime
from typing import Final

import structlog

from ha.daemon.identity import machine, started_ticks
from ha.service.model import ProcessIdentity

log = structlog.get_logger()

EXIT_MILLIS: Final = 20
"""A process that was killed closes its sockets a moment before it has ended."""


class LocalProcess:
    """Watches the process that served as active in this term.

    Only what itself said that it is active is watched.  If two processes said so in one term,
    nobody can tell which of them still serves, and nothing is known.
    """

    def __init__(self) -> None:
        self._watched: ProcessIdentity | None = None
        self._descriptor: int | None = None
        self._spoilt = False

    def serves(self, process: ProcessIdentity | None) -> None:
        """This process said that it is active, under our lock."""
        if process == self._watched or self._spoilt:
            return
        if process is None or self._watched is not None:
            self.forget()
            self._spoilt = True
            return
        self._watched, self._descriptor = process, _open(process)
        log.info("zkfc.namenode.watched", pid=process.pid, here=self._descriptor is not None)

    def forget(self) -> None:
        """The term is over."""
        self._watched, self._spoilt = None, False
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def ended(self) -> str:
        """Which process has ended, and when we saw it; empty while it runs or nobody knows."""
        if self._watched is None or self._descriptor is None:
            return ""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(EXIT_MILLIS):
            return ""
        seen = datetime.now(UTC).isoformat(timespec="milliseconds")
        one = self._watched
        return f"pid {one.pid}, started at tick {one.started_ticks}, seen ended {seen}"


def _open(process: ProcessIdentity) -> int | None:
    """A descriptor of exactly this process; None when it is not on this machine."""
    try:
        if process.machine != machine():
            return None
        descriptor = os.pidfd_open(process.pid)
    except (OSError, OverflowError):  # the number is what the NameNode says, and travels unsigned
        return None
    # Only now the number cannot be given to another process without our knowing.
    if started_ticks(process.pid) != process.started_ticks:
        os.close(descriptor)
        return None
    return descriptor

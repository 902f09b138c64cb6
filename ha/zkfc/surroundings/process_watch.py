"""Watches one process of this machine by a pidfd, which shows the end of exactly that process."""

import os
import select
import signal
from typing import Final, Protocol

from ha.daemon.identity import machine, started_ticks
from ha.service.model import ProcessIdentity

EXIT_MILLIS: Final = 20
"""A killed process closes its sockets up to this time before its end is visible."""


class Watched(Protocol):
    """A watched process of this machine."""

    def ended(self, *, wait_millis: int = EXIT_MILLIS) -> bool:
        """Return whether it has ended, after waiting for that for at most ``wait_millis``."""

    def kill(self) -> None:
        """Kill exactly this process.  Raises OSError if that is not permitted."""

    def close(self) -> None:
        """End the watch."""


class _ByDescriptor:
    """Implements ``Watched`` by a pidfd; the kernel gives it to no later process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def ended(self, *, wait_millis: int = EXIT_MILLIS) -> bool:
        """See ``Watched``."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(wait_millis))

    def kill(self) -> None:
        """See ``Watched``."""
        signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def close(self) -> None:
        """See ``Watched``."""
        os.close(self._descriptor)


def watch_process(process: ProcessIdentity) -> Watched | None:
    """Return a watch of exactly this process; None if it does not run on this machine."""
    try:
        if process.machine != machine():
            return None
        descriptor = os.pidfd_open(process.pid)
    except (OSError, OverflowError):  # the NameNode reports the pid as an unsigned number
        return None
    # Checked after the open: before it, the pid could still pass to another process.
    if started_ticks(process.pid) != process.started_ticks:
        os.close(descriptor)
        return None
    return _ByDescriptor(descriptor)

"""Watches one process of this machine, so that its end is seen and never guessed."""

import os
import select
import signal
from typing import Final, Protocol

from ha.daemon.identity import machine, started_ticks
from ha.service.model import ProcessIdentity

EXIT_MILLIS: Final = 20
"""A process that was killed closes its sockets a moment before it has ended."""


class Watched(Protocol):
    """One process that is here."""

    def ended(self, *, wait_millis: int = EXIT_MILLIS) -> bool:
        """Return whether it has ended; wait for a moment where it has not."""

    def kill(self) -> None:
        """End exactly this process.  Raises OSError where we may not."""

    def close(self) -> None:
        """Watch it no more."""


class _ByDescriptor:
    """Watched by a descriptor of exactly this process, which no other can be given."""

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
    """Watch exactly this process; None when it is not on this machine."""
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
    return _ByDescriptor(descriptor)

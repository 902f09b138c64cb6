"""What is reported to systemd of this daemon: ready, its status, alive (sd_notify(3)).

One datagram for each message, to the socket that ``NOTIFY_SOCKET`` names; nothing where there is
none.  These variables are taken out of the environment: a fencing script must not send messages in
our name.
"""

import contextlib
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ha.record import dataclass

_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"
_WATCHDOG_PID: Final = "WATCHDOG_PID"
_STATUS_CHARACTERS: Final = 200
_FAILED: Final = "failed-starts"
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 30.0


@dataclass(slots=True)
class Service:
    """The service manager of this process, if systemd has started it; there is one in a process."""

    address: str = ""
    """Of the socket; empty: there is none."""
    alive_every_seconds: float = 0.0
    """How often systemd wants to hear that our loop runs; 0: never."""
    overdue: Callable[[], str] = lambda: ""
    """Which duty of this daemon, apart from its event loop, has not moved for too long; empty:
    none. While one is overdue the sign of life is not given.
    """
    failed_starts: Path | None = None
    """A file with a byte for each start that has failed since one succeeded."""

    def adopt(self) -> None:
        """Take what systemd has put into the environment."""
        address = os.environ.pop(_SOCKET, "")
        usec = os.environ.pop(_WATCHDOG, "")
        os.environ.pop(_WATCHDOG_PID, None)  # of our parent, where it has one (zkfc --supervised)
        if address.startswith(("/", "@")):
            self.address = address
            folder = os.environ.get("STATE_DIRECTORY")
            self.failed_starts = Path(folder, _FAILED) if folder else None
        if self.address and usec.isascii() and usec.isdecimal():
            self.alive_every_seconds = int(usec) / 1e6 / 3

    def ready(self) -> None:
        """Report the end of the start: listeners are open, and what depends on us may start."""
        self._send("READY=1")
        if self.failed_starts is not None:
            with contextlib.suppress(OSError):
                self.failed_starts.unlink(missing_ok=True)
            self.failed_starts = None

    def held_back_seconds(self) -> float:
        """Count a start that has failed, and return how long the next one is to wait.

        RestartSteps= of systemd 254 counts every restart: a daemon that is killed now and then
        would be away for longer each time.
        """
        if self.failed_starts is None:
            return 0.0
        try:
            with self.failed_starts.open("ab") as file:
                file.write(b"x")
                doubled = min(file.tell() - 1, 10)
        except OSError:
            return 0.0
        return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << doubled))

    def alive(self) -> None:
        """Report that the event loop has run, and that the daemon's own duties are done."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Report that the daemon stops in order, which may take a while."""
        self._send("STOPPING=1")

    def status(self, text: str, *, more_seconds: float = 0.0) -> None:
        """Send a line for ``systemctl status``; ``more_seconds`` extend the limit of the start."""
        line = " ".join(text.split())[:_STATUS_CHARACTERS]
        extend = f"\nEXTEND_TIMEOUT_USEC={int(more_seconds * 1e6)}" if more_seconds else ""
        self._send(f"STATUS={line}{extend}")

    def _send(self, message: str) -> None:
        if not self.address:
            return
        name = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        # It never blocks: a systemd that does not read is no reason to stand still.
        with contextlib.suppress(OSError):
            kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
            with socket.socket(socket.AF_UNIX, kind) as sender:
                sender.sendto(message.encode(), name)


def clock_time() -> str:
    """Return the time of day for a status, to the second."""
    return time.strftime("%H:%M:%S UTC", time.gmtime())


SERVICE: Final = Service()

"""A thread that reads one connection, as long as all that comes are calls to carry out there.

In this time only the thread reads it and writes to it: the loop looks at its waits, and may shut
it.  So a connection's calls are carried out in the order in which they came, on both sides of each
change.
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from ha.record import dataclass
from ha.rpc.call_header import Asked
from ha.rpc.session import Event, Hangup, ServerSession

log = structlog.get_logger()

THREAD_BYTES: Final = 1024 * 1024
"""What a thread may have half received, more than a batch of Java's; larger ones are the loop's."""
_READ_BYTES: Final = 64 * 1024
"""At once: for more the C library maps fresh pages each time."""


@dataclass(slots=True)
class Since:
    """When things began on a connection, by the monotonic clock."""

    born: float
    heard: float
    frame: float | None = None
    stalled: float | None = None


class ReadingThread:
    """Carries out calls until something else comes, and gives the connection back with that."""

    def __init__(
        self,
        session: ServerSession,
        since: Since,
        carry_out: Callable[[Asked], bytes | Hangup | None],
        over: Callable[[Event | None], object],
    ) -> None:
        """Call ``over`` in the thread at its end."""
        self.waits = False
        """Whether nothing is owed to the peer."""
        self._peer: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._session = session
        self._since = since
        self._carry_out = carry_out
        self._over = over
        self._recalled = False

    def begin(self, shared: socket.socket, asked: Asked) -> None:
        """Carry out this call first.

        Raises:
            OSError, RuntimeError: there is no room for another file or thread.
        """
        peer = self._peer = socket.fromfd(shared.fileno(), shared.family, shared.type)
        peer.settimeout(None)  # for whoever else has the socket, too
        name, arguments = f"calls of {asked.method}", (peer, asked)
        thread = threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
        thread.start()
        self._thread = thread

    def recall(self) -> None:
        """Give the connection back once the call under way is answered."""
        self._recalled = True
        self._shut(socket.SHUT_RD)

    def shut(self) -> None:
        """End the conversation now."""
        self._shut(socket.SHUT_RDWR)

    def end(self) -> None:
        """Leave the socket to the loop; the thread has said that it is over, or was not begun."""
        if self._thread is not None:
            self._thread.join()  # it has nothing left to do
        if self._peer is not None:
            self._peer.settimeout(0)
            self._peer.close()

    def _shut(self, how: int) -> None:
        with suppress(OSError):  # the other end is gone already
            if self._peer is not None:
                self._peer.shutdown(how)

    def _run(self, peer: socket.socket, asked: Asked) -> None:
        event: Event | None = asked
        try:
            while True:
                if isinstance(event, Asked):
                    answer = self._carry_out(event)
                    if not isinstance(answer, bytes):
                        event = answer or event
                        break
                    self._send(peer, answer)
                elif event is not None or not self._receive(peer):
                    break
                event = self._session.next_event()
        except OSError:
            event = None  # the loop finds the connection as we did
        except Exception:
            log.exception("rpc.thread_crashed")
            self.shut()
            event = None
        with suppress(RuntimeError):  # the loop is closed, and all of this is over
            self._over(event)

    def _send(self, peer: socket.socket, answer: bytes) -> None:
        since = self._since
        since.stalled = time.monotonic()
        peer.sendall(answer)
        since.stalled = None
        since.heard = since.frame = time.monotonic()

    def _receive(self, peer: socket.socket) -> bool:
        """Take in what the peer sends; False where the loop is to do that."""
        since, session = self._since, self._session
        buffered = session.buffered_bytes
        if self._recalled or buffered + _READ_BYTES > THREAD_BYTES:
            return False
        if not buffered:
            since.frame = None
        self.waits = True
        data = peer.recv(_READ_BYTES)
        self.waits = False
        if not data:
            return False
        since.heard = time.monotonic()
        if since.frame is None:
            since.frame = since.heard
        session.receive(data)
        return True

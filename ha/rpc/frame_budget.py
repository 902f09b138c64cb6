"""One budget for all frames that are half received, over all servers of a process.

Without it a thousand peers could each leave most of a frame of the largest size here.  A peer that
would exceed the budget is not read from until others' frames have ended; its bytes wait with it.
See docs/reference/rpc.md#limits.
"""

from collections.abc import Callable
from typing import Final, Protocol

from ha.rpc.metrics import BUFFERED, STARVED

DEFAULT_BYTES: Final = 256 * 1024 * 1024
FREE_BYTES: Final = 32 * 1024
"""Of each connection: nearly every call fits in it, so that these never wait for large ones."""
RESERVED_SHARE: Final = 4
"""A quarter is kept for the protocols of failover."""
_READ_BYTES: Final = 32 * 1024
"""What one reading from a socket may bring."""


class Receiving(Protocol):
    """A connection that receives frames."""

    @property
    def privileged(self) -> bool:
        """Whether the reserve is for it, too."""

    def pump(self) -> None:
        """Go on: there is room again."""


class FrameBudget:
    """Counts what is buffered, by connection; all on one event loop."""

    def __init__(self, total_bytes: int = DEFAULT_BYTES) -> None:
        self.total_bytes = total_bytes
        self.used_bytes = 0
        self._held: dict[Receiving, int] = {}
        self._waiting: dict[Receiving, None] = {}

    @property
    def waiting(self) -> int:
        """How many connections are not read from at present."""
        return len(self._waiting)

    def holds(self, connection: Receiving, size: int) -> bool:
        """Note how much a connection has buffered; whether it may be read from."""
        before = self._held.get(connection, 0)
        if not size and not before:
            return True
        if size:
            self._held[connection] = size
        elif before:
            del self._held[connection]
        self.used_bytes += size - before
        BUFFERED.set(self.used_bytes)
        may = size <= FREE_BYTES or self.used_bytes <= self._limit(connection)
        if may:
            self._waiting.pop(connection, None)
        elif connection not in self._waiting:
            self._waiting[connection] = None
            STARVED.inc()
        if size < before:
            self._wake()
        return may

    def set_aside(self, connection: Receiving, size: int) -> bool:
        """Reserve ``size`` bytes for a connection, whatever it buffers, until the next ``holds``.

        Return False, with nothing changed, if the budget does not have them.
        """
        more = size - self._held.get(connection, 0)
        if self.used_bytes + more > self._limit(connection):
            return False
        self._held[connection] = size
        self._waiting.pop(connection, None)
        self.used_bytes += more
        BUFFERED.set(self.used_bytes)
        return True

    def forget(self, connection: Receiving) -> None:
        """Release what a closed connection had buffered."""
        self._waiting.pop(connection, None)
        self.used_bytes -= self._held.pop(connection, 0)
        BUFFERED.set(self.used_bytes)
        self._wake()

    def _limit(self, connection: Receiving) -> int:
        if connection.privileged:
            return self.total_bytes
        return self.total_bytes - self.total_bytes // RESERVED_SHARE

    def _wake(self) -> None:
        """Let the smallest go on that there is room for; the largest waits longest."""
        room = self.used_bytes
        woken: list[Callable[[], None]] = []
        for connection in sorted(self._waiting, key=lambda one: self._held.get(one, 0)):
            if room + _READ_BYTES > self._limit(connection):
                continue
            room += _READ_BYTES
            woken.append(connection.pump)
        for pump in woken:
            pump()

"""How many moves of blocks run at once, and how fast their bytes pass.

See docs/reference/datanode.md#moves.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ha.record import dataclass
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.errors import DataNodeError

_SAVED_SECONDS: Final = 0.5
"""After a silence the bytes of this time pass at once (Hadoop's period of throttling)."""


@dataclass(frozen=True, slots=True)
class MoveRules:
    """Hadoop's settings, with their defaults: bytes a second of all moves, and moves at once.

    ``pinning``: a replica that its writer wished to be on this very DataNode is not moved away.
    """

    bytes_per_second: int = 100 * 1024 * 1024
    most: int = 100
    pinning: bool = False


class MoveRefused(DataNodeError):
    """A move does not begin, or has failed; ``status`` is what the caller is answered."""

    def __init__(self, message: str, status: pb.Status.ValueType = pb.Status.ERROR) -> None:
        super().__init__(message)
        self.status = status


class BalanceThrottle:
    """The moves that run, which share one bandwidth.  All methods belong to the event loop."""

    def __init__(self, rules: MoveRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = rules.most, clock
        self.bytes_per_second = rules.bytes_per_second
        self.running = 0
        self._credit = 0.0
        self._counted = clock()
        self._changed = asyncio.Event()

    def use(self, bytes_per_second: int) -> None:
        """Let bytes pass at another speed from now on; one that is not above 0 changes nothing."""
        if bytes_per_second > 0:
            self._count()
            self.bytes_per_second = bytes_per_second
            self._changed.set()
            self._changed = asyncio.Event()

    @contextmanager
    def slot(self, what: str) -> Iterator[None]:
        """Count a move while the block runs; raise MoveRefused, with ``what``, if too many run."""
        if self.running >= self._most:
            raise MoveRefused(f"{what} because threads quota={self._most} is exceeded.")
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

    async def passed(self, count: int) -> None:
        """Note that ``count`` bytes have passed, and wait until more may."""
        self._count()
        self._credit -= count
        while self._credit < 0:
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout(-self._credit / self.bytes_per_second):
                    await changed.wait()
            self._count()

    def _count(self) -> None:
        now = self._clock()
        earned = (now - self._counted) * self.bytes_per_second
        self._credit = min(self._credit + earned, _SAVED_SECONDS * self.bytes_per_second)
        self._counted = now

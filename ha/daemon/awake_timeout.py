"""A time limit that does not end because this process itself stood still."""

import asyncio
from types import TracebackType
from typing import Final, Self

_PARTS: Final = 4
_MOST_LATE: Final = 4
"""Parts that do not count; a loop that is always late must come to an end, too."""


class AwakeTimeout:
    """As ``asyncio.timeout``, but the first four standstills of our own loop do not count.

    The time is counted in quarters.  A quarter does not count where our loop notices its end late
    by more than another quarter.

    Bad schedule: the machine stops this process for longer than the limit, and what is waited for
    has come in the meantime.  An event loop that goes on finds the limit over before it has looked.

    Raises:
        TimeoutError: the time is over.
    """

    def __init__(self, seconds: float) -> None:
        self._part_seconds = seconds / _PARTS
        self._left, self._late_left = _PARTS, _MOST_LATE
        self._limit = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()

    async def __aenter__(self) -> Self:
        """Begin to count."""
        await self._limit.__aenter__()
        self._count()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Count no more."""
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _count(self) -> None:
        self._timer = self._loop.call_later(self._part_seconds, self._passed)

    def _passed(self) -> None:
        late = self._loop.time() - self._timer.when() > self._part_seconds
        if late and self._late_left:
            self._late_left -= 1
        else:
            self._left -= 1
        if self._left:
            self._count()
        else:
            self._limit.reschedule(self._loop.time())

"""Limits the rate of a transfer (as Hadoop's DataTransferThrottler)."""

import asyncio
from typing import Final

_PERIOD_SECONDS: Final = 0.5
_MAX_CREDIT_PERIODS: Final = 3


class Throttle:
    """Limits a transfer to ``bytes_per_second``; 0 means no limit.

    Unused bytes of the last three periods may be spent later: a short pause of the peer does not
    lower the rate, and a long one allows no large burst.
    """

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._clock = asyncio.get_running_loop().time
        self._credit = bytes_per_second * _PERIOD_SECONDS
        self._counted_at = self._clock()

    async def spend(self, count: int) -> None:
        """Count ``count`` bytes, and sleep until the rate is below the limit again."""
        if self._rate <= 0:
            return
        self._save_up()
        self._credit -= count
        if self._credit < 0:
            await asyncio.sleep(-self._credit / self._rate)

    def _save_up(self) -> None:
        now = self._clock()
        most = self._rate * _PERIOD_SECONDS * _MAX_CREDIT_PERIODS
        self._credit = min(most, self._credit + (now - self._counted_at) * self._rate)
        self._counted_at = now

"""Replicas on their way to a storage, for which it must have room.

See docs/reference/datanodes.md#replicas-on-their-way.
"""

from dataclasses import dataclass
from typing import Final

PERIOD_SECONDS: Final = 600.0


@dataclass(slots=True, eq=False)
class Scheduled:
    """A count in two periods: what did not come by the end of the second is not awaited any more.

    ``now`` is monotonic, in seconds.
    """

    _recent: int = 0
    _before: int = 0
    _since: float = 0.0

    def add(self, now: float) -> None:
        """Note that a storage was chosen for a replica."""
        self._turn(now)
        self._recent += 1

    def take(self, now: float) -> None:
        """Note that a replica came, or will not come."""
        self._turn(now)
        if self._before:
            self._before -= 1
        elif self._recent:
            self._recent -= 1

    def count(self, now: float) -> int:
        """Return how many replicas are on their way."""
        self._turn(now)
        return self._recent + self._before

    def _turn(self, now: float) -> None:
        periods = int((now - self._since) / PERIOD_SECONDS)
        if periods:
            self._before = self._recent if periods == 1 else 0
            self._recent = 0
            self._since = now

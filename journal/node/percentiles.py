"""Percentiles of the last syncs' latencies, in the windows of Hadoop's JournalNode at /jmx.

They are for tools that read Hadoop's attributes (Syncs60s99thPercentileLatencyMicros); Prometheus
has a histogram, which can be summed over nodes.

Pure.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

WINDOWS_SECONDS: Final = (60, 300, 3600)
PERCENTILES: Final = (50, 75, 90, 95, 99)
MOST_SAMPLES: Final = 20_000
"""Limit of the samples; on a busy node the longest window covers only the last minutes."""


class RecentSyncs:
    """The latencies of the last syncs; ``now`` is a monotonic time in seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)

    def add(self, now: float, seconds: float) -> None:
        """Add a sync that took ``seconds`` and ended at ``now``."""
        self._samples.append((now, seconds))

    def attributes(self, now: float) -> Mapping[str, int]:
        """Return Hadoop's attributes at ``now``; as in Hadoop, zeros for a window without syncs."""
        found: dict[str, int] = {}
        for window in WINDOWS_SECONDS:
            inside = sorted(took for at, took in self._samples if now - at <= window)
            name = f"Syncs{window}s"
            found[f"{name}NumOps"] = len(inside)
            for percentile in PERCENTILES:
                micros = round(_at(inside, percentile) * 1e6)
                found[f"{name}{percentile}thPercentileLatencyMicros"] = micros
        return found


def _at(ordered: list[float], percentile: int) -> float:
    """Return the smallest value that ``percentile`` per cent of the values do not exceed."""
    if not ordered:
        return 0.0
    rank = -(-len(ordered) * percentile // 100)
    return ordered[max(0, rank - 1)]

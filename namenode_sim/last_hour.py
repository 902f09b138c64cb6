"""The last hour of a NameNode in figures: a sample each half minute, in a ring of bounded size."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from ha.record import dataclass

log = structlog.get_logger()
EVERY_SECONDS: Final = 30.0
MOST_SAMPLES: Final = 120
"""An hour of them."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What was counted since the start, and what holds now; ``at`` is on the monotonic clock.

    ``commits`` has how many commits took at most each bound, in seconds, as a histogram counts
    them.  ``lag_seconds`` and ``under_replicated`` are None where this role does not know them.
    """

    at: float
    role: str
    edits: int
    calls: int
    commits: Sequence[tuple[float, float]]
    lag_seconds: float | None
    under_replicated: int | None


def sample(before: Totals, now: Totals) -> Mapping[str, object]:
    """Return the rates between two looks; None: not known, which is not zero.

    Edits and commits of an interval in which the role changed are not known: a standby applies
    what another NameNode wrote, and is as fast as it can.
    """
    seconds = now.at - before.at
    known = seconds > 0 and before.role == now.role
    pairs = zip(now.commits, before.commits, strict=True)
    counts = [(bound, count - earlier) for (bound, count), (_, earlier) in pairs if known]
    return {
        "role": now.role,
        "edits_per_second": round((now.edits - before.edits) / seconds, 2) if known else None,
        "calls_per_second": round((now.calls - before.calls) / seconds, 2) if seconds > 0 else None,
        "commit_median_seconds": quantile(0.5, counts),
        "commit_p99_seconds": quantile(0.99, counts),
        "lag_seconds": now.lag_seconds,
        "under_replicated": now.under_replicated,
    }


def quantile(share: float, counts: Sequence[tuple[float, float]]) -> float | None:
    """Return below which bound this share of all lies, between two bounds by their proportion.

    What lies above the last finite bound counts as that.  None where nothing was counted.
    """
    total = counts[-1][1] if counts else 0.0
    wanted, low, below = share * total, 0.0, 0.0
    for bound, count in counts if total > 0 else ():
        if count >= wanted and count > below:
            inside = (wanted - below) / (count - below)
            return round(low if bound == float("inf") else low + (bound - low) * inside, 6)
        low, below = bound, count
    return None


class HourRecorder:
    """Keeps the newest samples; ``read`` gives the totals at the moment, on the loop."""

    def __init__(
        self, read: Callable[[], Totals], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._clock, self._began = read, clock, clock()
        self._before: Totals | None = None
        self._samples: deque[tuple[float, Mapping[str, object]]] = deque(maxlen=MOST_SAMPLES)

    def take(self) -> None:
        """Take one sample; the first look at the totals gives none."""
        now = self._read()
        if self._before is not None:
            self._samples.append((now.at, sample(self._before, now)))
        self._before = now

    async def run(self) -> None:
        """Take samples for ever; a figure for a page must never end a NameNode."""
        while True:
            try:
                self.take()
            except Exception:
                log.exception("last_hour.not_sampled")
            await asyncio.sleep(EVERY_SECONDS)

    def as_json(self) -> Mapping[str, object]:
        """Return the samples, the oldest first, each with its age: clocks of hosts differ."""
        now = self._clock()
        return {
            "started_seconds_ago": round(now - self._began, 1),
            "every_seconds": EVERY_SECONDS,
            "samples": [{"age_seconds": round(now - at, 1), **one} for at, one in self._samples],
        }

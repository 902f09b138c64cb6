"""The last hour of NameNodes, as their pages ``/last-hour`` give it.  Pure."""

from collections.abc import Mapping
from typing import Final

from ha.notices.codec import entry
from ha.record import dataclass, replace

HOUR_SECONDS: Final = 3600.0
MOST_SAMPLES: Final = 240
"""Of one NameNode; a newer one may take them more often."""


@dataclass(frozen=True, slots=True)
class HourSample:
    """What a NameNode has measured in a time that ended ``age_seconds`` ago; None: not known."""

    age_seconds: float
    role: str
    edits_per_second: float | None = None
    calls_per_second: float | None = None
    commit_median_seconds: float | None = None
    commit_p99_seconds: float | None = None
    lag_seconds: float | None = None
    under_replicated: float | None = None


@dataclass(frozen=True, slots=True)
class LastHour:
    """The samples of one NameNode, the oldest first, and when it began to take them."""

    started_seconds_ago: float | None = None
    every_seconds: float = 30.0
    samples: tuple[HourSample, ...] = ()

    def older(self, seconds: float) -> "LastHour":
        """Return the same, seen later by this number of seconds."""
        started = self.started_seconds_ago
        aged = (replace(one, age_seconds=one.age_seconds + seconds) for one in self.samples)
        return replace(
            self,
            started_seconds_ago=None if started is None else started + seconds,
            samples=tuple(one for one in aged if one.age_seconds <= HOUR_SECONDS),
        )


def last_hour_of(page: Mapping[str, object]) -> LastHour:
    """Read the page; what is no sample is left out, and so is what is older than an hour."""
    listed = page.get("samples")
    found = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    samples = (entry(HourSample, one) for one in found[-MOST_SAMPLES:])
    known = [one for one in samples if one is not None and 0 <= one.age_seconds <= HOUR_SECONDS]
    return LastHour(
        started_seconds_ago=entry(float, page.get("started_seconds_ago")),
        every_seconds=max(1.0, entry(float, page.get("every_seconds")) or 30.0),
        samples=tuple(sorted(known, key=lambda one: -one.age_seconds)),
    )

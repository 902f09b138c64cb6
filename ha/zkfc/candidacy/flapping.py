"""Slows repeated failovers down: a slow or unhealthy active keeps its lock for a time.

See docs/reference/zkfc.md#repeated-failovers.
"""

from ha.health.core import Trouble
from ha.record import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class FlapSettings:
    """The keys ``nnha.zkfc.flap.*``: what counts as flapping, and how long it keeps an active."""

    failovers: int = 3
    """This number of takeovers within the window is flapping; 0 turns it off."""
    window_seconds: float = 600.0
    delay_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.failovers < 0 or self.window_seconds <= 0 or self.delay_seconds < 0:
            raise ValueError("flap limits must not be negative, and the window above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flapping:
    """The unplanned takeovers of our own controller, and when our NameNode became unhealthy.

    Each controller counts its own takeovers: of two controllers each sees half of the failovers.
    """

    settings: FlapSettings = field(default_factory=FlapSettings)
    takeovers: tuple[float, ...] = ()
    trouble_since: float | None = None


def record_takeover(flapping: Flapping, now: float) -> Flapping:
    """Count a takeover that was not requested."""
    return replace(flapping, takeovers=(*_recent(flapping, now), now), trouble_since=None)


def record_health(flapping: Flapping, now: float, *, well: bool) -> Flapping:
    """Record when our NameNode became unhealthy, or that it is healthy."""
    if well:
        return replace(flapping, trouble_since=None)
    return flapping if flapping.trouble_since is not None else replace(flapping, trouble_since=now)


def keep_seconds(flapping: Flapping, trouble: Trouble, now: float) -> float:
    """Return how many seconds more an unhealthy active keeps its lock; 0 if its process ended."""
    if trouble is Trouble.GONE or not is_flapping(flapping, now):
        return 0.0
    since = now if flapping.trouble_since is None else flapping.trouble_since
    return max(0.0, since + flapping.settings.delay_seconds - now)


def is_flapping(flapping: Flapping, now: float) -> bool:
    """Return whether the takeovers in the window have reached the limit."""
    limit = flapping.settings.failovers
    return limit > 0 and len(_recent(flapping, now)) >= limit


def _recent(flapping: Flapping, now: float) -> tuple[float, ...]:
    since = now - flapping.settings.window_seconds
    return tuple(moment for moment in flapping.takeovers if moment > since)

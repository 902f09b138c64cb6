"""Repeated failovers: a slow or unhealthy active is kept for a while, a dead one never.

See docs/reference/zkfc.md#repeated-failovers.
"""

from ha.health.core import Trouble
from ha.record import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class FlapSettings:
    """When failovers are too many, and how long a flapping active is kept (nnha.zkfc.flap.*)."""

    failovers: int = 3
    """0: never."""
    window_seconds: float = 600.0
    delay_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.failovers < 0 or self.window_seconds <= 0 or self.delay_seconds < 0:
            raise ValueError("flap limits must not be negative, and the window above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flapping:
    """Our own takeovers, planned ones left out, and since when the active is in trouble.

    Each controller counts its own: with two of them each sees half of the failovers.
    """

    settings: FlapSettings = field(default_factory=FlapSettings)
    takeovers: tuple[float, ...] = ()
    trouble_since: float | None = None


def took_over(flapping: Flapping, now: float) -> Flapping:
    """Note that our NameNode has become active without a request for it."""
    return replace(flapping, takeovers=(*_recent(flapping, now), now), trouble_since=None)


def note_health(flapping: Flapping, now: float, *, well: bool) -> Flapping:
    """Note that the NameNode's health was judged anew."""
    if well:
        return replace(flapping, trouble_since=None)
    return flapping if flapping.trouble_since is not None else replace(flapping, trouble_since=now)


def keep_for(flapping: Flapping, trouble: Trouble, now: float) -> float:
    """Return for how many seconds the active in trouble is kept all the same; 0: not at all."""
    if trouble is Trouble.GONE or not too_many(flapping, now):
        return 0.0
    since = now if flapping.trouble_since is None else flapping.trouble_since
    return max(0.0, since + flapping.settings.delay_seconds - now)


def too_many(flapping: Flapping, now: float) -> bool:
    """Return whether there were as many takeovers in the window as the limit says."""
    limit = flapping.settings.failovers
    return limit > 0 and len(_recent(flapping, now)) >= limit


def _recent(flapping: Flapping, now: float) -> tuple[float, ...]:
    since = now - flapping.settings.window_seconds
    return tuple(moment for moment in flapping.takeovers if moment > since)

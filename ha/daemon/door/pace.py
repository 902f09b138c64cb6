"""How often each origin may have something done that is dear.  Pure."""

from typing import Final

from ha.record import dataclass, field

MOST_ORIGINS: Final = 1024
"""Of which is known when they came last; the oldest is forgotten first."""


@dataclass(slots=True)
class Pace:
    """A number a second for each origin, and as many at once as come in ``burst_seconds``."""

    a_second: float
    burst_seconds: float
    _next: dict[str, float] = field(default_factory=dict)

    def wait(self, origin: str, now: float) -> float:
        """Return the seconds until it may be asked for again; 0 where it may be done now."""
        due = max(self._next.pop(origin, 0.0), now - self.burst_seconds)
        if len(self._next) >= MOST_ORIGINS:
            del self._next[next(iter(self._next))]
        self._next[origin] = due if due > now else due + 1 / self.a_second
        return max(0.0, due - now)

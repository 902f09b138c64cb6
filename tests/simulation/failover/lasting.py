"""How long something has lasted that may be for a while, and must not stay."""

from dataclasses import dataclass


@dataclass(slots=True)
class Lasting:
    """One such thing; a gap begins its time anew."""

    since: float | None = None

    def seconds(self, now: float, *, holds: bool) -> float | None:
        """Return how long it has held at every look; None where it does not, or did not before."""
        if not holds:
            self.since = None
        elif self.since is not None:
            return now - self.since
        else:
            self.since = now
        return None

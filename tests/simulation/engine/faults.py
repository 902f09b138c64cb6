"""Draws the faults of a seed, each from a stream of its own.

Every fault has a name that does not depend on the others, so that a run can be repeated with
only some of them: that is how a failing seed is shrunk.
"""

from collections.abc import Mapping, Set
from random import Random
from zlib import crc32


class Faults:
    """Draws each fault from a stream of its kind and place.  ``over`` ends them all."""

    def __init__(self, seed: int, rates: Mapping[str, float], only: Set[str] | None) -> None:
        self.over = False
        self.lasts_until = 0.0
        """When all is over that the faults so far have begun: late messages, slow transitions."""
        self.fired: list[str] = []
        self._seed = seed
        self._rates = rates
        self._only = only
        self._streams: dict[tuple[str, str], tuple[Random, list[int]]] = {}

    def random(self, *names: object) -> Random:
        return Random(self._seed << 32 | crc32("/".join(map(str, names)).encode()))

    def allowed(self, name: str) -> bool:
        """Return whether a planned fault may happen; if so note it."""
        if self.over or (self._only is not None and name not in self._only):
            return False
        self.fired.append(name)
        return True

    def lasts(self, until: float) -> None:
        """Note that what a fault has begun happens then, even if no other strikes any more."""
        self.lasts_until = max(self.lasts_until, until)

    def strikes(self, kind: str, place: str) -> str | None:
        """Return the name of the fault that happens here and now, or None."""
        rate = self._rates.get(kind, 0.0)
        if rate == 0.0 or self.over:
            return None
        stream = self._streams.get((kind, place))
        if stream is None:
            stream = self._streams[(kind, place)] = (self.random(kind, place), [0])
        rng, count = stream
        count[0] += 1
        if rng.random() >= rate:
            return None
        name = f"{kind}@{place}#{count[0]}"
        return name if self.allowed(name) else None

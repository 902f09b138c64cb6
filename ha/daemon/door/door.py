"""The places of one listener, with what is counted and logged of them."""

import time
from collections.abc import Callable, Iterator
from typing import Final, Generic

import structlog
from prometheus_client import Counter, Gauge

from ha.daemon.door.origin import Origin, Share
from ha.daemon.door.places import Crowd, K, Places, Seat, Standing
from ha.record import dataclass

log = structlog.get_logger()

PLACES: Final = Gauge("nnha_door_places", "Connections that have a place at a door", ["door"])
GAVE_WAY: Final = Counter(
    "nnha_door_gave_way", "Connections closed for a newcomer, by the limit that was met",
    ["door", "limit"],
)  # fmt: skip
REFUSED: Final = Counter(
    "nnha_door_refused", "Newcomers that were closed, by the limit that was met", ["door", "limit"]
)
TOLD_EVERY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorLimits:
    """How many connections a door has."""

    most: int
    unproven: int
    """Of them, that have proved nothing yet."""
    unproven_of_origin: int
    of_origin: int
    """With a proof."""

    def seat(self, origin: Origin, standing: Standing) -> Seat:
        """Return how a connection from there counts."""
        everybody = Crowd("places", "", self.most)
        if standing is Standing.KEPT or origin.trusted:
            return Seat(Standing.KEPT, origin.name, (everybody,))
        limit, most = "of_origin", self.of_origin
        crowds: tuple[Crowd, ...] = (everybody,)
        if standing is Standing.UNPROVEN:
            limit, most = "unproven_of_origin", self.unproven_of_origin
            crowds = Crowd("unproven", "", self.unproven), everybody
        if origin.share is not Share.UNLIMITED:
            crowds = Crowd(limit, origin.name, most), *crowds
        return Seat(standing, origin.name, crowds)


class Door(Generic[K]):
    """Places whose callers are closed when they give way.

    ``close`` gets a connection that has left its place, and the limit for which.  Not for several
    threads at once.
    """

    def __init__(
        self,
        name: str,
        close: Callable[[K, str], object],
        since: Callable[[K], float | None] = lambda _: 0.0,
    ) -> None:
        self._places: Places[K] = Places(since)
        self._name, self._close = name, close
        self._gauge = PLACES.labels(name)
        self._told_until: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[K]:
        return iter(self._places)

    def take(self, key: K, seat: Seat) -> bool:
        """Give a connection a place, its first one or another; False where it must be closed."""
        before = len(self._places)
        verdict = self._places.take(key, seat)
        self._gauge.inc(len(self._places) - before)
        for other, limit in verdict.gives_way:
            GAVE_WAY.labels(self._name, limit).inc()
            self._tell(limit, seat)
            self._close(other, limit)
        if verdict.refused:
            REFUSED.labels(self._name, verdict.refused).inc()
            self._tell(verdict.refused, seat)
        return not verdict.refused

    def leave(self, key: K) -> None:
        """Free the place of a connection that is closed; harmless where it has none."""
        if key in self._places:
            self._places.leave(key)
            self._gauge.dec()

    def _tell(self, limit: str, seat: Seat) -> None:
        now = time.monotonic()
        if now >= self._told_until.get(limit, 0.0):
            self._told_until[limit] = now + TOLD_EVERY_SECONDS
            log.warning("door.full", door=self._name, limit=limit, newcomer=seat.origin)

"""Decides whether a duty of the controller has stalled, as seen by the guard's thread.

Each duty (the event loop, the probes, the election) gives a sign each time that it was done, with
the time within which the next sign will come.  It has stalled if it is silent for longer than that
time and the guard's patience together.

Only time in which the guard itself ran counts.  The bad schedule: the whole process is stopped for
a minute (SIGSTOP, a suspended machine).  When it goes on, the guard's thread runs first, and by the
clock all duties have been silent for a minute, though the event loop is healthy.

See docs/reference/zkfc.md#standing-still.
"""

from collections.abc import Iterable
from typing import Final

from ha.record import dataclass

MOST_INTERVALS: Final = 2
"""Of the time between two looks, at most this number of intervals counts."""


@dataclass(frozen=True, slots=True)
class Sign:
    """The newest sign of one duty."""

    duty: str
    count: int
    within_seconds: float
    """The next sign comes within this time; infinite after the duty's regular end."""


@dataclass(frozen=True, slots=True)
class Silence:
    """How long one duty has given no sign, in time that counts."""

    duty: str
    count: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Watch:
    """The guard's state between two looks."""

    looked_at: float | None = None
    silences: tuple[Silence, ...] = ()


@dataclass(frozen=True, slots=True)
class Stalled:
    """A duty that has stalled."""

    duty: str
    silent_seconds: float
    allowed_seconds: float


def look(
    watch: Watch,
    signs: Iterable[Sign],
    *,
    now: float,
    interval_seconds: float,
    patience_seconds: float,
) -> tuple[Watch, Stalled | None]:
    """Return the guard's state after this look, and the first duty that has stalled, if any."""
    passed = 0.0
    if watch.looked_at is not None:
        passed = min(now - watch.looked_at, MOST_INTERVALS * interval_seconds)
    before = {one.duty: one for one in watch.silences}
    stalled = None
    silences = []
    for sign in signs:
        known = before.get(sign.duty)
        same = known is not None and known.count == sign.count
        seconds = known.seconds + passed if known is not None and same else 0.0
        silences.append(Silence(sign.duty, sign.count, seconds))
        allowed = sign.within_seconds + patience_seconds
        if stalled is None and seconds > allowed:
            stalled = Stalled(sign.duty, seconds, allowed)
    return Watch(now, tuple(silences)), stalled

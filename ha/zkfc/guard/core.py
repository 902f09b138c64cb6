"""When a controller that is seen from outside of its event loop no longer does its duties.

Each duty (the event loop, the probes, the election) gives a sign whenever it has been done, and
says within which time the next one comes.  A duty that is silent for longer than that, and for the
guard's patience on top, is not done any more.

Only time in which the guard itself has run counts.  The bad schedule: the whole process is stopped
for a minute (SIGSTOP, a suspended machine) and goes on; the guard's thread runs first, and by the
clock no duty has been done for a minute.  Nothing is wrong; the event loop must get its turn.

See docs/reference/zkfc.md#standing-still.
"""

from collections.abc import Iterable
from typing import Final

from ha.record import dataclass

MOST_INTERVALS: Final = 2
"""The guard looks once in each interval; more than this number between two looks do not count."""


@dataclass(frozen=True, slots=True)
class Sign:
    """The newest sign that one duty has given."""

    duty: str
    count: int
    within_seconds: float
    """The next sign comes within this time; infinite for a duty that has ended in order."""


@dataclass(frozen=True, slots=True)
class Silence:
    """For how long one duty has given no sign, in time that counts."""

    duty: str
    count: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What the guard remembers between two looks."""

    looked_at: float | None = None
    silences: tuple[Silence, ...] = ()


@dataclass(frozen=True, slots=True)
class Stalled:
    """A duty that is not done any more."""

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
    """Return what the guard remembers after this look, and a duty that is not done any more."""
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

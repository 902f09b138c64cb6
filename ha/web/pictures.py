"""What is drawn: phases of failovers on one scale, a NameNode's health in the last hour.  Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ha.cluster.daemon_fields import HealthChange
from ha.console.durations import span
from ha.notices.model import HistoryEntry, PhaseDuration
from ha.record import dataclass

WIDTH: Final = 1000
"""Of a drawing, in its own units."""
LEAST_WIDTH: Final = 4
"""A phase of no length is seen all the same."""
KNOWN_PHASES: Final = (
    "lock", "fenced", "promoting", "recovering", "recovered", "caught_up", "active", "failed",
)  # fmt: skip
HATCHES: Final = {
    "fenced": "rising", "promoting": "falling", "recovering": "level", "recovered": "crossed",
    "caught_up": "upright", "active": "dashed", "failed": "grid", "other": "zigzag",
}  # fmt: skip
"""Patterns that distinguish phases without colour: one for each but the lock, which is plain."""
HEIGHT: Final = 20
HEIGHTS: Final = {"healthy": 8, "initializing": 14}
"""What is worse is higher, for the same reason; what is not here takes the whole height."""
HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a drawing: where it begins, how long it is, its class, its words, its look."""

    x: int
    width: int
    kind: str
    words: str
    hatch: str = ""
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class Drawing:
    """Bars next to each other, and the same in words."""

    bars: tuple[Bar, ...]
    words: str


def longest(entries: Sequence[HistoryEntry]) -> float:
    """Return the seconds that a whole line stands for; 0 where there is nothing to draw."""
    return max((one.record.seconds for one in entries if one.record is not None), default=0.0)


def phases(found: Sequence[PhaseDuration], whole_seconds: float) -> Drawing:
    """Draw the phases of one failover; a whole line lasts ``whole_seconds``."""
    bars: list[Bar] = []
    x = 0
    for one in found:
        share = one.seconds / whole_seconds if whole_seconds > 0 else 0.0
        width = max(LEAST_WIDTH, round(WIDTH * share))
        kind = one.name if one.name in KNOWN_PHASES else "other"
        bars.append(Bar(x, width, kind, _phase_words(one), HATCHES.get(kind, "")))
        x += width
    words = ", ".join(_phase_words(one) for one in found) or "no phases are recorded"
    return Drawing(tuple(bars), words)


def named(entries: Sequence[HistoryEntry]) -> tuple[str, ...]:
    """Return the phases that occur, each once, in the order in which they first do."""
    records = [one.record for one in entries if one.record is not None]
    return tuple(dict.fromkeys(phase.name for one in records for phase in one.phases))


def swatch(name: str) -> Drawing:
    """Draw a sample of a phase of this name."""
    return phases((PhaseDuration(name, 1.0),), 1.0)


def last_hour(changes: Sequence[HealthChange], now: datetime) -> Drawing:
    """Draw the judgements of the last hour, given newest first; before the first is nothing."""
    begin = now - HOUR
    bars: list[Bar] = []
    ends = now
    for change in changes:
        at = _moment(change.at)
        if at is None or ends <= begin:
            continue
        since = min(max(at, begin), ends)
        kind = _health_kind(change.health)
        x, end = (round(WIDTH * ((moment - begin) / HOUR)) for moment in (since, ends))
        x = min(x, WIDTH - LEAST_WIDTH)
        width = max(LEAST_WIDTH, end - x)
        bars.append(Bar(x, width, kind, _describe(change, at), height=HEIGHTS.get(kind, HEIGHT)))
        ends = since
    ill = [bar.words for bar in bars if bar.kind != "healthy"]
    if not bars:
        return Drawing((), "its health in the last hour is not known")
    return Drawing(tuple(bars[::-1]), "; ".join(ill) or "healthy in the last hour")


def _phase_words(one: PhaseDuration) -> str:
    return f"{one.name.replace('_', ' ')} {span(one.seconds)}"


def _health_kind(health: str) -> str:
    return health if health in ("healthy", "initializing") else "ill"


def _describe(change: HealthChange, at: datetime) -> str:
    reason = f" ({change.reason})" if change.reason else ""
    return f"{change.health.replace('_', ' ')} since {at:%H:%M:%S} UTC{reason}"


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found

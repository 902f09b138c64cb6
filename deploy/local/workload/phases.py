"""Reads the daemons' logs for the phases of a failover, and times them from the fault on."""

import datetime
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ha.record import dataclass

EVENT = "failover.phase"

PHASES = ("detected", "lock", "fenced", "promoting", "recovered", "caught_up", "active")
"""Of a fault, in the order in which they are shown."""

GRACEFUL_PHASES = (
    "standby", "released", "lock", "fenced", "promoting", "recovered", "caught_up", "active",
)  # fmt: skip
"""Of a request: the old active steps down first, and then none is left to fence."""

_FROM_OLD_NAMENODE = ("standby",)
_FROM_OLD_ZKFC = ("detected", "released")
_FROM_NEW_ZKFC = ("lock", "fenced", "promoting")


@dataclass(frozen=True, slots=True)
class PhaseEvent:
    """One daemon's word on a failover; ``at`` is wall-clock seconds, ``source`` the log's name."""

    at: float
    source: str
    phase: str


def parse_log(source: str, lines: Iterable[str]) -> list[PhaseEvent]:
    """Return the phases in one log; skip lines that are no JSON object of that event."""
    found = []
    for line in lines:
        if EVENT not in line:
            continue
        try:
            entry = json.loads(line)
            at = datetime.datetime.fromisoformat(entry["timestamp"]).timestamp()
        except (ValueError, TypeError, KeyError):  # torn by a kill, or a message that quotes it
            continue
        if entry.get("event") == EVENT:
            found.append(PhaseEvent(at=at, source=source, phase=str(entry.get("phase"))))
    return found


def read_logs(logs: Mapping[str, Path]) -> list[PhaseEvent]:
    """Return the phases in these logs, in the order in which they happened."""
    found: list[PhaseEvent] = []
    for source, path in logs.items():
        try:
            with path.open(errors="replace") as lines:
                found += parse_log(source, lines)
        except FileNotFoundError:
            continue
    return sorted(found, key=lambda event: event.at)


def read_end(source: str, log: Path, begin: int) -> list[PhaseEvent]:
    """Return the phases in a log from this byte on."""
    with log.open("rb") as file:
        file.seek(begin)
        return parse_log(source, file.read().decode(errors="replace").splitlines())


def time_phases(
    events: Iterable[PhaseEvent], *, old: str, new: str, since: float, wanted: tuple[str, ...]
) -> dict[str, float | None]:
    """Return the seconds from ``since`` to each wanted phase's first report; None without one.

    ``standby`` is reported by the old active, ``detected`` and ``released`` by the ZKFC next to it,
    ``lock``, ``fenced`` and ``promoting`` by the one next to the new active, the rest by the new
    active itself.
    """
    first: dict[tuple[str, str], float] = {}
    for event in events:
        if event.at >= since:
            first.setdefault((event.source, event.phase), event.at)
    times: dict[str, float | None] = {}
    for phase in wanted:
        source = new
        if phase in _FROM_OLD_NAMENODE:
            source = old
        elif phase in _FROM_OLD_ZKFC:
            source = f"zkfc-{old}"
        elif phase in _FROM_NEW_ZKFC:
            source = f"zkfc-{new}"
        at = first.get((source, phase))
        times[phase] = None if at is None else round(at - since, 6)
    return times

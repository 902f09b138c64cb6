"""What repeated failovers of one kind took: figures against bars, and the phases behind them."""

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from deploy.local.workload.trial import Failover
from tests.campaigns.bench.report import WIDTH, Row

HADOOP = "Hadoop"
"""Its kinds of switches are named so, and then as ours."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Seconds that the issue allows; None where it sets no bar."""

    median: float | None
    worst: float | None = None
    client: float | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """One change of the active: seconds from its cause on."""

    active: float
    client: float | None
    """The longest call; None where no client called, or a call's length says nothing."""
    phases: Mapping[str, float | None]


def switch_of(failover: Failover, *, client: bool = True) -> Switch:
    longest = failover.client_longest_call_seconds if client else None
    return Switch(failover.failover_seconds, longest, failover.phases)


@dataclass(slots=True)
class Record:
    """All switches of a run by their kind, Hadoop's too, and what came of the client's writes."""

    switches: dict[str, list[Switch]] = field(default_factory=dict)
    lost_writes: int = 0
    hadoop_zkfc_megabytes: float = 0.0
    acknowledged: int = 0
    client_errors: list[str] = field(default_factory=list)

    def medians(self) -> dict[str, dict[str, object]]:
        return {
            kind: {phase: {"median": middle, "max": worst} for phase, middle, worst in phases}
            for kind, phases in ((kind, phases_of(done)) for kind, done in self.switches.items())
        }

    def times_faster(self, name: str, kind: str) -> float | None:
        """Return how many of ours Hadoop's median takes; None where Hadoop was not measured."""
        theirs = self.switches.get(f"{HADOOP}, {kind}")
        if not theirs:
            return None
        return _middle(theirs) / _middle(self.switches[name])

    def peer(self, kind: str, ours: float, *, client: bool = False) -> str:
        """Return Hadoop's median of the same run for this kind, and how many times ours it is."""
        theirs = self.switches.get(f"{HADOOP}, {kind}")
        if not theirs:
            return "-"
        longest = [one.client for one in theirs if one.client is not None]
        values = longest if client else [one.active for one in theirs]
        if not values:
            return "-"
        seen = max(values) if client else statistics.median(values)
        word = "longest" if client else "median"
        return f"Hadoop, same run: {word} {seen:.3f} s ({seen / ours:.0f} x)"


def _middle(done: Sequence[Switch]) -> float:
    return statistics.median(one.active for one in done)


def phases_of(done: Sequence[Switch]) -> list[tuple[str, float, float]]:
    """Return each phase that was reported, in order: its name, median and maximum in seconds."""
    told: dict[str, list[float]] = {}
    for switch in done:
        for phase, at in switch.phases.items():
            told.setdefault(phase, [])
            if at is not None:
                told[phase].append(at)
    return [
        (phase, round(statistics.median(seen), 4), round(max(seen), 4))
        for phase, seen in told.items()
        if seen
    ]


def rows_of(record: Record, name: str, kind: str, bars: Bars) -> list[Row]:
    """Return median and worst switch, and a client's longest call, each against its bar."""
    done = record.switches[name]
    took = [one.active for one in done]
    median, worst = statistics.median(took), max(took)
    compared = not name.startswith(HADOOP)
    peer = record.peer(kind, median) if compared else "-"
    rows = [
        _row(f"{name}: other active, median of {len(took)}", median, bars.median, peer),
        _row(f"{name}: other active, worst", worst, bars.worst, "-"),
    ]
    calls = [one.client for one in done if one.client is not None]
    if calls:
        longest = max(calls)
        beside = record.peer(kind, longest, client=True) if compared else "-"
        middle = statistics.median(calls)
        rows.append(_row(f"{name}: client's longest call, worst", longest, bars.client, beside))
        rows.append(_row(f"{name}: client's longest call, median", middle, None, "-"))
    return rows


def _row(figure: str, value: float, bar: float | None, peer: str) -> Row:
    if bar is None:
        return Row(figure, value, "s", "-", None, peer)
    return Row(figure, value, "s", f"<= {bar:g}", value <= bar, peer)


def show_phases(record: Record) -> None:
    table = Table(title="phases: ms from the cause on, median (maximum)")
    table.add_column("event")
    table.add_column("phases")
    for name, done in record.switches.items():
        told = (
            f"{phase} {middle * 1000:.0f} ({worst * 1000:.0f})"
            for phase, middle, worst in phases_of(done)
        )
        table.add_row(name, ", ".join(told))
    width = None if sys.stderr.isatty() else WIDTH
    Console(file=sys.stderr, width=width).print(table)

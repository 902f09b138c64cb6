"""The last hour as small charts: gaps are gaps, restarts are marks, unknown is not zero.  Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ha.cluster.last_hour import HOUR_SECONDS, LastHour

WIDTH: Final = 240
HEIGHT: Final = 40
GAP: Final = 2.5
"""Samples that are further apart than this number of intervals are not joined."""
MOST_MARKS: Final = 12


@dataclass(frozen=True, slots=True)
class Figure:
    """What one chart shows: fields of the samples of NameNodes in these roles, and their unit."""

    title: str
    fields: tuple[str, ...]
    names: tuple[str, ...]
    active: bool
    shown: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the line of one NameNode."""

    age_seconds: float
    value: float


@dataclass(frozen=True, slots=True)
class Event:
    """A moment of the hour that explains a gap or a step: ``kind`` is start or active."""

    age_seconds: float
    kind: str
    words: str

    @property
    def x(self) -> float:
        return _x(self.age_seconds)


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: its lines as paths, by the name of what they show, and the same in words."""

    title: str
    lines: tuple[tuple[str, str], ...]
    now: str
    most: str
    known: str
    words: str


def charts(hours: Mapping[str, LastHour]) -> tuple[Chart, ...]:
    """Draw all figures; the same scale of time for all."""
    return tuple(_chart(figure, hours) for figure in FIGURES)


def events(hours: Mapping[str, LastHour]) -> tuple[Event, ...]:
    """Return when NameNodes were started or became active, the newest first."""
    found = [event for name, hour in hours.items() for event in _events(name, hour)]
    return tuple(sorted(found, key=lambda one: one.age_seconds)[:MOST_MARKS])


def _events(name: str, hour: LastHour) -> Iterator[Event]:
    started = hour.started_seconds_ago
    if started is not None and 0 <= started <= HOUR_SECONDS:
        yield Event(started, "start", f"{name} was started {_minutes(started)} ago")
    for before, one in zip(hour.samples, hour.samples[1:], strict=False):
        if one.role == "active" != before.role:
            ago = _minutes(one.age_seconds)
            yield Event(one.age_seconds, "active", f"{name} became active {ago} ago")


def _chart(figure: Figure, hours: Mapping[str, LastHour]) -> Chart:
    by_field = [
        [run for hour in hours.values() for run in _runs(figure, field, hour)]
        for field in figure.fields
    ]
    values = [point.value for runs in by_field for run in runs for point in run]
    top, fresh = max(values, default=0.0), max((_fresh(one) for one in hours.values()), default=0.0)
    now = [
        figure.shown(max(newest)) if (newest := _newest(runs, fresh)) else "not known"
        for runs in by_field
    ]
    known = _known(hours, by_field[0])
    most = figure.shown(top) if values else "not known"
    told = ", ".join(f"{name} {text}".strip() for name, text in zip(figure.names, now, strict=True))
    return Chart(
        title=figure.title,
        lines=tuple(
            (name or figure.title, "".join(_path(run, top) for run in runs))
            for name, runs in zip(figure.names, by_field, strict=True)
        ),
        now=" / ".join(dict.fromkeys(now)),
        most=most,
        known=known,
        words=f"{figure.title} in the last hour: now {told}; most {most}{known and f'; {known}'}",
    )


def _runs(figure: Figure, field: str, hour: LastHour) -> Iterator[list[Point]]:
    """Yield the points that are to be joined: between them the figure was known all the time."""
    run: list[Point] = []
    for one in hour.samples:
        value: float | None = getattr(one, field)
        fits = (one.role == "active") is figure.active and value is not None
        if run and (not fits or run[-1].age_seconds - one.age_seconds > GAP * hour.every_seconds):
            yield run
            run = []
        if fits and value is not None:
            run.append(Point(one.age_seconds, value))
    if run:
        yield run


def _fresh(hour: LastHour) -> float:
    return GAP * hour.every_seconds


def _newest(runs: list[list[Point]], fresh: float) -> list[float]:
    return [run[-1].value for run in runs if run[-1].age_seconds <= fresh]


def _known(hours: Mapping[str, LastHour], runs: list[list[Point]]) -> str:
    """Return of how much of the hour the figure is known; empty where it is of all."""
    every = max((one.every_seconds for one in hours.values()), default=1.0)
    seconds = min(HOUR_SECONDS, sum(len(run) for run in runs) * every)
    return "" if seconds > HOUR_SECONDS - 3 * every else f"known for {_minutes(seconds)} of it"


def _path(run: list[Point], top: float) -> str:
    places = [
        f"{_x(one.age_seconds):g} {round(HEIGHT - HEIGHT * one.value / (top or 1.0), 1):g}"
        for one in run
    ]
    # A line of no length shows nothing: one point is a dot.
    return f"M{places[0]}" + ("".join(f"L{place}" for place in places[1:]) or "h.1")


def _x(age_seconds: float) -> float:
    return round(WIDTH * (1 - min(age_seconds, HOUR_SECONDS) / HOUR_SECONDS), 1)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min"


def _rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 10 or value == 0 else f"{value:.1f}/s"


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:,.1f} s"
    return f"{1000 * value:.0f} ms" if value >= 0.01 or value == 0 else f"{1000 * value:.1f} ms"


def _count(value: float) -> str:
    return f"{value:,.0f}"


FIGURES: Final = (
    Figure("Edits", ("edits_per_second",), ("",), active=True, shown=_rate),
    Figure(
        "Commits",
        ("commit_median_seconds", "commit_p99_seconds"),
        ("median", "99 %"),
        active=True,
        shown=_seconds,
    ),
    Figure("Client calls", ("calls_per_second",), ("",), active=True, shown=_rate),
    Figure("The standby's lag", ("lag_seconds",), ("",), active=False, shown=_seconds),
    Figure("Blocks with too few replicas", ("under_replicated",), ("",), active=True, shown=_count),
)

"""The last hour as small charts: gaps are gaps, restarts are marks, unknown is not zero.  Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ha.cluster.last_hour import HOUR_SECONDS, LastHour
from ha.record import dataclass

WIDTH, HEIGHT = 240, 40
GAP: Final = 2.5
"""Samples that are further apart than this number of intervals are not joined."""
MOST_MARKS: Final = 12
Figure = tuple[str, Sequence[str], str, Callable[[float], str]]
"""Title, fields of samples, the role in which they are looked at, and how a value is written."""
Run = list[tuple[float, float]]
"""Ages and values that are to be joined: between them the figure was known all the time."""


Event = tuple[float, str, str]
"""What explains a gap or a step: its place, its kind (start or active), and words."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: its lines as paths, and the same in words; ``known``: of how much, if not all."""

    title: str
    lines: tuple[str, ...]
    now: str
    most: str
    known: str

    @property
    def words(self) -> str:
        known = f"; {self.known}" if self.known else ""
        return f"{self.title} in the last hour: now {self.now}; most {self.most}{known}"


def charts(hours: Mapping[str, LastHour]) -> tuple[Chart, ...]:
    """Draw all figures; the same scale of time for all."""
    return tuple(_chart(figure, hours) for figure in FIGURES)


def events(hours: Mapping[str, LastHour]) -> tuple[Event, ...]:
    """Return when NameNodes were started or became active, the newest first."""
    found = [event for name, hour in hours.items() for event in _events(name, hour)]
    return tuple(sorted(found, reverse=True)[:MOST_MARKS])


def _events(name: str, hour: LastHour) -> Iterator[Event]:
    started = hour.started_seconds_ago
    if started is not None and 0 <= started <= HOUR_SECONDS:
        yield _x(started), "start", f"{name} was started {_minutes(started)} ago"
    for before, one in zip(hour.samples, hour.samples[1:], strict=False):
        if one.role == "active" != before.role:
            ago = _minutes(one.age_seconds)
            yield _x(one.age_seconds), "active", f"{name} became active {ago} ago"


def _chart(figure: Figure, hours: Mapping[str, LastHour]) -> Chart:
    title, fields, role, shown = figure
    every = max((hour.every_seconds for hour in hours.values()), default=1.0)
    lines = [
        [run for hour in hours.values() for run in _runs(role, field, hour)] for field in fields
    ]
    top = max((value for runs in lines for run in runs for _, value in run), default=None)
    now = []
    for runs in lines:
        newest = [run[-1][1] for run in runs if run[-1][0] <= GAP * every]
        now.append(shown(max(newest)) if newest else "not known")
    seconds = sum(len(run) for run in lines[0]) * every
    partly = 0 < seconds <= HOUR_SECONDS - 3 * every
    return Chart(
        title,
        tuple("".join(_path(run, top or 1.0) for run in runs) for runs in lines),
        now=" / ".join(dict.fromkeys(now)),
        most="not known" if top is None else shown(top),
        known=f"known for {_minutes(seconds)} of it" if partly else "",
    )


def _runs(role: str, field: str, hour: LastHour) -> Iterator[Run]:
    run: Run = []
    for one in hour.samples:
        value: float | None = getattr(one, field)
        late = bool(run) and run[-1][0] - one.age_seconds > GAP * hour.every_seconds
        if run and (late or value is None or one.role != role):
            yield run
            run = []
        if value is not None and one.role == role:
            run.append((one.age_seconds, value))
    if run:
        yield run


def _path(run: Run, top: float) -> str:
    places = [f"{_x(age):g} {round(HEIGHT * (1 - value / top), 1):g}" for age, value in run]
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


_COMMITS: Final = ("commit_median_seconds", "commit_p99_seconds")
FIGURES: Final[Sequence[Figure]] = (
    ("Edits", ("edits_per_second",), "active", _rate),
    ("Commits, median / 99 %", _COMMITS, "active", _seconds),
    ("Client calls", ("calls_per_second",), "active", _rate),
    ("The standby's lag", ("lag_seconds",), "standby", _seconds),
    ("Under-replicated blocks", ("under_replicated",), "active", "{:,.0f}".format),
)

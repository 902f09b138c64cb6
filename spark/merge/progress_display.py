"""Shows how far a merge is: bars on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich import progress as bars
from rich.console import Console

from spark.merge.stages import Progress, Tell

_SECONDS_BETWEEN_LINES: Final = 5.0


@contextmanager
def shown() -> Iterator[Tell]:
    """Yield what to call with each progress, to show it on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines().tell
        return
    columns = (
        bars.TextColumn("{task.description:<16}"),
        bars.BarColumn(),
        bars.TextColumn("{task.fields[count]}"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console) as bar:
        yield _Bars(bar).tell


class _Bars:
    """A bar for each stage; the last one moves."""

    def __init__(self, bar: bars.Progress) -> None:
        self._bar = bar
        self._tasks: dict[str, bars.TaskID] = {}
        self._began: dict[str, float] = {}

    def tell(self, at: Progress) -> None:
        task = self._tasks.get(at.stage)
        if task is None:
            task = self._tasks[at.stage] = self._bar.add_task(at.stage, total=at.total, count="")
            self._began[at.stage] = time.monotonic()
        seconds = time.monotonic() - self._began[at.stage]
        self._bar.update(task, completed=at.done, total=at.total, count=in_words(at, seconds))


class _Lines:
    """A line when a stage is done, and every few seconds before."""

    def __init__(self) -> None:
        self._stage = ""
        self._began = self._said = 0.0

    def tell(self, at: Progress) -> None:
        now = time.monotonic()
        if at.stage != self._stage:
            self._stage, self._began, self._said = at.stage, now, now
        if at.done != at.total and now - self._said < _SECONDS_BETWEEN_LINES:
            return
        self._said = now
        click.echo(f"checkpoint: {at.stage}: {in_words(at, now - self._began)}", err=True)


def in_words(at: Progress, seconds: float) -> str:
    """Return counts, and the rate once there is one: ``40,000 of 100,000 edits, 90,000/s``."""
    words = (
        f"{at.done:,} {at.unit}" if at.total is None else f"{at.done:,} of {at.total:,} {at.unit}"
    )
    if at.done and seconds >= 1:
        words += f", {at.done / seconds:,.0f}/s"
    return words

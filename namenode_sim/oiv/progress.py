"""How far a viewer has come, shown while somebody is looking."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from namenode_sim.oiv.opened import ReportRead


@contextmanager
def shown_progress() -> Iterator[ReportRead | None]:
    """Yield a function that shows the progress; None if standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} records"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def report(section: str, count: int) -> None:
            if section not in tasks:
                tasks[section] = progress.add_task(section, total=None)
            progress.advance(tasks[section], count)

        yield report

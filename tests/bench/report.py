"""What a bench prints: a table for people, one JSON object for machines."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.  ``bar`` is what it is held against, ``holds`` None where there is no bar."""

    figure: str
    value: float
    unit: str
    bar: str
    holds: bool | None
    peer: str


def machine() -> dict[str, object]:
    """The facts without which a figure says nothing."""
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def publish(name: str, rows: Sequence[Row], *, as_json: bool) -> int:
    """Print the rows; returns 1 if a figure misses its bar."""
    table = Table(title=f"bench {name}")
    for heading in ("figure", "value", "unit", "bar", "holds", "peer"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for row in rows:
        holds = {True: "yes", False: "NO", None: "-"}[row.holds]
        table.add_row(row.figure, f"{row.value:,.4g}", row.unit, row.bar, holds, row.peer)
    Console(file=sys.stderr).print(table)
    missed = [row.figure for row in rows if row.holds is False]
    if as_json:
        report = {"bench": name, "machine": machine(), "rows": [asdict(row) for row in rows]}
        sys.stdout.write(json.dumps(report) + "\n")
    return 1 if missed else 0

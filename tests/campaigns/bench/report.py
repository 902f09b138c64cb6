"""What a bench prints: a table for people, one JSON object for machines."""

import json
import os
import platform
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

WIDTH: Final = 150


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; ``bar`` is its limit, and ``holds`` is None without a bar or a figure."""

    figure: str
    value: float | None
    unit: str
    bar: str
    holds: bool | None
    peer: str


def unmeasured(figure: str, unit: str, bar: str, why: str) -> Row:
    return Row(figure, None, unit, bar, None, f"not measured: {why}")


def machine() -> dict[str, object]:
    """Return the facts without which a figure says nothing."""
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "interpreter": interpreter(),
    }


def interpreter() -> str:
    """Return which Python plays our side, and whether it was built as it is fastest (PGO, LTO).

    Debian's is, and takes the flags of its build out of what sysconfig knows.
    """
    given = str(sysconfig.get_config_var("CONFIG_ARGS"))
    lacks = [
        name
        for name, option in (("PGO", "--enable-optimizations"), ("LTO", "--with-lto"))
        if option not in given
    ]
    if not lacks:
        built = "built with PGO and LTO"
    elif sysconfig.get_config_var("PGO_PROF_USE_FLAG"):
        built = f"built without {' and '.join(lacks)}: 10-13 % slower than it could be"
    else:
        built = "how it was built is not recorded"
    return f"{os.path.realpath(sys.executable)}: Python {platform.python_version()}, {built}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def publish(
    name: str, rows: Sequence[Row], *, as_json: bool, more: Mapping[str, object] | None = None
) -> int:
    """Print the rows; return 1 if a figure misses its bar.  ``more`` is for machines only."""
    table = Table(title=f"bench {name}", caption=interpreter())
    for heading in ("figure", "value", "unit", "bar", "holds", "peer"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for row in rows:
        holds = {True: "yes", False: "NO", None: "-"}[row.holds]
        table.add_row(row.figure, _number(row.value), row.unit, row.bar, holds, row.peer)
    # A file or a pipe has no width of its own.
    width = None if sys.stderr.isatty() else WIDTH
    Console(file=sys.stderr, width=width).print(table)
    missed = [row.figure for row in rows if row.holds is False]
    if as_json:
        report: dict[str, object] = {
            "bench": name,
            "machine": machine(),
            "rows": [asdict(row) for row in rows],
        }
        report |= more or {}
        sys.stdout.write(json.dumps(report) + "\n")
    return 1 if missed else 0

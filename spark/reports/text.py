"""A report's sheets as text for a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ha.console.output import plain
from spark.reports.figures import Bars, Column, FigureKind, Grid, Sheet, format_cell

_GAP: Final = 2
_NAME_WIDTH: Final = 24
"""What the first column, which is folded, is left with before others are dropped."""


def show_sheets(console: Console, sheets: Sequence[Sheet]) -> None:
    """Print every sheet: its sentence, and its tables."""
    for sheet in sheets:
        console.print(Text(f"\n{sheet.title}", style="bold underline"))
        console.print(Text(plain(sheet.lead)))
        for figure in sheet.figures:
            match figure:
                case Grid():
                    _show(console, figure)
                case Bars():
                    pass


def _show(console: Console, grid: Grid) -> None:
    console.print(Text(f"\n{grid.title}", style="bold"))
    if not grid.rows:
        console.print(Text("none"))
        return
    cells = [
        [
            plain(format_cell(column.kind, cell))
            for column, cell in zip(grid.columns, row, strict=True)
        ]
        for row in grid.rows
    ]
    kept = _fitting(grid.columns, cells, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for index in kept:
        column = grid.columns[index]
        text = index == 0 or column.kind is FigureKind.TEXT
        table.add_column(
            column.name.strip(),
            justify="left" if text and index == 0 else "right",
            no_wrap=index != 0,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*(Text(row[index]) for index in kept))
    console.print(table)
    if grid.note:
        console.print(Text(grid.note, style="dim"))


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Choose columns that leave room for a readable name; those needed least go first."""
    widths = [
        max(cell_len(columns[index].name), *(cell_len(row[index]) for row in cells)) + _GAP
        for index in range(len(columns))
    ]
    widths[0] = min(widths[0], _NAME_WIDTH + _GAP)
    kept = list(range(len(columns)))
    while sum(widths[index] for index in kept) > width:
        need, index = max((columns[index].need, index) for index in kept)
        if need == 0:
            break
        kept.remove(index)
    return kept

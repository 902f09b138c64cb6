"""What a report shows, apart from how: tables and bars that text, pictures and the page draw."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import TypeVar, assert_never

from ha.record import dataclass
from spark.reports import units


class FigureKind(Enum):
    """How a number, or a word, is written."""

    TEXT = auto()
    SIZE = auto()
    COUNT = auto()
    SIZE_CHANGE = auto()
    COUNT_CHANGE = auto()
    PERCENT = auto()


Cell = str | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """``need``: 0 is always shown, the highest number goes first where the screen is narrow."""

    name: str
    kind: FigureKind
    need: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; a note says what its words mean."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


R = TypeVar("R")
Columns = Sequence[tuple[str, FigureKind, int, Callable[[R], Cell]]]
"""A column's name, kind and need, and its cell in one row."""


def grid(title: str, columns: Columns[R], rows: Iterable[R], note: str = "") -> Grid:
    """Return the table in which each row is shown by these columns."""
    heads = tuple(Column(name, kind, need) for name, kind, need, _ in columns)
    cells = [cell for *_, cell in columns]
    return Grid(title, heads, tuple(tuple(cell(row) for cell in cells) for row in rows), note)


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars: one row a label, in it one bar a series; ``name`` is for files."""

    name: str
    title: str
    kind: FigureKind
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    series: tuple[str, ...] = ("",)
    both_ways: bool = False
    """What is less than 0 goes to the left of the middle, on the line of what is more."""
    scale: float = 0.0
    """What the longest bar stands for, if no value is more."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One section: a sentence that says the most, then its figures."""

    key: str
    title: str
    lead: str
    figures: tuple[Grid | Bars, ...]


def format_cell(kind: FigureKind, cell: Cell, *, brief: bool = False) -> str:
    """Return a cell as people read it; a dash for what there is not."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    match kind:
        case FigureKind.SIZE:
            return units.size(cell)
        case FigureKind.SIZE_CHANGE:
            return f"{'+' if cell > 0 else ''}{units.size(cell)}"
        case FigureKind.COUNT_CHANGE:
            return f"{cell:+,.0f}" if cell else "0"
        case FigureKind.COUNT:
            return units.brief(cell) if brief else units.full(cell)
        case FigureKind.PERCENT:
            return units.percent(cell)
        case FigureKind.TEXT:
            return str(cell)
    assert_never(kind)

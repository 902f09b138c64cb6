"""A table that loses its right-hand columns, the least needed first, where the screen is narrow."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from ha.record import dataclass

R = TypeVar("R")

GAP = 2
NOTE_WIDTH = 24
"""What the last column, which is folded, must have at least."""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """``need``: 0 is never dropped, the highest number first; ``wide``: only on request."""

    name: str
    value_of: Callable[[R], str | Text]
    right: bool = False
    need: int = 0
    wide: bool = False


class Grid(Generic[R]):
    """Rows of cells under columns; the last column holds notes and is folded."""

    def __init__(self, columns: Iterable[Column[R]], rows: Iterable[R], *, wide: bool) -> None:
        self.columns = [column for column in columns if wide or not column.wide]
        self.rows = [[column.value_of(row) for column in self.columns] for row in rows]

    def fitted(self, width: int) -> Table:
        """Return a table for a screen of ``width`` cells."""
        kept = list(range(len(self.columns)))
        while self._width(kept) > width:
            needs = [(self.columns[index].need, index) for index in kept]
            need, index = max(needs)
            if need == 0:
                break
            kept.remove(index)
        last = len(self.columns) - 1
        # Empty it would be squeezed in: one letter of its heading below the other.
        if not self._noted() and self._width(kept) + cell_len(self.columns[last].name) > width:
            kept.remove(last)
        return self._table(kept)

    def _noted(self) -> bool:
        return any(str(row[-1]) for row in self.rows)

    def _width(self, kept: Sequence[int]) -> int:
        last = len(self.columns) - 1
        widths = [self._column_width(index) for index in kept if index != last]
        return sum(widths) + GAP * len(widths) + (NOTE_WIDTH if self._noted() else 0)

    def _column_width(self, index: int) -> int:
        cells = [self.columns[index].name, *(str(row[index]) for row in self.rows)]
        return max(map(cell_len, cells))

    def _table(self, kept: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        last = len(self.columns) - 1
        for index in kept:
            column = self.columns[index]
            justify = "right" if column.right else "left"
            if index == last:
                table.add_column(column.name, overflow="fold")
            else:
                table.add_column(column.name, no_wrap=True, justify=justify)  # type: ignore[arg-type]
        for row in self.rows:
            table.add_row(*(_cell(row[index]) for index in kept))
        return table


def _cell(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)

"""Rows that several sheets show: shares, the first bars of a list, tables they have alike."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final

from spark.reports.figures import Columns, FigureKind, Grid, format_cell, grid
from spark.reports.model import Bucket, Heap, Usage
from spark.reports.units import full, trim

BARS: Final = 15
"""More bars than this are no picture any more."""

Rows = tuple[tuple[str, tuple[float, ...]], ...]
USER: Final = ("user", FigureKind.TEXT, 0, attrgetter("name"))
PATH: Final = ("directory", FigureKind.TEXT, 0, attrgetter("path"))


def share(part: float, whole: float) -> float:
    """Return the percentage; 0 where there is no whole."""
    return 100 * part / whole if whole else 0.0


def average(amount: float, count: int) -> float | None:
    return amount / count if count else None


def others(rows: Sequence[tuple[str, float]], kind: FigureKind) -> str:
    """Return a line on what is not among the bars: a bar for it would dwarf the rest."""
    rest = [amount for _, amount in rows[BARS:]]
    return f"{len(rest)} others: {format_cell(kind, sum(rest), brief=True)}" if rest else ""


def bars(rows: Iterable[tuple[str, float]]) -> Rows:
    """Return the first bars of a list that is no whole."""
    return tuple((name, (amount,)) for name, amount in list(rows)[:BARS])


def range_of(bucket: Bucket, format_border: Callable[[float], str]) -> str:
    """Return a bucket in words."""
    if bucket.below is None:
        return f"{trim(format_border(bucket.at_least))} or more"
    if bucket.below == 1:
        return "empty"
    return f"{trim(format_border(bucket.at_least))} to {trim(format_border(bucket.below))}"


def left_out(count: int, shown: int) -> str:
    """Return a table's note on the rows that it has no room for; empty where it shows all."""
    return f"{full(count - shown)} more are in the JSON." if count > shown else ""


def buckets_grid(title: str, name: str, names: Sequence[str], found: Sequence[Bucket]) -> Grid:
    files = sum(bucket.files for bucket in found)
    held = sum(bucket.bytes for bucket in found)
    columns: Columns[tuple[str, Bucket]] = (
        (name, FigureKind.TEXT, 0, lambda row: row[0]),
        ("files", FigureKind.COUNT, 0, lambda row: row[1].files),
        ("of all files", FigureKind.PERCENT, 1, lambda row: share(row[1].files, files)),
        ("bytes", FigureKind.SIZE, 0, lambda row: row[1].bytes),
        ("of all bytes", FigureKind.PERCENT, 1, lambda row: share(row[1].bytes, held)),
    )
    return grid(title, columns, zip(names, found, strict=True))


def users_grid(title: str, users: Iterable[Usage], word: str) -> Grid:
    files, held = attrgetter(f"{word}_files"), attrgetter(f"{word}_bytes")
    columns: Columns[Usage] = (
        USER,
        (f"{word} files", FigureKind.COUNT, 0, files),
        ("of theirs", FigureKind.PERCENT, 1, lambda user: share(files(user), user.files)),
        ("bytes", FigureKind.SIZE, 0, held),
        ("of their bytes", FigureKind.PERCENT, 2, lambda user: share(held(user), user.bytes)),
    )
    return grid(title, columns, users)


def heaps_grid(title: str, word: str, heaps: Iterable[Heap]) -> Grid:
    columns: Columns[Heap] = (
        PATH,
        (f"{word} files", FigureKind.COUNT, 0, lambda heap: heap.files),
        ("of its files", FigureKind.PERCENT, 1, lambda heap: share(heap.files, heap.of_files)),
        ("bytes", FigureKind.SIZE, 0, lambda heap: heap.bytes),
        ("of its bytes", FigureKind.PERCENT, 2, lambda heap: share(heap.bytes, heap.of_bytes)),
    )
    return grid(title, columns, heaps)

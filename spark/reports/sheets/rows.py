"""Rows that several sheets show: shares, the first bars of a list, tables they have alike."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from spark.reports.figures import Column, FigureKind, Grid, written
from spark.reports.model import Bucket, Heap, Usage
from spark.reports.units import full, rounded

BARS: Final = 15
"""More bars than this are no picture any more."""

Rows = tuple[tuple[str, tuple[float, ...]], ...]
USER: Final = Column("user", FigureKind.TEXT)
PATH: Final = Column("directory", FigureKind.TEXT)


def share(part: float, whole: float) -> float:
    """Percent; of nothing, nothing."""
    return 100 * part / whole if whole else 0.0


def others(rows: Sequence[tuple[str, float]], kind: FigureKind) -> str:
    """Return a line on what is not among the bars: a bar for it would dwarf the rest."""
    rest = [amount for _, amount in rows[BARS:]]
    return f"{len(rest)} others: {written(kind, sum(rest), brief=True)}" if rest else ""


def bars(rows: Iterable[tuple[str, float]]) -> Rows:
    """Return the first bars of a list that is no whole."""
    return tuple((name, (amount,)) for name, amount in list(rows)[:BARS])


def range_of(bucket: Bucket, told: Callable[[float], str]) -> str:
    """Return a bucket in words; the callback writes a border in its unit."""
    if bucket.below is None:
        return f"{rounded(told(bucket.at_least))} or more"
    if bucket.below == 1:
        return "empty"
    return f"{rounded(told(bucket.at_least))} to {rounded(told(bucket.below))}"


def left_out(count: int, shown: int) -> str:
    """Return a table's note on the rows that it has no room for; empty where it shows all."""
    return f"{full(count - shown)} more are in the JSON." if count > shown else ""


def buckets_grid(title: str, name: str, names: Sequence[str], found: Sequence[Bucket]) -> Grid:
    files = sum(bucket.files for bucket in found)
    held = sum(bucket.bytes for bucket in found)
    columns = (
        Column(name, FigureKind.TEXT),
        Column("files", FigureKind.COUNT),
        Column("of all files", FigureKind.PERCENT, 1),
        Column("bytes", FigureKind.SIZE),
        Column("of all bytes", FigureKind.PERCENT, 1),
    )
    rows = tuple(
        (name, one.files, share(one.files, files), one.bytes, share(one.bytes, held))
        for name, one in zip(names, found, strict=True)
    )
    return Grid(title, columns, rows)


def users_grid(title: str, users: Iterable[Usage], word: str) -> Grid:
    columns = (
        USER,
        Column(f"{word} files", FigureKind.COUNT),
        Column("of theirs", FigureKind.PERCENT, 1),
        Column("bytes", FigureKind.SIZE),
        Column("of their bytes", FigureKind.PERCENT, 2),
    )
    small = word == "small"
    found = [
        (one, *((one.small_files, one.small_bytes) if small else (one.cold_files, one.cold_bytes)))
        for one in users
    ]
    rows = tuple(
        (one.name, files, share(files, one.files), held, share(held, one.bytes))
        for one, files, held in found
    )
    return Grid(title, columns, rows)


def heaps_grid(title: str, word: str, heaps: Iterable[Heap]) -> Grid:
    columns = (
        PATH,
        Column(f"{word} files", FigureKind.COUNT),
        Column("of its files", FigureKind.PERCENT, 1),
        Column("bytes", FigureKind.SIZE),
        Column("of its bytes", FigureKind.PERCENT, 2),
    )
    rows = tuple(
        (
            one.path,
            one.files,
            share(one.files, one.of_files),
            one.bytes,
            share(one.bytes, one.of_bytes),
        )
        for one in heaps
    )
    return Grid(title, columns, rows)

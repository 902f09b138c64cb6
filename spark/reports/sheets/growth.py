"""The sheet of what changed between two exports."""

from collections.abc import Iterable, Sequence
from typing import Final

from spark.reports.figures import Bars, Column, FigureKind, Grid, Sheet
from spark.reports.model import Flow, GrowthSection, TreeGrowth
from spark.reports.sheets.rows import left_out
from spark.reports.units import full, size

_BARS: Final = 12
_BOTH_WAYS: Final = 8


def growth_sheet(part: GrowthSection, top: int) -> Sheet:
    """Show the growth by user, and by tree."""
    total = part.total
    lead = (
        f"Since transaction {full(part.since.txid)}{_days(part.days)} the files went from "
        f"{size(total.before_bytes)} to {size(total.after_bytes)}: "
        f"{full(total.created_files)} were created ({size(total.created_bytes)}), "
        f"{full(total.deleted_files)} deleted ({size(total.deleted_bytes)}), "
        f"{full(total.grown_files)} grew by {size(total.grown_bytes)} and "
        f"{full(total.shrunk_files)} shrank by {size(total.shrunk_bytes)}."
    )
    trees = [*part.grown[:_BOTH_WAYS], *reversed(part.shrunk[:_BOTH_WAYS])]
    return Sheet(
        "growth",
        "Growth",
        lead,
        (
            Bars(
                "growth-by-user",
                "What came and went, by user",
                FigureKind.SIZE,
                tuple(
                    (one.name, (float(_came(one)), float(-_went(one))))
                    for one in part.users[:_BARS]
                ),
                ("created and grown", "deleted and shrunk"),
                both_ways=True,
            ),
            Bars(
                "growth-by-tree",
                "Trees that grew and shrank most",
                FigureKind.SIZE,
                tuple((one.path, (float(one.after_bytes - one.before_bytes),)) for one in trees),
                both_ways=True,
            ),
            _users(part.users, top),
            _trees("Trees that grew most", part.grown),
            _trees("Trees that shrank most", part.shrunk),
            _trees("Trees with the most new files", part.more_files),
        ),
    )


def _days(days: float) -> str:
    for unit, count in (("days", days), ("hours", days * 24), ("minutes", days * 1440)):
        if count >= 1:
            return f" ({count:.3g} {unit} before)"
    return ""


def _came(flow: Flow) -> int:
    return flow.created_bytes + flow.grown_bytes


def _went(flow: Flow) -> int:
    return flow.deleted_bytes + flow.shrunk_bytes


def _users(flows: Sequence[Flow], top: int) -> Grid:
    columns = (
        Column("user", FigureKind.TEXT),
        Column("change", FigureKind.SIZE_CHANGE),
        Column("bytes now", FigureKind.SIZE),
        Column("created", FigureKind.SIZE, 2),
        Column("deleted", FigureKind.SIZE, 2),
        Column("grown", FigureKind.SIZE, 4),
        Column("shrunk", FigureKind.SIZE, 4),
        Column("from others", FigureKind.SIZE_CHANGE, 5),
        Column("files", FigureKind.COUNT, 1),
    )
    rows = tuple(
        (
            one.name,
            one.after_bytes - one.before_bytes,
            one.after_bytes,
            one.created_bytes,
            one.deleted_bytes,
            one.grown_bytes,
            one.shrunk_bytes,
            one.received_bytes,
            one.after_files,
        )
        for one in flows[:top]
    )
    note = "From others: what changed its owner, less what went to others."
    return Grid("Users", columns, rows, f"{note} {left_out(len(flows), top)}".rstrip())


def _trees(title: str, trees: Iterable[TreeGrowth]) -> Grid:
    columns = (
        Column("directory", FigureKind.TEXT),
        Column("change", FigureKind.SIZE_CHANGE),
        Column("bytes now", FigureKind.SIZE),
        Column("files", FigureKind.COUNT_CHANGE, 1),
        Column("files now", FigureKind.COUNT, 2),
        Column("", FigureKind.TEXT, 3),
    )
    rows = tuple(
        (
            one.path,
            one.after_bytes - one.before_bytes,
            one.after_bytes,
            one.after_files - one.before_files,
            one.after_files,
            "" if one.fate == "stayed" else one.fate,
        )
        for one in trees
    )
    return Grid(title, columns, rows)

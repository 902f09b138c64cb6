"""The sheet of what changed between two exports."""

from typing import Final

from spark.reports.figures import Bars, Columns, FigureKind, Sheet, grid
from spark.reports.model import Flow, GrowthSection, TreeGrowth
from spark.reports.sheets.rows import PATH, USER, left_out
from spark.reports.units import full, size

_BARS: Final = 12
_BOTH_WAYS: Final = 8

_USERS: Final[Columns[Flow]] = (
    USER,
    ("change", FigureKind.SIZE_CHANGE, 0, lambda one: one.after_bytes - one.before_bytes),
    ("bytes now", FigureKind.SIZE, 0, lambda one: one.after_bytes),
    ("created", FigureKind.SIZE, 2, lambda one: one.created_bytes),
    ("deleted", FigureKind.SIZE, 2, lambda one: one.deleted_bytes),
    ("grown", FigureKind.SIZE, 4, lambda one: one.grown_bytes),
    ("shrunk", FigureKind.SIZE, 4, lambda one: one.shrunk_bytes),
    ("from others", FigureKind.SIZE_CHANGE, 5, lambda one: one.received_bytes),
    ("files", FigureKind.COUNT, 1, lambda one: one.after_files),
)
_TREES: Final[Columns[TreeGrowth]] = (
    PATH,
    ("change", FigureKind.SIZE_CHANGE, 0, lambda one: one.after_bytes - one.before_bytes),
    ("bytes now", FigureKind.SIZE, 0, lambda one: one.after_bytes),
    ("files", FigureKind.COUNT_CHANGE, 1, lambda one: one.after_files - one.before_files),
    ("files now", FigureKind.COUNT, 2, lambda one: one.after_files),
    ("", FigureKind.TEXT, 3, lambda one: "" if one.fate == "stayed" else one.fate),
)


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
    note = "From others: what changed its owner, less what went to others."
    note = f"{note} {left_out(len(part.users), top)}".rstrip()
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
            grid("Users", _USERS, part.users[:top], note),
            grid("Trees that grew most", _TREES, part.grown),
            grid("Trees that shrank most", _TREES, part.shrunk),
            grid("Trees with the most new files", _TREES, part.more_files),
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

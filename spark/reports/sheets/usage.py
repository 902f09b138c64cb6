"""The sheets of usage: by owner and by directory."""

from collections.abc import Sequence
from typing import Final

from spark.reports.figures import Bars, Columns, FigureKind, Grid, Sheet, grid
from spark.reports.model import DirectoriesSection, Directory, Usage, UsageSection
from spark.reports.sheets.rows import PATH, average, bars, left_out, others, share
from spark.reports.units import full, size

_TREES: Final[Columns[Directory]] = (
    PATH,
    ("bytes", FigureKind.SIZE, 0, lambda one: one.subtree_bytes),
    ("files", FigureKind.COUNT, 0, lambda one: one.subtree_files),
    ("directories", FigureKind.COUNT, 2, lambda one: one.subtree_directories),
    ("per file", FigureKind.SIZE, 3, lambda one: average(one.subtree_bytes, one.subtree_files)),
)
_FLAT: Final[Columns[Directory]] = (
    PATH,
    ("bytes", FigureKind.SIZE, 0, lambda one: one.bytes),
    ("files", FigureKind.COUNT, 0, lambda one: one.files),
    ("per file", FigureKind.SIZE, 3, lambda one: average(one.bytes, one.files)),
)


def usage_sheet(part: UsageSection, top: int) -> Sheet:
    """Show the usage by user and by group."""
    total = part.total
    lead = (
        f"{full(total.files)} files hold {size(total.bytes)}, with replicas and parity "
        f"{size(total.disk_bytes)}, in {full(total.blocks)} blocks; {full(total.directories)} "
        f"directories, {full(total.symlinks)} symbolic links. A file has "
        f"{size(total.bytes / max(total.files, 1))} on average; {full(part.under_construction)} "
        "are being written."
    )
    by_bytes = [(user.name, float(user.bytes)) for user in part.users]
    by_files = [(user.name, float(user.files)) for user in part.users]
    by_files.sort(key=lambda user: (-user[1], user[0]))
    return Sheet(
        "usage",
        "Usage by user and group",
        lead,
        (
            Bars(
                "usage-bytes-by-user",
                "Bytes by user",
                FigureKind.SIZE,
                bars(by_bytes),
                note=others(by_bytes, FigureKind.SIZE),
            ),
            Bars(
                "usage-files-by-user",
                "Files by user",
                FigureKind.COUNT,
                bars(by_files),
                note=others(by_files, FigureKind.COUNT),
            ),
            _owners("Users", "user", part.users, total, top),
            _owners("Groups", "group", part.groups, total, top),
        ),
    )


def _owners(title: str, name: str, owners: Sequence[Usage], total: Usage, top: int) -> Grid:
    columns: Columns[Usage] = (
        (name, FigureKind.TEXT, 0, lambda one: one.name),
        ("bytes", FigureKind.SIZE, 0, lambda one: one.bytes),
        ("of all", FigureKind.PERCENT, 3, lambda one: share(one.bytes, total.bytes)),
        ("on disks", FigureKind.SIZE, 4, lambda one: one.disk_bytes),
        ("files", FigureKind.COUNT, 0, lambda one: one.files),
        ("directories", FigureKind.COUNT, 5, lambda one: one.directories),
        ("blocks", FigureKind.COUNT, 6, lambda one: one.blocks),
        ("per file", FigureKind.SIZE, 2, lambda one: average(one.bytes, one.files)),
    )
    return grid(title, columns, owners[:top], left_out(len(owners), top))


def directories_sheet(part: DirectoriesSection) -> Sheet:
    """Show the largest directories, four ways."""
    return Sheet(
        "directories",
        "Usage by directory",
        "Trees count everything below a directory. One of which a single subdirectory holds more "
        "than nine tenths is left out: that one is in the list instead.",
        (
            Bars(
                "directories-tree-bytes",
                "Largest trees by bytes",
                FigureKind.SIZE,
                bars((one.path, one.subtree_bytes) for one in part.by_subtree_bytes),
            ),
            Bars(
                "directories-tree-files",
                "Largest trees by files",
                FigureKind.COUNT,
                bars((one.path, one.subtree_files) for one in part.by_subtree_files),
            ),
            grid("Largest trees by bytes", _TREES, part.by_subtree_bytes),
            grid("Largest trees by files", _TREES, part.by_subtree_files),
            grid("Most bytes directly in a directory", _FLAT, part.by_bytes),
            grid("Most files directly in a directory", _FLAT, part.by_files),
        ),
    )

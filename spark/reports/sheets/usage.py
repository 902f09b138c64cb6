"""The sheets of usage: by owner and by directory."""

from collections.abc import Iterable, Sequence

from spark.reports.figures import Bars, Column, FigureKind, Grid, Sheet
from spark.reports.model import DirectoriesSection, Directory, Usage, UsageSection
from spark.reports.sheets.rows import PATH, USER, bars, left_out, others, share
from spark.reports.units import full, size


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
            _owners("Users", USER, part.users, total, top),
            _owners("Groups", Column("group", FigureKind.TEXT), part.groups, total, top),
        ),
    )


def _owners(title: str, name: Column, owners: Sequence[Usage], total: Usage, top: int) -> Grid:
    columns = (
        name,
        Column("bytes", FigureKind.SIZE),
        Column("of all", FigureKind.PERCENT, 3),
        Column("on disks", FigureKind.SIZE, 4),
        Column("files", FigureKind.COUNT),
        Column("directories", FigureKind.COUNT, 5),
        Column("blocks", FigureKind.COUNT, 6),
        Column("per file", FigureKind.SIZE, 2),
    )
    rows = tuple(
        (
            one.name,
            one.bytes,
            share(one.bytes, total.bytes),
            one.disk_bytes,
            one.files,
            one.directories,
            one.blocks,
            one.bytes / one.files if one.files else None,
        )
        for one in owners[:top]
    )
    return Grid(title, columns, rows, left_out(len(owners), top))


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
            _trees("Largest trees by bytes", part.by_subtree_bytes),
            _trees("Largest trees by files", part.by_subtree_files),
            _flat("Most bytes directly in a directory", part.by_bytes),
            _flat("Most files directly in a directory", part.by_files),
        ),
    )


def _trees(title: str, directories: Iterable[Directory]) -> Grid:
    columns = (
        PATH,
        Column("bytes", FigureKind.SIZE),
        Column("files", FigureKind.COUNT),
        Column("directories", FigureKind.COUNT, 2),
        Column("per file", FigureKind.SIZE, 3),
    )
    rows = tuple(
        (
            one.path,
            one.subtree_bytes,
            one.subtree_files,
            one.subtree_directories,
            one.subtree_bytes / one.subtree_files if one.subtree_files else None,
        )
        for one in directories
    )
    return Grid(title, columns, rows)


def _flat(title: str, directories: Iterable[Directory]) -> Grid:
    columns = (
        PATH,
        Column("bytes", FigureKind.SIZE),
        Column("files", FigureKind.COUNT),
        Column("per file", FigureKind.SIZE, 3),
    )
    rows = tuple(
        (one.path, one.bytes, one.files, one.bytes / one.files if one.files else None)
        for one in directories
    )
    return Grid(title, columns, rows)

"""The sheets of what can be saved and what is nearly full."""

from typing import Final

from spark.reports.figures import Bars, Column, FigureKind, Grid, Sheet
from spark.reports.model import LargestSection, NamespaceReport, QuotaSection, RedundancySection
from spark.reports.sheets.rows import BARS, PATH, bars, range_of, share
from spark.reports.units import brief, full, size

_POLICIES: Final = {1: "RS-6-3", 2: "RS-3-2", 3: "RS-LEGACY-6-3", 4: "XOR-2-1", 5: "RS-10-4"}


def redundancy_sheet(part: RedundancySection, report: NamespaceReport) -> Sheet:
    """Show what replicas cost, and what coding would save."""
    lead = (
        f"{size(part.candidate_bytes)} in {full(part.candidate_files)} files of 64 MiB or more "
        f"were not used for {report.settings.cold_days} days and are replicated: coded as RS-6-3 "
        f"they would take {size(part.saved_bytes)} less on the disks."
    )
    columns = (
        Column("kept as", FigureKind.TEXT),
        Column("files", FigureKind.COUNT),
        Column("bytes", FigureKind.SIZE),
        Column("on disks", FigureKind.SIZE),
    )
    kinds = [(_kept_as(kind.replication, kind.ec_policy_id), kind) for kind in part.kinds]
    trees = Grid(
        "Trees of which nine tenths of the bytes are worth coding",
        (
            PATH,
            Column("files", FigureKind.COUNT),
            Column("bytes", FigureKind.SIZE),
            Column("saved", FigureKind.SIZE),
        ),
        tuple((one.path, one.files, one.bytes, one.saved_bytes) for one in part.trees),
    )
    by_saving = sorted(part.trees, key=lambda heap: (-heap.saved_bytes, heap.path))
    return Sheet(
        "redundancy",
        "Replicas and erasure coding",
        lead,
        (
            Bars(
                "redundancy-kinds",
                "Files' bytes and what they take on disks",
                FigureKind.SIZE,
                tuple(
                    (name, (float(one.bytes), float(one.disk_bytes))) for name, one in kinds[:BARS]
                ),
                ("bytes", "on disks"),
            ),
            Bars(
                "redundancy-saved",
                "Saved by erasure coding cold trees",
                FigureKind.SIZE,
                bars((heap.path, heap.saved_bytes) for heap in by_saving),
            ),
            Grid(
                "By replication and policy",
                columns,
                tuple((name, one.files, one.bytes, one.disk_bytes) for name, one in kinds),
            ),
            trees,
        ),
    )


def _kept_as(replication: int, policy: int) -> str:
    if policy:
        return _POLICIES.get(policy, f"coded, policy {policy}")
    return "1 replica" if replication == 1 else f"{replication} replicas"


def quota_sheet(part: QuotaSection) -> Sheet:
    """Show the quotas, the fullest first."""
    columns = (
        PATH,
        Column("used", FigureKind.PERCENT),
        Column("names", FigureKind.COUNT),
        Column("of", FigureKind.COUNT),
        Column("space", FigureKind.SIZE),
        Column("of ", FigureKind.SIZE),
    )
    rows = tuple(
        (
            one.path,
            one.used_percent,
            one.names_used,
            one.names_quota,
            one.space_used,
            one.space_quota,
        )
        for one in part.fullest
    )
    return Sheet(
        "quota",
        "Headroom of quotas",
        f"{full(part.count)} directories have a quota; space counts replicas and parity.",
        (
            Bars(
                "quota-used",
                "Fullest quotas",
                FigureKind.PERCENT,
                bars((one.path, one.used_percent) for one in part.fullest),
                scale=100.0,
            ),
            Grid("Fullest quotas", columns, rows),
        ),
    )


def largest_sheet(part: LargestSection) -> Sheet:
    """Directories that make a NameNode's calls slow, and that may soon take no more."""
    columns = (
        PATH,
        Column("entries", FigureKind.COUNT),
        Column("of the limit", FigureKind.PERCENT),
        Column("files", FigureKind.COUNT, 2),
        Column("directories", FigureKind.COUNT, 1),
    )
    rows = tuple(
        (
            one.path,
            one.files + one.subdirectories,
            share(one.files + one.subdirectories, part.limit),
            one.files,
            one.subdirectories,
        )
        for one in part.directories
    )
    sizes = tuple((range_of(bucket, brief), bucket.files, bucket.bytes) for bucket in part.sizes)
    columns_of_sizes = (
        Column("entries", FigureKind.TEXT),
        Column("directories", FigureKind.COUNT),
        Column("bytes", FigureKind.SIZE),
    )
    return Sheet(
        "largest",
        "Largest directories",
        f"A directory takes at most {full(part.limit)} entries "
        "(dfs.namenode.fs-limits.max-directory-items, by default); listing and deleting large ones "
        "hold the NameNode's lock for long.",
        (
            Bars(
                "largest-entries",
                "Directories by their entries",
                FigureKind.COUNT,
                bars((one.path, one.files + one.subdirectories) for one in part.directories),
            ),
            Grid("Directories by their entries", columns, rows),
            Grid("How large directories are", columns_of_sizes, sizes),
        ),
    )

"""The sheets of what can be saved and what is nearly full."""

from typing import Final

from spark.reports import model
from spark.reports.figures import Bars, Columns, FigureKind, Sheet, grid
from spark.reports.model import Directory, NamespaceReport
from spark.reports.sheets.rows import BARS, PATH, bars, range_of, share
from spark.reports.units import brief, full, size

_POLICIES: Final = {1: "RS-6-3", 2: "RS-3-2", 3: "RS-LEGACY-6-3", 4: "XOR-2-1", 5: "RS-10-4"}
_KINDS: Final[Columns[tuple[str, model.Redundancy]]] = (
    ("kept as", FigureKind.TEXT, 0, lambda row: row[0]),
    ("files", FigureKind.COUNT, 0, lambda row: row[1].files),
    ("bytes", FigureKind.SIZE, 0, lambda row: row[1].bytes),
    ("on disks", FigureKind.SIZE, 0, lambda row: row[1].disk_bytes),
)
_CODED: Final[Columns[model.Heap]] = (
    PATH,
    ("files", FigureKind.COUNT, 0, lambda heap: heap.files),
    ("bytes", FigureKind.SIZE, 0, lambda heap: heap.bytes),
    ("saved", FigureKind.SIZE, 0, lambda heap: heap.saved_bytes),
)
_QUOTAS: Final[Columns[model.Quota]] = (
    PATH,
    ("used", FigureKind.PERCENT, 0, lambda quota: quota.used_percent),
    ("names", FigureKind.COUNT, 0, lambda quota: quota.names_used),
    ("of", FigureKind.COUNT, 0, lambda quota: quota.names_quota),
    ("space", FigureKind.SIZE, 0, lambda quota: quota.space_used),
    ("of ", FigureKind.SIZE, 0, lambda quota: quota.space_quota),
)
_DIRECTORY_SIZES: Final[Columns[model.Bucket]] = (
    ("entries", FigureKind.TEXT, 0, lambda bucket: range_of(bucket, brief)),
    ("directories", FigureKind.COUNT, 0, lambda bucket: bucket.files),
    ("bytes", FigureKind.SIZE, 0, lambda bucket: bucket.bytes),
)


def redundancy_sheet(part: model.RedundancySection, report: NamespaceReport) -> Sheet:
    """Show what replicas cost, and what coding would save."""
    lead = (
        f"{size(part.candidate_bytes)} in {full(part.candidate_files)} files of 64 MiB or more "
        f"were not used for {report.settings.cold_days} days and are replicated: coded as RS-6-3 "
        f"they would take {size(part.saved_bytes)} less on the disks."
    )
    kinds = [(_kept_as(kind.replication, kind.ec_policy_id), kind) for kind in part.kinds]
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
            grid("By replication and policy", _KINDS, kinds),
            grid("Trees of which nine tenths of the bytes are worth coding", _CODED, part.trees),
        ),
    )


def _kept_as(replication: int, policy: int) -> str:
    if policy:
        return _POLICIES.get(policy, f"coded, policy {policy}")
    return "1 replica" if replication == 1 else f"{replication} replicas"


def quota_sheet(part: model.QuotaSection) -> Sheet:
    """Show the quotas, the fullest first."""
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
            grid("Fullest quotas", _QUOTAS, part.fullest),
        ),
    )


def largest_sheet(part: model.LargestSection) -> Sheet:
    """Directories that make a NameNode's calls slow, and that may soon take no more."""
    limit = part.limit
    columns: Columns[Directory] = (
        PATH,
        ("entries", FigureKind.COUNT, 0, _entries),
        ("of the limit", FigureKind.PERCENT, 0, lambda one: share(_entries(one), limit)),
        ("files", FigureKind.COUNT, 2, lambda one: one.files),
        ("directories", FigureKind.COUNT, 1, lambda one: one.subdirectories),
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
                bars((one.path, _entries(one)) for one in part.directories),
            ),
            grid("Directories by their entries", columns, part.directories),
            grid("How large directories are", _DIRECTORY_SIZES, part.sizes),
        ),
    )


def _entries(one: Directory) -> int:
    return one.files + one.subdirectories

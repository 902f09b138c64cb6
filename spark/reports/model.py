"""The figures of a report: sizes in bytes, ages in days, times in milliseconds since 1970."""

from enum import StrEnum

from ha.record import dataclass

DAY_MS = 86_400_000


class Section(StrEnum):
    """What a report can hold, in the order in which it is shown."""

    USAGE = "usage"
    DIRECTORIES = "directories"
    SMALL_FILES = "small-files"
    AGE = "age"
    REDUNDANCY = "redundancy"
    QUOTA = "quota"
    LARGEST = "largest"
    GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Source:
    """The export that was read: of which image, up to which transaction, and when.

    ``at_ms`` is when it was exported; ``as_of_ms`` when the namespace was like that: the newest
    time that any inode has, but not later than the export (clients can set times).
    """

    folder: str
    image: str
    txid: int
    inodes: int
    at_ms: int
    as_of_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What counts as small and as cold, and how long the lists are."""

    as_of_ms: int
    small_below: int = 1 << 20
    cold_days: int = 365
    top: int = 20

    def __post_init__(self) -> None:
        if self.small_below <= 0 or self.cold_days <= 0 or self.top <= 0:
            raise ValueError("small_below, cold_days and top must be more than 0")


@dataclass(frozen=True, slots=True)
class Usage:
    """What belongs to one user or group; ``disk_bytes`` counts replicas and parity."""

    name: str
    files: int
    directories: int
    symlinks: int
    bytes: int
    disk_bytes: int
    blocks: int
    small_files: int
    small_bytes: int
    cold_files: int
    cold_bytes: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """Files from ``at_least`` up to below ``below`` (bytes or days); None: no end."""

    at_least: int
    below: int | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class UsageSection:
    """Everything there is, by owner; ``total`` also holds what no directory leads to."""

    total: Usage
    under_construction: int
    users: tuple[Usage, ...]
    groups: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class Directory:
    """One directory: what lies directly in it, and in the whole tree below it."""

    id: int
    path: str
    depth: int
    files: int
    subdirectories: int
    bytes: int
    subtree_files: int
    subtree_directories: int
    subtree_bytes: int


@dataclass(frozen=True, slots=True)
class DirectoriesSection:
    """The largest directories, four ways; the root is in none of the subtree lists."""

    by_bytes: tuple[Directory, ...]
    by_files: tuple[Directory, ...]
    by_subtree_bytes: tuple[Directory, ...]
    by_subtree_files: tuple[Directory, ...]


@dataclass(frozen=True, slots=True)
class Heap:
    """Files of one kind (small, cold, worth coding) in one directory or one tree."""

    path: str
    files: int
    bytes: int
    of_files: int
    of_bytes: int
    saved_bytes: int


@dataclass(frozen=True, slots=True)
class SmallFilesSection:
    """Files below ``small_below`` bytes."""

    small_below: int
    files: int
    bytes: int
    sizes: tuple[Bucket, ...]
    users: tuple[Usage, ...]
    directories: tuple[Heap, ...]


@dataclass(frozen=True, slots=True)
class AgeSection:
    """Ages on the day of the export; used: read or written, whichever was later."""

    as_of_ms: int
    cold_days: int
    cold_files: int
    cold_bytes: int
    used: tuple[Bucket, ...]
    modified: tuple[Bucket, ...]
    users: tuple[Usage, ...]
    trees: tuple[Heap, ...]


@dataclass(frozen=True, slots=True)
class Redundancy:
    """Files of one replication, or of one erasure coding policy (then replication is 0)."""

    replication: int
    ec_policy_id: int
    files: int
    bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class RedundancySection:
    """What replicas cost, and what RS-6-3 would save on cold files of full stripes."""

    kinds: tuple[Redundancy, ...]
    candidate_files: int
    candidate_bytes: int
    saved_bytes: int
    trees: tuple[Heap, ...]


@dataclass(frozen=True, slots=True)
class Quota:
    """One directory with a quota; a quota that is not set is None, and so is its share."""

    path: str
    names_quota: int | None
    names_used: int
    space_quota: int | None
    space_used: int
    used_percent: float


@dataclass(frozen=True, slots=True)
class QuotaSection:
    """Directories with quotas, the fullest first."""

    count: int
    fullest: tuple[Quota, ...]


@dataclass(frozen=True, slots=True)
class LargestSection:
    """Directories by their entries, and how many there are of which size."""

    limit: int
    directories: tuple[Directory, ...]
    sizes: tuple[Bucket, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """How one user's files changed; ``received_bytes``: from other owners, less what was given."""

    name: str
    before_files: int
    before_bytes: int
    after_files: int
    after_bytes: int
    created_files: int
    created_bytes: int
    deleted_files: int
    deleted_bytes: int
    grown_files: int
    grown_bytes: int
    shrunk_files: int
    shrunk_bytes: int
    received_bytes: int


@dataclass(frozen=True, slots=True)
class TreeGrowth:
    """How one tree changed; fate: ``stayed``, ``created`` or ``deleted``."""

    path: str
    fate: str
    before_files: int
    before_bytes: int
    after_files: int
    after_bytes: int


@dataclass(frozen=True, slots=True)
class GrowthSection:
    """What changed between two exports of one namespace, file by file (inode ids)."""

    since: Source
    days: float
    total: Flow
    users: tuple[Flow, ...]
    grown: tuple[TreeGrowth, ...]
    shrunk: tuple[TreeGrowth, ...]
    more_files: tuple[TreeGrowth, ...]


@dataclass(frozen=True, slots=True)
class NamespaceReport:
    """One report; a section that was not asked for is None."""

    source: Source
    settings: Settings
    usage: UsageSection | None = None
    directories: DirectoriesSection | None = None
    small_files: SmallFilesSection | None = None
    age: AgeSection | None = None
    redundancy: RedundancySection | None = None
    quota: QuotaSection | None = None
    largest: LargestSection | None = None
    growth: GrowthSection | None = None


class NotAnExport(Exception):
    """The folder is no export of a format that we read: wrong usage, nothing is damaged."""


class ExportDamaged(Exception):
    """The export is torn: a file cannot be read, or rows are missing."""

"""One pass over the inodes: every sum that a report needs, fed batch by batch."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ha.record import dataclass
from spark.reports.batch import DIRECTORY, FILE, NOTHING, SYMLINK, Inodes
from spark.reports.model import DAY_MS, Bucket, Redundancy, Settings, Usage
from spark.reports.sums import Ints, Sums, bucket_sums

MIB: Final = 1 << 20
SIZE_EDGES: Final = np.array(
    [
        1, 4 << 10, 64 << 10, MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 1 << 30, 10 << 30,
    ],
    np.int64,
)  # fmt: skip
AGE_EDGES: Final = np.array([1, 7, 30, 90, 180, 365, 730, 1095], np.int64)
CODED_AT_LEAST: Final = 64 * MIB
"""Striping smaller files over nine DataNodes costs more blocks than it saves bytes."""

_UNITS: Final = {1: (6, 3), 2: (3, 2), 3: (6, 3), 4: (2, 1), 5: (10, 4)}
"""Data and parity units of Hadoop's own policies (ErasureCodeConstants); others count as RS-6-3."""
_NOT_CODED: Final = (0, 63)
"""63 is Hadoop's REPLICATION policy."""
_WORD_BITS: Final = 31
_OWNER_SUMS = (
    "files", "directories", "symlinks", "bytes", "disk_bytes", "blocks",
    "small_files", "small_bytes", "cold_files", "cold_bytes",
)  # fmt: skip
_PARENT_SUMS = (
    "disk_bytes", "small_files", "small_bytes", "cold_files", "cold_bytes",
    "coded_files", "coded_bytes", "saved_bytes",
)  # fmt: skip


def disk_bytes(length: Ints, replication: Ints, ec_policy_id: Ints) -> Ints:
    """Return what files take on disks: every replica, or data and parity.

    Cells are not rounded up.
    """
    taken = length * replication
    coded = ~np.isin(ec_policy_id, _NOT_CODED)
    if coded.any():
        for policy in np.unique(ec_policy_id[coded]):
            data, parity = _UNITS.get(int(policy), _UNITS[1])
            ours = ec_policy_id == policy
            taken[ours] = length[ours] + -(-length[ours] * parity // data)
    return taken


@dataclass(frozen=True, slots=True)
class _Marks:
    """What a batch's files are."""

    small: NDArray[np.bool_]
    cold: NDArray[np.bool_]
    coded: NDArray[np.bool_]
    disk: Ints
    saved: Ints


class Tally:
    """Sums by owner, size, age, redundancy and directory, and the quotas that are set."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rows = 0
        self.under_construction = 0
        self._owners = Sums(_OWNER_SUMS)
        self._kinds = Sums(("files", "bytes", "disk_bytes"))
        self._parents = Sums(_PARENT_SUMS)
        self._sizes = _empty(SIZE_EDGES)
        self._used = _empty(AGE_EDGES)
        self._modified = _empty(AGE_EDGES)
        self._quotas: list[tuple[Ints, Ints, Ints]] = []

    def add(self, batch: Inodes) -> None:
        self.rows += len(batch.id)
        files = batch.kind == FILE
        self.under_construction += int(np.count_nonzero(batch.under_construction & files))
        used = np.maximum(batch.mtime_ms, batch.atime_ms)
        marks = self._marks(batch, files, used)
        self._add_owners(batch, files, marks)
        length = batch.length[files]
        _add(self._sizes, bucket_sums(SIZE_EDGES, length, length))
        _add(self._used, bucket_sums(AGE_EDGES, self._days(used[files]), length))
        _add(self._modified, bucket_sums(AGE_EDGES, self._days(batch.mtime_ms[files]), length))
        self._add_kinds(batch, files, marks)
        self._add_parents(batch, files, marks)
        limited = (batch.names_quota != NOTHING) | (batch.space_quota != NOTHING)
        if limited.any():
            ids, names = batch.id[limited], batch.names_quota[limited]
            self._quotas.append((ids, names, batch.space_quota[limited]))

    def _days(self, time_ms: Ints) -> Ints:
        """Whole days of age; what is of the future (a clock that was wrong) is new."""
        days: Ints = (self._settings.as_of_ms - time_ms) // DAY_MS
        return days

    def _marks(self, batch: Inodes, files: NDArray[np.bool_], used: Ints) -> _Marks:
        cold = files & (self._days(used) >= self._settings.cold_days)
        disk = disk_bytes(batch.length, batch.replication, batch.ec_policy_id)
        striped = batch.length + -(-batch.length // 2)
        coded = (
            cold
            & np.isin(batch.ec_policy_id, _NOT_CODED)
            & (batch.length >= CODED_AT_LEAST)
            & (disk > striped)
        )
        small = files & (batch.length < self._settings.small_below)
        return _Marks(small, cold, coded, disk, np.where(coded, disk - striped, 0))

    def _add_owners(self, batch: Inodes, files: NDArray[np.bool_], marks: _Marks) -> None:
        columns: dict[str, NDArray[np.generic]] = {
            "files": files,
            "directories": batch.kind == DIRECTORY,
            "symlinks": batch.kind == SYMLINK,
            "bytes": batch.length,
            "disk_bytes": marks.disk,
            "blocks": batch.blocks,
            "small_files": marks.small,
            "small_bytes": batch.length * marks.small,
            "cold_files": marks.cold,
            "cold_bytes": batch.length * marks.cold,
        }
        self._owners.add((batch.user << _WORD_BITS) | batch.group, columns)

    def _add_kinds(self, batch: Inodes, files: NDArray[np.bool_], marks: _Marks) -> None:
        policy = np.where(np.isin(batch.ec_policy_id, _NOT_CODED), 0, batch.ec_policy_id)
        key = (policy << _WORD_BITS) | np.where(policy == 0, batch.replication, 0)
        columns: dict[str, NDArray[np.generic]] = {
            "files": np.ones(np.count_nonzero(files), np.int64),
            "bytes": batch.length[files],
            "disk_bytes": marks.disk[files],
        }
        self._kinds.add(key[files], columns)

    def _add_parents(self, batch: Inodes, files: NDArray[np.bool_], marks: _Marks) -> None:
        inside = files & (batch.parent_id != NOTHING)
        columns: dict[str, NDArray[np.generic]] = {
            "disk_bytes": marks.disk,
            "small_files": marks.small,
            "small_bytes": batch.length * marks.small,
            "cold_files": marks.cold,
            "cold_bytes": batch.length * marks.cold,
            "coded_files": marks.coded,
            "coded_bytes": batch.length * marks.coded,
            "saved_bytes": marks.saved,
        }
        self._parents.add(
            batch.parent_id[inside], {name: values[inside] for name, values in columns.items()}
        )

    def owners(self, names: list[str]) -> tuple[Usage, tuple[Usage, ...], tuple[Usage, ...]]:
        """Return the total, the users and the groups, those with the most bytes first."""
        keys, sums = self._owners.totals()
        mask = (1 << _WORD_BITS) - 1
        total = Usage("", *(int(sums[name].sum()) for name in _OWNER_SUMS))
        return (
            total,
            _usages(keys >> _WORD_BITS, sums, names),
            _usages(keys & mask, sums, names),
        )

    def kinds(self) -> tuple[Redundancy, ...]:
        """Files by replication and policy, those that take the most first."""
        keys, sums = self._kinds.totals()
        found = [
            Redundancy(
                int(key) & ((1 << _WORD_BITS) - 1),
                int(key) >> _WORD_BITS,
                *(int(sums[name][row]) for name in ("files", "bytes", "disk_bytes")),
            )
            for row, key in enumerate(keys)
        ]
        found.sort(key=lambda kind: (-kind.disk_bytes, kind.replication, kind.ec_policy_id))
        return tuple(found)

    def parents(self) -> tuple[Ints, dict[str, Ints]]:
        """Directory ids in ascending order, and the sums over their direct files."""
        return self._parents.totals()

    def quotas(self) -> tuple[Ints, Ints, Ints]:
        """Directory ids, quotas of names and quotas of space (bytes on disks)."""
        columns = list(zip(*self._quotas, strict=True)) or [(np.empty(0, np.int64),)] * 3
        ids, names, space = (np.concatenate(column) for column in columns)
        return ids, names, space

    def sizes(self) -> tuple[Bucket, ...]:
        """Files by their length in bytes."""
        return buckets(SIZE_EDGES, *self._sizes)

    def used(self) -> tuple[Bucket, ...]:
        """Files by the days since they were last read or written."""
        return buckets(AGE_EDGES, *self._used)

    def modified(self) -> tuple[Bucket, ...]:
        """Files by the days since they were last written."""
        return buckets(AGE_EDGES, *self._modified)


def _empty(edges: Ints) -> tuple[Ints, Ints]:
    return np.zeros(len(edges) + 1, np.int64), np.zeros(len(edges) + 1, np.int64)


def _add(into: tuple[Ints, Ints], more: tuple[Ints, Ints]) -> None:
    for target, amounts in zip(into, more, strict=True):
        target += amounts


def buckets(edges: Ints, counts: Ints, sums: Ints) -> tuple[Bucket, ...]:
    """Return the counts and sums between edges, with their borders."""
    borders = [0, *(int(edge) for edge in edges), None]
    return tuple(
        Bucket(borders[row] or 0, borders[row + 1], int(counts[row]), int(sums[row]))
        for row in range(len(counts))
    )


def _usages(words: Ints, sums: dict[str, Ints], names: list[str]) -> tuple[Usage, ...]:
    kinds, row_of = np.unique(words, return_inverse=True)
    totals = {name: np.zeros(len(kinds), np.int64) for name in _OWNER_SUMS}
    for name, target in totals.items():
        np.add.at(target, row_of, sums[name])
    found = [
        Usage(names[int(word)], *(int(totals[name][row]) for name in _OWNER_SUMS))
        for row, word in enumerate(kinds)
    ]
    found.sort(key=lambda usage: (-usage.bytes, -usage.files, usage.name))
    return tuple(found)

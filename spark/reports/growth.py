"""What changed between two exports of one namespace, file by file: joined by inode id."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ha.record import dataclass
from spark.reports.batch import FILE, NOTHING, Directories, Inodes
from spark.reports.model import Flow, TreeGrowth
from spark.reports.sums import Ints, Sums
from spark.reports.trees import first, rows_of, telling

_AFTER: Final = ("after_files", "after_bytes", "created_files", "created_bytes",
                 "grown_files", "grown_bytes", "shrunk_files", "shrunk_bytes")  # fmt: skip
_BEFORE: Final = ("before_files", "before_bytes", "deleted_files", "deleted_bytes")
_FLOW: Final = (
    "before_files", "before_bytes", "after_files", "after_bytes", "created_files", "created_bytes",
    "deleted_files", "deleted_bytes", "grown_files", "grown_bytes", "shrunk_files", "shrunk_bytes",
)  # fmt: skip


class Growth:
    """Fed with the older files, then all newer batches, then the older batches again.

    It holds 17 bytes an older file, and nothing of the newer ones.
    """

    def __init__(self, older_ids: Ints, older_lengths: Ints) -> None:
        order = np.argsort(older_ids, kind="stable")
        self._ids = older_ids[order]
        self._lengths = older_lengths[order]
        self._still_there = np.zeros(len(order), np.bool_)
        self._after = Sums(_AFTER)
        self._before = Sums(_BEFORE)

    def newer(self, batch: Inodes) -> None:
        """Compare a batch of the newer export with what was there."""
        files = batch.kind == FILE
        ids, length, user = batch.id[files], batch.length[files], batch.user[files]
        place, known = self._find(ids)
        self._still_there[place[known]] = True
        before = np.zeros(len(ids), np.int64)
        before[known] = self._lengths[place[known]]
        more = np.where(known, length - before, 0)
        columns: dict[str, NDArray[np.generic]] = {
            "after_files": np.ones(len(ids), np.int64),
            "after_bytes": length,
            "created_files": ~known,
            "created_bytes": np.where(known, 0, length),
            "grown_files": more > 0,
            "grown_bytes": np.maximum(more, 0),
            "shrunk_files": more < 0,
            "shrunk_bytes": np.maximum(-more, 0),
        }
        self._after.add(user, columns)

    def older(self, batch: Inodes) -> None:
        """Count a batch of the older export, and what of it is gone; after all newer batches."""
        files = batch.kind == FILE
        place, known = self._find(batch.id[files])
        gone = known.copy()
        gone[known] = ~self._still_there[place[known]]
        length = batch.length[files]
        columns: dict[str, NDArray[np.generic]] = {
            "before_files": known,
            "before_bytes": length,
            "deleted_files": gone,
            "deleted_bytes": length * gone,
        }
        self._before.add(batch.user[files], columns)

    def _find(self, ids: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        place = np.searchsorted(self._ids, ids)
        if not len(self._ids):
            return place, np.zeros(len(ids), np.bool_)
        place[place == len(self._ids)] = 0
        return place, self._ids[place] == ids

    def flows(self, names: list[str]) -> tuple[Flow, tuple[Flow, ...]]:
        """Return the total, and every user's; those whose bytes changed most first."""
        sums: dict[int, dict[str, int]] = {}
        for part in (self._after, self._before):
            users, columns = part.totals()
            for row, user in enumerate(users):
                own = sums.setdefault(int(user), dict.fromkeys(_FLOW, 0))
                own.update({name: int(column[row]) for name, column in columns.items()})
        found = [_flow(names[user], own) for user, own in sums.items()]
        found.sort(key=lambda flow: (-abs(flow.after_bytes - flow.before_bytes), flow.name))
        total = {name: sum(own[name] for own in sums.values()) for name in _FLOW}
        return _flow("", total), tuple(found)


def _flow(name: str, own: dict[str, int]) -> Flow:
    explained = own["created_bytes"] - own["deleted_bytes"] + own["grown_bytes"]
    explained -= own["shrunk_bytes"]
    received = own["after_bytes"] - own["before_bytes"] - explained
    return Flow(name=name, received_bytes=received, **own)


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """Every directory of either export, sorted by id, with its subtree before and after."""

    id: Ints
    parent: Ints
    older_row: Ints
    newer_row: Ints
    before_files: Ints
    before_bytes: Ints
    after_files: Ints
    after_bytes: Ints

    def largest(self, amounts: Ints, count: int) -> Ints:
        """Rows that changed most in this direction, without those that one child explains.

        A tree that came or went is one row: what lay in it came or went with it.
        """
        inside = self.parent != NOTHING
        whole = (self.older_row == NOTHING) | (self.newer_row == NOTHING)
        part_of_whole = whole & inside & whole[self.parent]
        shown = (telling(self.parent, amounts) | (whole & inside)) & ~part_of_whole
        return first(np.flatnonzero(shown), amounts, self.id, count)

    def described(self, rows: Ints, paths: dict[int, str]) -> tuple[TreeGrowth, ...]:
        return tuple(
            TreeGrowth(
                paths[int(self.id[row])],
                self._fate(int(row)),
                int(self.before_files[row]),
                int(self.before_bytes[row]),
                int(self.after_files[row]),
                int(self.after_bytes[row]),
            )
            for row in rows
        )

    def _fate(self, row: int) -> str:
        if self.older_row[row] == NOTHING:
            return "created"
        return "deleted" if self.newer_row[row] == NOTHING else "stayed"


def tree_changes(older: Directories, newer: Directories) -> TreeChanges:
    """Match directories by id; a tree that moved is under its newer parent."""
    ids = np.union1d(older.id, newer.id)
    then, now = rows_of(older, ids), rows_of(newer, ids)
    parent_ids = np.where(now == NOTHING, _parent_ids(older, then), _parent_ids(newer, now))
    place = np.searchsorted(ids, parent_ids)
    return TreeChanges(
        ids,
        np.where(parent_ids == NOTHING, NOTHING, place),
        then,
        now,
        _pick(older.subtree_files, then),
        _pick(older.subtree_bytes, then),
        _pick(newer.subtree_files, now),
        _pick(newer.subtree_bytes, now),
    )


def _parent_ids(directories: Directories, rows: Ints) -> Ints:
    parents = _pick(directories.parent, rows, NOTHING)
    return _pick(directories.id, parents, NOTHING)


def _pick(column: Ints, rows: Ints, otherwise: int = 0) -> Ints:
    if not len(column):
        return np.full(len(rows), otherwise, np.int64)
    return np.where(rows == NOTHING, otherwise, column[rows])

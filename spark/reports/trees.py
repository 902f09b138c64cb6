"""Directories as a tree: sums over subtrees, the largest ones, and where a thing is spread."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark.reports.batch import NOTHING, Directories
from spark.reports.model import Directory
from spark.reports.sums import Ints

ONE_CHILD_PERCENT = 90
"""A directory of which one subdirectory holds more than this shows nothing that it does not."""


def rows_of(directories: Directories, ids: Ints) -> Ints:
    """Return the row of each directory id, -1 for an id that is none."""
    if not len(directories.id):
        return np.full(len(ids), NOTHING, np.int64)
    place = np.searchsorted(directories.id, ids)
    place[place == len(directories.id)] = 0
    return np.where(directories.id[place] == ids, place, NOTHING)


def direct(directories: Directories, ids: Ints, amounts: Ints) -> Ints:
    """Return amounts by directory id as a column of the directories; drop what is outside."""
    column = np.zeros(len(directories.id), np.int64)
    rows = rows_of(directories, ids)
    inside = rows != NOTHING
    column[rows[inside]] = amounts[inside]
    return column


def subtree_sums(directories: Directories, amounts: Ints) -> Ints:
    """Return for every directory the sum over it and all below it."""
    sums = amounts.copy()
    for rows in reversed(_levels(directories)):
        below = rows[directories.parent[rows] != NOTHING]
        np.add.at(sums, directories.parent[below], sums[below])
    return sums


def _levels(directories: Directories) -> list[Ints]:
    order = np.argsort(directories.depth, kind="stable")
    borders = np.flatnonzero(np.diff(directories.depth[order])) + 1
    return list(np.split(order, borders)) if len(order) else []


def telling(parent: Ints, amounts: Ints) -> NDArray[np.bool_]:
    """Rows with an amount, without the root and without those of which one child says it all."""
    largest = np.zeros(len(amounts), np.int64)
    below = parent != NOTHING
    np.maximum.at(largest, parent[below], np.abs(amounts[below]))
    one_child = largest * 100 > np.abs(amounts) * ONE_CHILD_PERCENT
    found: NDArray[np.bool_] = below & (amounts != 0) & ~one_child
    return found


def spread(directories: Directories, part: Ints, whole: Ints, percent: int) -> NDArray[np.bool_]:
    """Return the topmost trees of which at least ``percent`` per cent are ``part``.

    Both are sums over subtrees.
    """
    mostly = (part > 0) & (part * 100 >= whole * percent)
    inside = np.zeros(len(part), np.bool_)
    for rows in _levels(directories)[1:]:
        above = directories.parent[rows]
        known = above != NOTHING
        inside[rows] = known & (mostly[above] | inside[above])
    return mostly & ~inside


def first(rows: Ints, amounts: Ints, ids: Ints, count: int) -> Ints:
    """Return the rows with the largest amounts, none of nothing; ties by id."""
    rows = rows[amounts[rows] > 0]
    order = np.lexsort((ids[rows], -amounts[rows]))
    return rows[order[:count]]


def described(directories: Directories, rows: Ints, paths: dict[int, str]) -> tuple[Directory, ...]:
    """Rows as the report's directories."""
    return tuple(
        Directory(
            int(directories.id[row]),
            paths[int(directories.id[row])],
            *(int(column[row]) for column in _columns(directories)),
        )
        for row in rows
    )


def _columns(directories: Directories) -> Sequence[Ints]:
    return (
        directories.depth,
        directories.files,
        directories.subdirectories,
        directories.bytes,
        directories.subtree_files,
        directories.subtree_directories,
        directories.subtree_bytes,
    )

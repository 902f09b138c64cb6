"""The tree of an image as arrays: each inode's directory, and which directories are reachable.

Only inodes below the root are of the current tree; an image with snapshots also holds those that
only snapshots still have, and the directories that these were in.

Pure.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ha.record import dataclass
from spark.tables.cursors import Flags, Ints

NOWHERE: Final = -1
"""The slot of an inode that no directory has."""
_DENSE: Final = 8
"""Ids lie densely if there are at most this many numbers for each inode."""
_MOST_DOUBLINGS: Final = 64
_AT_A_TIME: Final = 1 << 20
_MASK_64: Final = (1 << 64) - 1
_MIXING: Final = (
    (np.uint64(33), np.uint64(0xFF51AFD7ED558CCD)),
    (np.uint64(33), np.uint64(0xC4CEB9FE1A85EC53)),
)
"""MurmurHash3's finalizer."""


class TreeError(Exception):
    """The children of directories are no tree; says which inode."""


@dataclass(frozen=True, slots=True)
class Parents:
    """The directory that each inode lies in.

    Attributes:
        directories: the directories that have children, by id; a slot is a place among them.
        reachable: which of them lie below the root.
        children: ids in order, or None if ``slots`` is by id.
        slots: the slot of each of ``children``; or of each id from ``base`` on.
        base: the id that ``slots`` begins with if it is by id.
        root: the root's id.
    """

    directories: Ints
    reachable: Flags
    children: Ints | None
    slots: NDArray[np.integer[Any]]
    base: int
    root: int

    def slots_of(self, ids: Ints) -> Ints:
        """Return the slot of each inode's directory, or NOWHERE."""
        if not len(self.slots):
            return np.full(len(ids), NOWHERE, np.int64)
        if self.children is None:
            at = ids - self.base
            inside = (at >= 0) & (at < len(self.slots))
            if inside.all():
                return self.slots[at].astype(np.int64)
            return np.where(inside, self.slots[np.where(inside, at, 0)], NOWHERE)
        at = np.minimum(np.searchsorted(self.children, ids), len(self.children) - 1)
        return np.where(self.children[at] == ids, self.slots[at], NOWHERE)

    def fingerprint(self) -> int:
        """Return that of all inodes in directories that lie below the root."""
        total = 0
        for begin in range(0, len(self.slots), _AT_A_TIME):
            slots = self.slots[begin : begin + _AT_A_TIME]
            kept = np.flatnonzero(slots >= 0)
            kept = kept[self.reachable[slots[kept]]] + begin
            total += fingerprint(kept + self.base if self.children is None else self.children[kept])
        return total & _MASK_64

    def current(self, ids: Ints, slots: Ints) -> Flags:
        """Return which inodes are of the current tree; ``slots`` are those of ``ids``."""
        found: Flags = ids == self.root
        if len(self.directories):
            found |= (slots >= 0) & self.reachable[slots]
        return found


def fingerprint(ids: Ints) -> int:
    """Return a number of 64 bits for a set of inodes, the sum of those of its parts.

    Two sets with the same one are the same, but for a chance of one in 2^64: it shows whether
    inodes and edges speak of the same inodes without bringing them together.
    """
    mixed = ids.astype(np.uint64)
    for shift, factor in _MIXING:
        mixed ^= mixed >> shift
        mixed *= factor
    mixed ^= mixed >> np.uint64(33)
    return int(mixed.sum(dtype=np.uint64))


def parents_of(edges: Iterable[tuple[Ints, Ints]], root: int) -> Parents:
    """Bring together (parent, child) arrays, whose parents come in runs.

    Raises:
        TreeError: if an inode is in two directories, or a directory below itself.
    """
    runs: list[tuple[Ints, Ints]] = []
    kids: list[Ints] = []
    for parent, child in edges:
        begins = np.flatnonzero(np.diff(parent, prepend=parent[:1] - 1))
        runs.append((parent[begins], np.diff(begins, append=len(parent))))
        kids.append(child)
    nothing = np.zeros(0, np.int64)
    directories = np.unique(np.concatenate([parent for parent, _ in runs] or [nothing]))
    count = sum(map(len, kids))
    low = min((int(child.min()) for child in kids if len(child)), default=0)
    high = max((int(child.max()) for child in kids if len(child)), default=-1)
    slots = [np.repeat(np.searchsorted(directories, parent), sizes) for parent, sizes in runs]
    everywhere = np.ones(len(directories), np.bool_)
    if high - low < _DENSE * max(count, 1024):
        by_id = np.full(max(high - low + 1, 0), NOWHERE, np.int32)
        for child, slot in zip(kids, slots, strict=True):
            by_id[child - low] = slot
        if int((by_id != NOWHERE).sum()) != count:
            _refuse_twice(kids)
        found = Parents(directories, everywhere, None, by_id, low, root)
    else:
        children = np.concatenate(kids)
        order = np.argsort(children, kind="stable")
        children = children[order]
        if (children[1:] == children[:-1]).any():
            _refuse_twice(kids)
        slot = np.concatenate(slots)[order].astype(np.int32)
        found = Parents(directories, everywhere, children, slot, 0, root)
    _mark_reachable(found)
    return found


def _refuse_twice(kids: list[Ints]) -> None:
    ids, counts = np.unique(np.concatenate(kids), return_counts=True)
    raise TreeError(f"inode {ids[counts > 1][0]} is a child of two directories")


def _mark_reachable(parents: Parents) -> None:
    """Follow all directories up at once, twice as far in each step."""
    count = len(parents.directories)
    up = parents.slots_of(parents.directories).astype(np.int64)
    up[up == NOWHERE] = count
    top = np.flatnonzero(parents.directories == parents.root)
    up[top] = top
    up = np.append(up, count)
    for _ in range(_MOST_DOUBLINGS):
        further = up[up]
        if (further == up).all():
            break
        up = further
    ends = up[:-1]
    parents.reachable[:] = np.isin(ends, top)
    looping = np.flatnonzero(~parents.reachable & (ends != count))
    if len(looping):
        raise TreeError(f"directory {parents.directories[looping[0]]} is below itself")

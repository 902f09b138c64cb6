"""Sets of inode ids that travel as a sorted file and answer for millions of ids at a time.

Pure.
"""

from pathlib import Path
from typing import Final

import numpy as np

from spark.image.varints import Bytes, Numbers, Words

_BITMAP_BYTES: Final = 64 * 1024 * 1024
"""Up to this size a bit for each id is kept; ids are given out one by one, so that they are dense.

Beyond it (ids over 5e8) membership is looked up in the sorted ids themselves, which is slower."""


class IdSet:
    """Membership of ids; built from sorted ones."""

    __slots__ = ("_bits", "sorted")

    def __init__(self, ids: Numbers) -> None:
        """``ids`` are sorted, not negative and without repetition."""
        self.sorted = ids
        self._bits: Bytes | None = None
        last = int(ids[-1]) if ids.size else 0
        if ids.size and last // 8 < _BITMAP_BYTES:
            self._bits = np.zeros(last // 8 + 1, np.uint8)
            marks = np.left_shift(1, ids & 7).astype(np.uint8)
            np.bitwise_or.at(self._bits, ids >> 3, marks)

    def rows_in(self, ids: Numbers) -> Numbers:
        """Return the rows of those ids that are in the set, ascending."""
        if not self.sorted.size:
            return np.empty(0, np.int64)
        last = self.sorted[-1]
        if self._bits is None:
            places = np.searchsorted(self.sorted, np.minimum(ids, last))
            rows: Numbers = np.flatnonzero(self.sorted[places] == ids)
            return rows
        within = np.minimum(ids, last)
        marks = (self._bits[within >> 3] >> (within & 7).astype(np.uint8)) & np.uint8(1)
        marks[ids > last] = 0
        found: Numbers = np.flatnonzero(marks)
        return found

    def places_of(self, ids: Numbers) -> Numbers:
        """Return where ids that are in the set lie in ``sorted``."""
        found: Numbers = np.searchsorted(self.sorted, ids)
        return found


def load_ids(path: str) -> Numbers:
    """Sorted ids of a file, mapped, not read; none if there is no file."""
    if not path:
        return np.empty(0, np.int64)
    # An array of its own class, which is quicker to look into than numpy's memmap.
    found: Numbers = np.asarray(np.load(path, mmap_mode="r"))
    return found


def sorted_ids(ids: Numbers) -> Numbers:
    """Ids sorted and without repetition; quicker than numpy's way by hashes."""
    found = np.sort(ids)
    kept = np.ones(found.size, np.bool_)
    kept[1:] = found[1:] != found[:-1]
    unique: Numbers = found[kept]
    return unique


def save_ids(path: Path, ids: Numbers) -> str:
    """Write sorted ids; returns the path."""
    with path.open("wb") as file:
        np.save(file, ids)
    return str(path)


def load_hashes(path: str) -> Words:
    found: Words = np.load(path)
    return found


def save_hashes(path: Path, hashes: Words) -> str:
    """Write hashes; returns the path."""
    with path.open("wb") as file:
        np.save(file, hashes)
    return str(path)

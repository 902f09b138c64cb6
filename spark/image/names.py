"""Names as 64-bit numbers, so that numpy can look for them among millions."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spark.image.varints import SLACK, ByteWindow, Numbers, Words

_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_FOLD: Final = np.uint64(0xD6E8FEB86659FD93)
_SHIFT: Final = np.uint64(32)
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(8)] + [2**64 - 1], np.uint64)
_PREFILTER_BITS: Final = (14, 24)


def name_hashes(window: ByteWindow, starts: Numbers, lengths: Numbers) -> Words:
    """Return a number for each name, equal for equal ones.

    Unequal names may share one: compare.
    """
    hashes = lengths.astype(np.uint64) * _MIX
    rows: NDArray[np.int64] | None = None
    offset = 0
    places, left = starts, lengths
    while True:
        words = window.words[places + offset] & _MASKS[np.minimum(left - offset, 8)]
        if rows is None:
            hashes = _mix(hashes, words)
        else:
            hashes[rows] = _mix(hashes[rows], words)
        offset += 8
        more = np.flatnonzero(left > offset)
        if not more.size:
            return hashes
        rows = more if rows is None else rows[more]
        places, left = places[more], left[more]


def _mix(hashes: Words, words: Words) -> Words:
    mixed = (hashes ^ words) * _MIX
    mixed ^= mixed >> _SHIFT
    mixed *= _FOLD
    mixed ^= mixed >> _SHIFT
    return mixed


def hashes_of(names: Sequence[bytes]) -> Words:
    """Return the numbers of the names given."""
    if not names:
        return np.empty(0, np.uint64)
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    ends = np.cumsum(lengths)
    return name_hashes(ByteWindow(b"".join(names) + bytes(SLACK)), ends - lengths, lengths)


def paired(hashes: Words, numbers: Numbers) -> Words:
    """Combine the number of a name with that of a place."""
    return _mix(hashes, numbers.astype(np.uint64) * _FOLD)


class HashSet:
    """Which of many hashes are in a set; a small table turns most of the others away."""

    __slots__ = ("_shift", "_table", "sorted")

    def __init__(self, hashes: Words) -> None:
        self.sorted: Words = np.sort(hashes)
        least, most = _PREFILTER_BITS
        bits = min(max(least, hashes.size.bit_length() + 4), most)
        self._shift = np.uint64(64 - bits)
        self._table = np.zeros(1 << bits, np.bool_)
        self._table[self._slots_of(self.sorted)] = True

    def _slots_of(self, hashes: Words) -> NDArray[np.int64]:
        return (hashes >> self._shift).astype(np.int64)

    def rows_in(self, hashes: Words) -> Numbers:
        """Return the rows of those that are in the set, ascending."""
        rows = np.flatnonzero(self._table[self._slots_of(hashes)])
        if not rows.size or not self.sorted.size:
            return rows[:0]
        found = np.searchsorted(self.sorted, hashes[rows])
        found[found == self.sorted.size] = 0
        kept: Numbers = rows[self.sorted[found] == hashes[rows]]
        return kept

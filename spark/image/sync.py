"""Find a place in the middle of a section where a message begins.

What is found is a guess: the task that reads up to there proves it, by ending there exactly.

See docs/reference/checkpoint.md#splitting-a-section.

Pure.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from spark.image import directories, inodes

CHAIN: Final = 6
"""How many plausible messages must follow each other."""
_MAX_CANDIDATES: Final = 400_000

Plausible = Callable[[bytes, int, int], bool]


def next_inode(data: bytes, *, at_end: bool) -> int | None:
    """Return the first position where an INODE message seems to begin, its length included.

    Args:
        data: from any byte of the section on.
        at_end: whether ``data`` reaches to the section's end.
    """
    octets = np.frombuffer(data, np.uint8)
    if octets.size < 4:
        return None
    types = octets[1:-1]
    found = np.flatnonzero(
        (octets[:-2] == 0x08) & (types - np.uint8(1) < inodes.SYMLINK) & (octets[2:] == 0x10)
    )
    return _first_chained(data, found.tolist(), inodes.plausible, at_end=at_end)


def next_directory(data: bytes, *, at_end: bool) -> int | None:
    """Return where the next message of INODE_DIR begins."""
    found = np.flatnonzero(np.frombuffer(data, np.uint8) == directories.PARENT_TAG)
    return _first_chained(data, found.tolist(), directories.plausible, at_end=at_end)


def _first_chained(
    data: bytes, payloads: list[int], plausible: Plausible, *, at_end: bool
) -> int | None:
    for payload in payloads[:_MAX_CANDIDATES]:
        for width in (1, 2, 3, 4, 5):
            if payload < width or (width > 1 and data[payload - width] < 0x80):
                break
            if _chains(data, payload - width, plausible, at_end=at_end):
                return payload - width
    return None


def _chains(data: bytes, position: int, plausible: Plausible, *, at_end: bool) -> bool:
    """Return whether enough plausible messages follow, or all up to the section's end."""
    size = len(data)
    for _ in range(CHAIN):
        if position == size:
            return at_end
        start, length = _prefix(data, position)
        if start < 0 or start + length > size or length < 3:
            return False
        if not plausible(data, start, start + length):
            return False
        position = start + length
    return True


def _prefix(data: bytes, position: int) -> tuple[int, int]:
    length = 0
    for index in range(min(5, len(data) - position)):
        byte = data[position + index]
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return position + index + 1, length
    return -1, 0

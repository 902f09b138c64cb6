"""Rows of an export as numpy columns, and names as numbers."""

import numpy as np
from numpy.typing import NDArray

from ha.record import dataclass, field
from spark.reports.sums import Ints

FILE, DIRECTORY, SYMLINK = 0, 1, 2
NOTHING = -1
"""Stands for null: no parent, no quota."""


@dataclass(slots=True)
class Words:
    """Gives every name a number, the same in all batches of a report."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, word: str) -> int:
        """Return the word's number; a new word gets the next."""
        return self.numbers.setdefault(word, len(self.numbers))

    def names(self) -> list[str]:
        return list(self.numbers)


@dataclass(frozen=True, slots=True)
class Inodes:
    """A batch of inodes; ``length`` is 0 for what is no file, ``atime_ms`` 0 if there is none."""

    id: Ints
    parent_id: Ints
    kind: NDArray[np.int8]
    user: Ints
    group: Ints
    mtime_ms: Ints
    atime_ms: Ints
    replication: Ints
    length: Ints
    blocks: Ints
    under_construction: NDArray[np.bool_]
    ec_policy_id: Ints
    names_quota: Ints
    space_quota: Ints


@dataclass(frozen=True, slots=True)
class Directories:
    """All directories of an export, sorted by id; ``parent`` is a row number, -1 for none."""

    id: Ints
    parent: Ints
    depth: Ints
    files: Ints
    subdirectories: Ints
    bytes: Ints
    subtree_files: Ints
    subtree_directories: Ints
    subtree_bytes: Ints

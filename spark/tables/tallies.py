"""What lies in each directory: counted by tasks, brought together and summed up the tree.  Pure."""

import numpy as np

from ha.record import dataclass
from spark.tables.cursors import Flags, Ints


@dataclass(slots=True)
class Tallies:
    """What lies directly in directories, by slot (`spark.tables.tree.Parents`); bytes as such."""

    files: Ints
    subdirectories: Ints
    bytes: Ints

    @classmethod
    def nothing(cls, slots: int) -> "Tallies":
        return cls(*(np.zeros(slots, np.int64) for _ in range(3)))

    def count(self, slots: Ints, directory: Flags, length: Ints) -> None:
        """Count inodes: the slot of each, whether it is a directory, and its length in bytes.

        Symlinks count as files, as Hadoop's du -c does.
        """
        np.add.at(self.subdirectories, slots[directory], 1)
        others = slots[~directory]
        np.add.at(self.files, others, 1)
        np.add.at(self.bytes, others, length[~directory])

    def add(self, other: "Tallies") -> None:
        """Count what another task has counted."""
        self.files += other.files
        self.subdirectories += other.subdirectories
        self.bytes += other.bytes


def levels_of(ids: Ints, parents: Ints, root: int) -> list[Ints]:
    """Return the rows of directories by depth, the root's level first.

    Args:
        ids: their ids, in order.
        parents: the id of each one's directory; anything for the root.
        root: the root's id.
    """
    above = np.minimum(np.searchsorted(ids, parents), len(ids) - 1)
    top = int(np.searchsorted(ids, root))
    above[top] = -1
    order = np.argsort(above, kind="stable")
    begins = np.searchsorted(above[order], np.arange(len(ids) + 1))
    level = np.array([top], np.int64)
    levels = []
    while len(level):
        levels.append(level)
        sizes = begins[level + 1] - begins[level]
        behind = np.cumsum(sizes)
        places = np.arange(int(behind[-1])) + np.repeat(begins[level] - (behind - sizes), sizes)
        level = order[places]
    return levels


def subtree_sums(direct: Ints, above: Ints, levels: list[Ints]) -> Ints:
    """Sum over whole subtrees; ``above`` is the row of each directory's own directory."""
    sums = direct.copy()
    for level in reversed(levels[1:]):
        np.add.at(sums, above[level], sums[level])
    return sums

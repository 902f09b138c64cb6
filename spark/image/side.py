"""Side files: where the messages of a range lie, written once and read by later stages.

They are numpy's own format, without its pickles, in the work directory.

Pure.
"""

from pathlib import Path

import numpy as np

from ha.record import dataclass
from spark.image.varints import Numbers


@dataclass(frozen=True, slots=True)
class INodeIndex:
    """The inodes of a range in the order of the file; positions count from its beginning.

    The prefix of a message begins where the message before it ends.
    """

    ids: Numbers
    starts: Numbers
    ends: Numbers

    def begins(self) -> Numbers:
        """Return where each message begins, its length included."""
        found = np.empty_like(self.ends)
        found[:1] = 0
        found[1:] = self.ends[:-1]
        return found


def save_inodes(path: Path, index: INodeIndex) -> str:
    """Write an index: 16 bytes for each inode; returns the path."""
    with path.open("wb") as file:
        np.save(file, index.ids)
        np.save(file, index.starts.astype(np.uint32))
        np.save(file, index.ends.astype(np.uint32))
    return str(path)


def load_inodes(path: str) -> INodeIndex:
    with Path(path).open("rb") as file:
        ids: Numbers = np.load(file)
        starts, ends = np.load(file), np.load(file)
    return INodeIndex(ids, starts.astype(np.int64), ends.astype(np.int64))


@dataclass(frozen=True, slots=True)
class DirectoryIndex:
    """The entries of a range, sorted by parent; positions count from its beginning.

    ``child_starts`` and ``child_ends`` as in `spark.image.directories.Entries`.
    """

    parents: Numbers
    begins: Numbers
    starts: Numbers
    ends: Numbers
    child_starts: Numbers
    child_ends: Numbers

    def rows_of(self, wanted: Numbers) -> tuple[Numbers, Numbers]:
        """Rows of the parents wanted (sorted), and which of the wanted each one is."""
        if not self.parents.size or not wanted.size:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places = np.searchsorted(self.parents, wanted)
        places[places == self.parents.size] = 0
        which = np.flatnonzero(self.parents[places] == wanted)
        return places[which], which

    def has_references(self, rows: Numbers) -> Numbers:
        """Return those of the rows whose entries hold children that snapshots moved."""
        found: Numbers = rows[self.child_ends[rows] != self.ends[rows]]
        return found


def save_directories(path: Path, index: DirectoryIndex) -> str:
    """Write an index: 48 bytes for each directory; returns the path."""
    order = np.argsort(index.parents, kind="stable")
    columns = (index.parents, index.begins, index.starts, index.ends,
               index.child_starts, index.child_ends)  # fmt: skip
    with path.open("wb") as file:
        np.save(file, np.stack([column[order] for column in columns]))
    return str(path)


def load_directories(path: str) -> DirectoryIndex:
    """Map an index as it was written, so that only what is looked at takes memory."""
    return DirectoryIndex(*np.asarray(np.load(path, mmap_mode="r")))

"""Find all that goes with the directories that the edits deleted.

See docs/reference/checkpoint.md#expand.
"""

from pathlib import Path

import numpy as np

from ha.record import dataclass
from namenode_sim.image.errors import ImageError
from spark.engine.outcome import attempt_name
from spark.image.children import children_of
from spark.image.ids import IdSet, load_ids, save_ids, sorted_ids
from spark.image.ranges import ImageRange
from spark.image.side import DirectoryIndex, load_directories
from spark.image.spans import RangeReader
from spark.image.varints import Numbers
from spark.merge.errors import EditsDoNotBelong, NeedsWholeNamespace


@dataclass(frozen=True, slots=True)
class ExpandTask:
    """All ranges of INODE_DIR with their indexes, and files of ids as `spark.merge.model.Delta`
    names them; ``inodes`` is how many the image has."""

    parts: tuple[tuple[ImageRange, str], ...]
    gone: str
    tombstones: str
    must_be_empty: str
    materialised: str
    inodes: int
    work: str


@dataclass(frozen=True, slots=True)
class Expanded:
    """A file with the sorted ids of all inodes that go, and how many they are."""

    deleted: str
    count: int


def expand(task: ExpandTask) -> Expanded:
    """Run one task for all ranges, which reads only the pages and entries of what goes.

    What the replay has decided about is left out, with all below it: it has moved away, or is dead
    and a tombstone itself.

    Raises:
        EditsDoNotBelong: if a directory that the edits took for empty is not.
        NeedsWholeNamespace: if a directory holds inodes that a snapshot keeps.
        ImageError: if a directory is below itself.
    """
    parts = [(RangeReader(item), load_directories(index)) for item, index in task.parts]
    decided = IdSet(load_ids(task.materialised))
    empty = load_ids(task.must_be_empty)
    gone = [np.array(load_ids(task.gone))]
    frontier = np.array(load_ids(task.tombstones))
    count = gone[0].size
    while frontier.size:
        found = [_below(reader, index, frontier, decided, empty) for reader, index in parts]
        frontier = sorted_ids(np.concatenate([np.empty(0, np.int64), *found]))
        gone.append(frontier)
        count += frontier.size
        if count > task.inodes:
            raise ImageError("a directory that was deleted is below itself in the image")
    deleted = sorted_ids(np.concatenate(gone))
    path = Path(task.work) / attempt_name("deleted")
    return Expanded(save_ids(path, deleted), deleted.size)


def _below(
    reader: RangeReader, index: DirectoryIndex, parents: Numbers, decided: IdSet, empty: Numbers
) -> Numbers:
    """Return the children in one range that go with their parents."""
    rows, _ = index.rows_of(parents)
    referring = index.has_references(rows)
    if referring.size:
        raise NeedsWholeNamespace(
            f"the directory of inode {index.parents[referring[0]]} was deleted, to which inodes "
            "were moved that a snapshot holds"
        )
    children, counts = children_of(reader, index, rows)
    going = np.ones(children.size, np.bool_)
    going[decided.rows_in(children)] = False
    if empty.size:
        owners = np.repeat(index.parents[rows], counts)
        wrong = np.flatnonzero(going & np.isin(owners, empty))
        if wrong.size:
            raise EditsDoNotBelong(
                f"an edit renames something over directory {owners[wrong[0]]}, which holds inode "
                f"{children[wrong[0]]} in the image: these edits do not belong to this image"
            )
    found: Numbers = children[going]
    return found

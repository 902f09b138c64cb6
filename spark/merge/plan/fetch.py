"""Fetch the messages of directories by id, and of all else by parent and name.

See docs/reference/checkpoint.md#fetch.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ha.record import dataclass
from namenode_sim.image.errors import ImageError
from spark.engine.outcome import attempt_name
from spark.image.children import children_of
from spark.image.ids import IdSet, load_hashes, load_ids, save_ids
from spark.image.inodes import heads
from spark.image.messages import Chunk
from spark.image.names import HashSet, name_hashes, paired
from spark.image.ranges import ImageRange
from spark.image.side import load_directories, load_inodes
from spark.image.spans import RangeReader
from spark.image.varints import Numbers, window_of


@dataclass(frozen=True, slots=True)
class ChildrenTask:
    """List the children of the directories whose ids are in the file ``wanted``."""

    item: ImageRange
    index: str
    wanted: str
    work: str


@dataclass(frozen=True, slots=True)
class ChildrenFound:
    """A file of (child, parent) sorted by child, and which of the wanted were found.

    ``references`` are those of them that hold children which snapshots moved: a few, for a message.
    """

    rows: str
    found: str
    references: tuple[int, ...]


def find_children(task: ChildrenTask) -> ChildrenFound:
    index = load_directories(task.index)
    rows, _ = index.rows_of(load_ids(task.wanted))
    children, counts = children_of(RangeReader(task.item), index, rows)
    parents = np.repeat(index.parents[rows], counts)
    order = np.argsort(children, kind="stable")
    stem = Path(task.work) / attempt_name(f"children-{task.item.number}")
    return ChildrenFound(
        save_ids(Path(f"{stem}.rows"), np.stack([children[order], parents[order]])),
        save_ids(Path(f"{stem}.found"), np.array(index.parents[rows])),
        tuple(index.parents[index.has_references(rows)][:3].tolist()),
    )


def load_rows(paths: tuple[str, ...]) -> tuple[Numbers, Numbers]:
    """Children, sorted, and their parents, of all ranges.

    Raises:
        ImageError: if a child has two parents.
    """
    table = np.concatenate([np.empty((2, 0), np.int64), *map(np.load, paths)], axis=1)
    table = table[:, np.argsort(table[0], kind="stable")]
    twice = np.flatnonzero(table[0][1:] == table[0][:-1])
    if twice.size:
        one, other = table[1][twice[0]], table[1][twice[0] + 1]
        raise ImageError(f"inode {table[0][twice[0]]} is a child of both {one} and {other}")
    return table[0], table[1]


@dataclass(frozen=True, slots=True)
class FetchTask:
    """Fetch the inodes in the file ``ids``, and those of the children in ``rows`` whose parent and
    name hash to what the file ``keys`` has."""

    item: ImageRange
    index: str
    ids: str
    rows: tuple[str, ...]
    keys: str
    work: str


def fetch(task: FetchTask) -> str:
    """Run a task over INODE, and return the file with what was found."""
    index, reader = load_inodes(task.index), RangeReader(task.item)
    by_id = IdSet(load_ids(task.ids)).rows_in(index.ids)
    children, parents = load_rows(task.rows)
    asked = IdSet(children)
    below = asked.rows_in(index.ids)
    owners = np.array(parents[asked.places_of(index.ids[below])])
    kept = np.empty(0, np.int64)
    if below.size:
        found = reader.heads(index, below)
        hashes = name_hashes(found.names, found.name_starts, found.name_lengths)
        kept = HashSet(load_hashes(task.keys)).rows_in(paired(hashes, owners))
    rows = np.concatenate([by_id, below[kept]])
    told = np.concatenate([np.full(by_id.size, -1, np.int64), owners[kept]])
    data = reader.spans(index.starts[rows], index.ends[rows])
    path = Path(task.work) / attempt_name(f"fetched-{task.item.number}")
    with path.open("wb") as file:
        np.save(file, np.stack([index.ids[rows], told, index.ends[rows] - index.starts[rows]]))
        file.write(data)
    return str(path)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A message that was fetched: by its id if ``parent`` is negative, else by parent and name."""

    inode_id: int
    parent: int
    name: bytes
    message: bytes


def read_fetched(path: str) -> Iterator[Fetched]:
    with Path(path).open("rb") as file:
        ids, parents, sizes = np.load(file)
        data = file.read()
    ends = np.cumsum(sizes)
    if not ends.size:
        return
    found = heads(window_of(data), Chunk(0, ends - sizes, ends))
    names = found.all_names()
    rows = zip(ids.tolist(), parents.tolist(), names, ends.tolist(), sizes.tolist(), strict=True)
    for inode_id, parent, name, end, size in rows:
        yield Fetched(inode_id, parent, name, data[end - size : end])

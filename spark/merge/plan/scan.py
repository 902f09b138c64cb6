"""Scan the large sections once: where their messages lie, and which directories may be asked about.

First part of the lookup (docs/reference/checkpoint.md#look-up): the tasks write side files; the
driver hears of counts and names.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ha.record import dataclass
from spark.engine.outcome import attempt_name
from spark.image.children import split_numbers
from spark.image.directories import ODD, Entries, entries, parsed
from spark.image.ids import IdSet, load_hashes, save_ids
from spark.image.inodes import DIRECTORY, BadMessage, heads
from spark.image.messages import BadPrefix, Chunk, chunks
from spark.image.names import HashSet, name_hashes, paired
from spark.image.ranges import ImageRange, read_window
from spark.image.side import DirectoryIndex, INodeIndex, save_directories, save_inodes
from spark.image.varints import ByteWindow, Numbers, Words, gathered

DAMAGED = "take another copy of this image"


@dataclass(frozen=True, slots=True)
class INodeScan:
    """Index the inodes of a range; ``names`` is a file with the hashes of directories' names."""

    item: ImageRange
    names: str
    work: str


@dataclass(frozen=True, slots=True)
class INodesFound:
    """Side files of a range: its index, and id and hash of the directories with such a name.

    ``ended`` and ``broken`` as in `spark.image.proof.Scanned`; ``roots`` are directories without
    a name.
    """

    ended: int
    broken: str
    count: int = 0
    index: str = ""
    candidates: str = ""
    roots: tuple[int, ...] = ()


def scan_inodes(task: INodeScan) -> INodesFound:
    item = task.item
    window = read_window(item)
    wanted = HashSet(load_hashes(task.names))
    index: list[tuple[Numbers, Numbers, Numbers]] = []
    found: list[tuple[Numbers, Words]] = []
    roots: list[int] = []
    ended = 0
    try:
        for chunk in _whole(window):
            ended = int(chunk.ends[-1])
            if ended > window.size:
                break  # the boundary behind this range was guessed wrong
            head = heads(window, chunk)
            index.append((head.ids, chunk.starts, chunk.ends))
            rows = np.flatnonzero(head.types == DIRECTORY)
            roots += head.ids[rows[head.name_lengths[rows] == 0]].tolist()
            hashes = name_hashes(head.names, head.name_starts[rows], head.name_lengths[rows])
            kept = wanted.rows_in(hashes)
            found.append((head.ids[rows[kept]], hashes[kept]))
    except (BadPrefix, BadMessage) as problem:
        return INodesFound(0, f"{item.where(problem.position)}: {problem}; {DAMAGED}")
    if ended > window.size:
        return INodesFound(item.offset + ended, "")
    columns = [np.concatenate([part[n] for part in index]) for n in range(3)]
    ids = np.concatenate([part[0] for part in found])
    hashes = np.concatenate([part[1] for part in found])
    stem = Path(task.work) / attempt_name(f"inodes-{item.number}")
    return INodesFound(
        item.offset + ended,
        "",
        columns[0].size,
        save_inodes(Path(f"{stem}.index"), INodeIndex(*columns)),
        save_ids(Path(f"{stem}.dirs"), np.stack([ids, hashes.view(np.int64)])),
        tuple(roots),
    )


def _whole(window: ByteWindow) -> Iterator[Chunk]:
    """Chunks; a message that reaches beyond the window comes in a chunk of its own."""
    for chunk in chunks(window, 0, window.size):
        if chunk.ends[-1] <= window.size:
            yield chunk
            continue
        if chunk.ends.size > 1:
            yield Chunk(chunk.begin, chunk.starts[:-1], chunk.ends[:-1])
        yield Chunk(chunk.begin, chunk.starts[-1:], chunk.ends[-1:])


@dataclass(frozen=True, slots=True)
class DirectoryScan:
    """Index the directories of a range, and find the edges of the image that may be asked about.

    ``candidates`` are the files of the scan before, ``root`` the id and hash of the root;
    ``pairs`` is a file with what (name of parent, name of child) hash to.
    """

    item: ImageRange
    candidates: tuple[str, ...]
    pairs: str
    work: str


@dataclass(frozen=True, slots=True)
class DirectoriesFound:
    """Side files of a range: its index, edges (hash of parent and name; child) sorted by hash."""

    ended: int
    broken: str
    count: int = 0
    index: str = ""
    edges: str = ""


def load_candidates(paths: tuple[str, ...]) -> tuple[Numbers, Words]:
    """Ids, sorted, and the hashes of their names."""
    table = np.concatenate([np.load(path) for path in paths], axis=1)
    table = table[:, np.argsort(table[0], kind="stable")]
    return table[0], table[1].view(np.uint64)


def scan_directories(task: DirectoryScan) -> DirectoriesFound:
    item = task.item
    window = read_window(item)
    edges = _EdgeFinder(task, window)
    index: list[tuple[Numbers, ...]] = []
    ended = 0
    try:
        for chunk in _whole(window):
            ended = int(chunk.ends[-1])
            if ended > window.size:
                break
            found = entries(window, chunk)
            begins = np.concatenate([[chunk.begin], chunk.ends[:-1]])
            index.append((found.parents, begins, chunk.starts, chunk.ends,
                          found.child_starts, found.child_ends))  # fmt: skip
            edges.look_at(chunk, found)
    except (BadPrefix, BadMessage) as problem:
        return DirectoriesFound(0, f"{item.where(problem.position)}: {problem}; {DAMAGED}")
    if ended > window.size:
        return DirectoriesFound(item.offset + ended, "")
    columns = [np.concatenate([part[n] for part in index]) for n in range(6)]
    stem = Path(task.work) / attempt_name(f"directories-{item.number}")
    return DirectoriesFound(
        item.offset + ended,
        "",
        columns[0].size,
        save_directories(Path(f"{stem}.index"), DirectoryIndex(*columns)),
        save_ids(Path(f"{stem}.edges"), edges.table()),
    )


class _EdgeFinder:
    """Keeps the edges between directories whose two names are neighbours in the trie."""

    def __init__(self, task: DirectoryScan, window: ByteWindow) -> None:
        ids, self._hashes = load_candidates(task.candidates)
        self._ids = IdSet(ids)
        self._pairs = HashSet(load_hashes(task.pairs))
        self._item = task.item
        self._window = window
        self._edges: list[tuple[Words, Numbers]] = []

    def look_at(self, chunk: Chunk, found: Entries) -> None:
        """Take what a chunk of entries has."""
        rows = self._ids.rows_in(found.parents)
        if not rows.size:
            return
        parents = found.parents[rows]
        children, counts = self._children(chunk, found, rows)
        kept = self._ids.rows_in(children)
        owners = np.repeat(np.arange(rows.size), counts)[kept]
        child_hashes = self._hashes[self._ids.places_of(children[kept])]
        parent_hashes = self._hashes[self._ids.places_of(parents)][owners]
        near = self._pairs.rows_in(paired(child_hashes, parent_hashes.view(np.int64)))
        keys = paired(child_hashes[near], parents[owners[near]])
        self._edges.append((keys, children[kept[near]]))

    def _children(self, chunk: Chunk, found: Entries, rows: Numbers) -> tuple[Numbers, Numbers]:
        starts, ends = found.child_starts[rows], found.child_ends[rows]
        odd = np.flatnonzero(starts == ODD)
        if not odd.size:
            data = gathered(self._window, starts, ends)
            return split_numbers(data, ends - starts, self._item.where(int(chunk.begin)))
        lists = []
        for row in rows.tolist():
            raw = bytes(self._window.data[int(chunk.starts[row]) : int(chunk.ends[row])])
            message = parsed(raw, int(chunk.starts[row]))
            lists.append(np.array(message.children, np.uint64).astype(np.int64))
        return np.concatenate(lists), np.array([found.size for found in lists], np.int64)

    def table(self) -> Numbers:
        """Keys and children, sorted by key."""
        keys = np.concatenate([np.empty(0, np.uint64), *(keys for keys, _ in self._edges)])
        children = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in self._edges)])
        order = np.argsort(keys, kind="stable")
        return np.stack([keys[order].view(np.int64), children[order]])

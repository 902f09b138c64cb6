"""Look up in the image what the edits ask about, without holding the image.

See docs/reference/checkpoint.md#look-up.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ha.record import dataclass
from namenode_sim.image.errors import ImageError
from namenode_sim.namespace.inode import ROOT_ID
from spark.engine.model import Engine
from spark.engine.outcome import attempt_name
from spark.image.ids import load_ids, save_hashes, save_ids, sorted_ids
from spark.image.names import hashes_of, paired
from spark.image.opened import OpenedImage
from spark.image.proof import Proved, prove
from spark.image.ranges import ImageRange
from spark.image.varints import Numbers
from spark.merge.errors import NeedsWholeNamespace
from spark.merge.model import Looked
from spark.merge.plan import fetch as plan_fetch
from spark.merge.plan import scan
from spark.merge.plan.fetch import fetch
from spark.merge.plan.walk import ABSENT, neighbours, walk
from spark.merge.task_errors import verdicts
from spark.merge.trie import NEED, ROOT, BaseTrie

_COLLISION: Final = "two names of one directory cannot be told apart by what they hash to"


@dataclass(frozen=True, slots=True)
class Indexed:
    """A range of proved boundaries and the side file that says what lies where in it."""

    item: ImageRange
    index: str
    count: int


@dataclass(frozen=True, slots=True)
class ImageIndex:
    """An image whose large sections were scanned: what looking up and writing need of it."""

    image: OpenedImage
    root: int
    inodes: tuple[Indexed, ...]
    directories: tuple[Indexed, ...]


def look_up(
    engine: Engine, image: OpenedImage, trie: BaseTrie, work: Path
) -> tuple[Looked, ImageIndex]:
    """Scan the image and find what lies at the places of a trie.

    Args:
        engine: runs the scans.
        image: the opened image.
        trie: what is asked about.
        work: takes the side files; they are needed until the merge is done.

    Returns:
        What was found, and the index for `spark.merge.write.stages.apply_delta`.

    Raises:
        ImageError: if the image is damaged; names file and offset.
        NeedsWholeNamespace: if snapshots are in the way.
        TaskFailed: if a task failed.
    """
    with verdicts():
        return _look_up(engine, image, trie, work)


def _look_up(
    engine: Engine, image: OpenedImage, trie: BaseTrie, work: Path
) -> tuple[Looked, ImageIndex]:
    names, pairs = neighbours(trie)
    inodes = _scan_inodes(engine, image, save_hashes(work / attempt_name("names"), names), work)
    root = _root(image, inodes)
    candidates = tuple(done.result.candidates for done in inodes)
    pairs_file = save_hashes(work / attempt_name("pairs"), pairs)
    directories = prove(
        engine,
        "scan directories",
        scan.scan_directories,
        image.directories,
        lambda item: scan.DirectoryScan(item, candidates, pairs_file, str(work)),
    )
    index = ImageIndex(
        image,
        root,
        tuple(Indexed(done.item, done.result.index, done.result.count) for done in inodes),
        tuple(Indexed(done.item, done.result.index, done.result.count) for done in directories),
    )
    ids = walk(trie, root, [load_ids(done.result.edges) for done in directories])
    return _Fetch(engine, index, trie, ids, work).run(), index


def _save(work: Path, stem: str, numbers: Numbers) -> str:
    return save_ids(work / attempt_name(stem), numbers)


def _scan_inodes(
    engine: Engine, image: OpenedImage, names: str, work: Path
) -> list[Proved[scan.INodesFound]]:
    found = prove(
        engine,
        "scan inodes",
        scan.scan_inodes,
        image.inodes,
        lambda item: scan.INodeScan(item, names, str(work)),
    )
    count, told = sum(done.result.count for done in found), image.section_header().numInodes
    if count != told:
        raise ImageError(
            f"{image.path}: section INODE says that it holds {told} inodes, but {count} are "
            "there; take another copy of this image"
        )
    return found


def _root(image: OpenedImage, inodes: Sequence[Proved[scan.INodesFound]]) -> int:
    """Return the root's id: fixed today; very old images have another one, of no name either."""
    roots = [number for done in inodes for number in done.result.roots]
    if not roots:
        raise ImageError(f"{image.path}: section INODE has no root directory")
    return ROOT_ID if ROOT_ID in roots else roots[0]


def referring(directory: str) -> NeedsWholeNamespace:
    """Return why the merge cannot look into a directory."""
    return NeedsWholeNamespace(
        f"the edits touch {directory}, to which inodes were moved that a snapshot holds"
    )


class _Fetch:
    """The messages of the nodes of a trie whose directories are known."""

    def __init__(
        self, engine: Engine, index: ImageIndex, trie: BaseTrie, ids: Numbers, work: Path
    ) -> None:
        self._engine = engine
        self._index = index
        self._trie = trie
        self._ids = ids
        self._work = work
        self._messages: dict[int, bytes] = {}
        self._directories = 0

    def run(self) -> Looked:
        ids, trie = self._ids, self._trie
        known = np.flatnonzero(ids != ABSENT)
        node_of = dict(zip(ids[known].tolist(), known.tolist(), strict=True))
        if len(node_of) != known.size:
            raise ImageError(f"{self._index.image.path}: a directory is below two others")
        above = np.array(trie.parents, np.int64)
        leaves = np.flatnonzero((ids == ABSENT) & (ids[np.maximum(above, 0)] != ABSENT))
        keys = paired(hashes_of([trie.names[node] for node in leaves.tolist()]), ids[above[leaves]])
        keys.sort()
        if (keys[1:] == keys[:-1]).any():
            raise NeedsWholeNamespace(_COLLISION)
        rows = self._children(sorted_ids(ids[above[leaves]]))
        wanted = _save(self._work, "directories", np.sort(ids[known]))
        keys_file = save_hashes(self._work / attempt_name("keys"), keys)
        tasks = [
            plan_fetch.FetchTask(part.item, part.index, wanted, rows, keys_file, str(self._work))
            for part in self._index.inodes
        ]
        for _, path in self._engine.run("fetch inodes", fetch, tasks):
            for found in plan_fetch.read_fetched(path):
                self._take(found, node_of)
            Path(path).unlink()
        if self._directories != known.size:
            raise ImageError(f"{self._index.image.path}: section INODE has an inode twice")
        return Looked(ids, self._messages)

    def _children(self, parents: Numbers) -> tuple[str, ...]:
        """Files with the children of the directories in which something else is asked about."""
        wanted = _save(self._work, "parents", parents)
        tasks = [
            plan_fetch.ChildrenTask(part.item, part.index, wanted, str(self._work))
            for part in self._index.directories
        ]
        paths = []
        for _, found in self._engine.run("list children", plan_fetch.find_children, tasks):
            if found.references:
                # What it has by reference is not among its children: a lookup would miss it.
                raise referring(f"the directory of inode {found.references[0]}")
            paths.append(found.rows)
        return tuple(paths)

    def _take(self, found: plan_fetch.Fetched, node_of: dict[int, int]) -> None:
        if found.parent == ABSENT:
            self._directories += 1
            node = node_of[found.inode_id]
            if node != ROOT and self._trie.names[node] != found.name:
                raise NeedsWholeNamespace(_COLLISION)
        else:
            children = self._trie.children[node_of[found.parent]] or {}
            hit = children.get(found.name)
            if hit is None:
                return  # another name of the same hash
            node = hit
            self._ids[node] = found.inode_id
        if self._trie.flags[node] & NEED:
            self._messages[found.inode_id] = found.message

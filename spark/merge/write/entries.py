"""Write the directories of a range again, with the children that came and without those that left.

See docs/reference/checkpoint.md#directory-entries.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ha.record import dataclass
from namenode_sim.edits.attributes import delimited
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.namespace.inode import signed_order
from spark.engine.outcome import attempt_name
from spark.image.children import children_of
from spark.image.directories import parsed
from spark.image.ids import IdSet, load_ids, sorted_ids
from spark.image.ranges import ImageRange
from spark.image.side import DirectoryIndex, load_directories
from spark.image.spans import RangeReader
from spark.image.varints import Numbers
from spark.merge.errors import EditsDoNotBelong, NeedsWholeNamespace
from spark.merge.write.changes import Moves
from spark.merge.write.inode_parts import read_names
from spark.merge.write.parts import Part, PartWriter, unchanged

_BELONG = "these edits do not belong to this image"


@dataclass(frozen=True, slots=True)
class EntriesTask:
    """A range with its index; files of moves, of deleted ids, and of the names of children."""

    item: ImageRange
    index: str
    moves: str
    deleted: str
    names: tuple[str, ...]
    codec: str
    work: str


@dataclass(frozen=True, slots=True)
class EntriesWritten:
    """A part, and how many directories were changed in it."""

    part: Part
    changed: int


def write_entries(task: EntriesTask) -> EntriesWritten:
    """Run a task over INODE_DIR.

    Raises:
        EditsDoNotBelong: if a name is taken, or a child that leaves is not there.
        NeedsWholeNamespace: if a changed directory holds inodes that a snapshot keeps.
        ImageError: if a child is no inode.
    """
    index, reader = load_directories(task.index), RangeReader(task.item)
    moves = Moves(task.moves)
    changed, places = index.rows_of(moves.parents)
    dropped = IdSet(load_ids(task.deleted)).rows_in(np.array(index.parents))
    if not (changed.size or dropped.size or task.codec):
        return EntriesWritten(unchanged(task.item), 0)
    names = _names(task, index, reader, moves, (changed, places))
    rows = np.concatenate([changed, dropped])
    told = np.concatenate([places, np.full(dropped.size, -1, np.int64)])
    order = np.argsort(index.begins[rows], kind="stable")
    path = Path(task.work) / attempt_name(f"part-directories-{task.item.number}")
    with PartWriter(path, task.codec) as writer:
        pieces = _splice(reader, index, zip(rows[order], told[order], strict=True), moves, names)
        for piece in pieces:
            writer.add(piece)
        return EntriesWritten(writer.finish(), changed.size)


def _splice(
    reader: RangeReader,
    index: DirectoryIndex,
    changed: Iterable[tuple[int, int]],
    moves: Moves,
    names: Mapping[int, bytes],
) -> Iterator[bytes | memoryview]:
    """Yield the entries of a range: those between two changed ones at once.

    ``changed`` are rows, and their places in ``moves``: negative if the directory is gone.
    """
    data, at = reader.all_bytes(), 0
    for row, place in changed:
        begin, start, end = index.begins[row], int(index.starts[row]), index.ends[row]
        if begin > at:
            yield data[at:begin]
        at = end
        if place >= 0:
            message = parsed(bytes(data[start:end]), start)
            came = list(moves.added(place))
            yield changed_entry(message, moves.removed(place), came, names)
    if at < len(data):
        yield data[at:]


def _names(
    task: EntriesTask,
    index: DirectoryIndex,
    reader: RangeReader,
    moves: Moves,
    found: tuple[Numbers, Numbers],
) -> dict[int, bytes]:
    """Return the names of the children of the directories that gain some."""
    changed, places = found
    gains = [any(True for _ in moves.added(place)) for place in places.tolist()]
    rows = changed[np.array(gains, np.bool_)]
    children, _ = children_of(reader, index, rows)
    wanted = IdSet(sorted_ids(children))
    return dict(found for path in task.names for found in read_names(path, wanted))


def changed_entry(
    message: pb.DirEntry,
    removed: Numbers,
    added: Sequence[tuple[bytes, int]],
    names: Mapping[int, bytes],
) -> bytes:
    """Return a directory's entry after the edits, with its length; empty without children.

    Fields of a newer Hadoop stay as they are.
    """
    if message.refChildren:
        raise NeedsWholeNamespace(
            f"the edits touch the directory of inode {message.parent}, to which inodes were moved "
            "that a snapshot holds"
        )
    left = set(removed.tolist())
    kept = list(message.children)
    before = len(kept)
    if left:
        kept = [child for child in kept if child not in left]
    if len(kept) + len(left) != before:
        missing = sorted(left.difference(message.children))
        raise EditsDoNotBelong(
            f"an edit takes inode {missing[:1]} out of directory {message.parent}, which does not "
            f"hold it in the image: {_BELONG}"
        )
    if added:
        came, numbers = zip(*added, strict=True)
        kept = ordered(
            message.parent, [*_names_of(message.parent, kept, names), *came], [*kept, *numbers]
        )
    if not kept:
        return b""
    del message.children[:]
    message.children.extend(kept)
    return delimited(message.SerializeToString())


def _names_of(parent: int, children: list[int], names: Mapping[int, bytes]) -> list[bytes]:
    try:
        return [names[child] for child in children]
    except KeyError as missing:
        raise ImageError(f"directory {parent} has a child {missing} that is no inode") from None


def ordered(parent: int, names: Sequence[bytes], ids: Sequence[int]) -> list[int]:
    """Sort the ids of children by Hadoop's order of their names, that of signed bytes.

    Raises:
        EditsDoNotBelong: if a name is there twice.
    """
    # Names in ASCII sort the same with and without sign.
    ascii_only = b"".join(names).isascii()
    keys = names if ascii_only else list(map(signed_order, names))
    keyed = sorted(zip(keys, ids, strict=True))
    if len(set(names)) != len(names):
        for (key, number), (other, taken) in pairwise(keyed):
            if key == other:
                raise EditsDoNotBelong(
                    f"directory {parent} would have two children "
                    f"{key if ascii_only else signed_order(key)!r}, inodes {number} and {taken}: "
                    f"{_BELONG}"
                )
    return [number for _, number in keyed]


def new_entries(
    created: Mapping[int, Sequence[int]], filled: Mapping[int, Sequence[tuple[bytes, int]]]
) -> Iterator[bytes]:
    """Entries of directories that had none: new ones, and empty ones that gained children."""
    for parent, ids in created.items():
        yield delimited(pb.DirEntry(parent=parent, children=ids).SerializeToString())
    for parent, children in filled.items():
        names, ids = zip(*children, strict=True)
        message = pb.DirEntry(parent=parent, children=ordered(parent, names, ids))
        yield delimited(message.SerializeToString())

"""INODE_DIR messages to edges: which inode lies in which directory.

See docs/reference/formats.md#image-messages.
"""

from typing import Final

import numpy as np
from google.protobuf.message import DecodeError, EncodeError
from numpy.typing import NDArray

from ha.record import dataclass
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.tables.cursors import Cursors, Ints, squeezed, words_of
from spark.tables.message_stream import BadMessage, Chunk

_U = np.uint64
_MOST_BYTES: Final = 8
"""A packed number of at most eight bytes is decoded here: 56 bits, more than an id has."""


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """One entry per child.

    ``child`` is an inode's id; of a child by reference, which only moves out of snapshots make,
    it is a number in INODE_REFERENCE, and ``by_reference`` holds its row.
    """

    parent: Ints
    child: Ints
    by_reference: Ints


def decode_entries(data: bytes | bytearray, starts: Ints, ends: Ints) -> EdgeColumns:
    """Edges of the messages of ``data`` from ``starts`` to ``ends``, plain children first.

    Args:
        data: a buffer with ``SLACK_BYTES`` behind the last message.
        starts: where the messages begin, without their lengths.
        ends: where they end.

    Raises:
        BadMessage: if one is malformed.
    """
    cursors = Cursors(words_of(data), starts, ends)
    parent = cursors.number(0x08)[0].view(np.int64)
    plain_at, plain_end, _ = cursors.inner(0x12)
    moved_at, moved_end, _ = cursors.inner(0x1A)
    sound = cursors.at_end()
    every = np.frombuffer(data, np.uint8)
    rows = np.flatnonzero(sound)
    children, owners, whole = _read_packed(cursors, every, plain_at[rows], plain_end[rows])
    moved, movers, moved_whole = _read_packed(cursors, every, moved_at[rows], moved_end[rows])
    if whole and moved_whole and len(rows) == len(starts):
        parents, kids = [parent[owners], parent[movers]], [children, moved]
        count = len(moved)
    else:
        return _alone(data, starts, ends)
    child = np.concatenate(kids)
    return EdgeColumns(
        np.concatenate(parents), child, np.arange(len(child) - count, len(child), dtype=np.int64)
    )


def _read_packed(
    cursors: Cursors, every: NDArray[np.uint8], begin: Ints, end: Ints
) -> tuple[Ints, Ints, bool]:
    """Return the numbers of packed fields, the row of each, and whether all are usual."""
    nothing = np.zeros(0, np.int64)
    used = np.flatnonzero(end > begin)
    begin, end = begin[used], end[used]
    size = end - begin
    if not len(used):
        return nothing, nothing, True
    behind = np.cumsum(size)
    at = np.arange(int(behind[-1]), dtype=np.int64)
    if len(used) == 1:
        at += begin[0]
    else:
        at += np.repeat(begin - (behind - size), size)
    last = every[at] < 0x80
    if not last[behind - 1].all():
        return nothing, nothing, False
    stop = np.flatnonzero(last)
    first = np.empty_like(stop)
    first[0] = 0
    first[1:] = stop[:-1] + 1
    bytes_of = stop - first + 1
    if int(bytes_of.max()) > _MOST_BYTES:
        return nothing, nothing, False
    word = cursors.words[at[first]]
    word &= ~_U(0) >> (_U(64) - _U(8) * bytes_of.astype(np.uint64))
    counts = np.diff(np.searchsorted(stop, behind - 1) + 1, prepend=0)
    return squeezed(word).view(np.int64), np.repeat(used, counts), True


def _alone(data: bytes | bytearray, starts: Ints, ends: Ints) -> EdgeColumns:
    """Messages of which one is unusual, by protobuf's parser."""
    parents: list[tuple[int, int]] = []
    moved: list[tuple[int, int]] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        try:
            entry = pb.DirEntry.FromString(bytes(data[start:end]))
        except (DecodeError, EncodeError) as problem:
            what = f"the children of a directory are malformed ({problem})"
            raise BadMessage(start, what) from problem
        parents += ((entry.parent, child) for child in entry.children)
        moved += ((entry.parent, number) for number in entry.refChildren)
    edges = np.array(parents + moved, np.int64).reshape(-1, 2)
    rows = np.arange(len(parents), len(edges), dtype=np.int64)
    return EdgeColumns(edges[:, 0].copy(), edges[:, 1].copy(), rows)


def edges_of(chunk: Chunk, references: Ints) -> tuple[Ints, Ints]:
    """Return the parents and the children in a chunk of INODE_DIR messages.

    Args:
        chunk: the messages.
        references: the inodes of INODE_REFERENCE by number.

    Raises:
        BadMessage: if one is malformed, or names a reference that is not there.
    """
    found = decode_entries(chunk.data, chunk.starts, chunk.ends)
    moved = found.by_reference
    if len(moved):
        numbers = found.child[moved]
        if int(numbers.max()) >= len(references):
            what = f"reference {numbers.max()} is not there, only {len(references)} are"
            raise BadMessage(int(chunk.starts[0]), what)
        found.child[moved] = references[numbers]
    return found.parent, found.child

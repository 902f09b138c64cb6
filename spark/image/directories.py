"""The messages of INODE_DIR: whose children, and where the list of their ids lies."""

from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from ha.record import dataclass
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.image.inodes import BadMessage
from spark.image.messages import Chunk
from spark.image.varints import ByteWindow, Numbers, decode_words

PARENT_TAG: Final = 0x08
CHILDREN_TAG: Final = 0x12
REFERENCES_TAG: Final = 0x1A
ODD: Final = -1
"""The children's start of an entry that is written in an uncommon way: parse it."""


@dataclass(frozen=True, slots=True)
class Entries:
    """DirEntry messages of a chunk, as positions in the window.

    ``child_starts`` is ``ODD`` for entries that only protobuf understands.  What lies between the
    end of the children and the end of the message are ``refChildren``.
    """

    parents: Numbers
    child_starts: Numbers
    child_ends: Numbers


def entries(window: ByteWindow, chunk: Chunk) -> Entries:
    """Return the entries of a chunk whose messages lie in the window.

    Raises:
        BadMessage: if one is no DirEntry.
    """
    starts, ends = chunk.starts, chunk.ends
    low, high = window.both_words(starts)
    parents, widths = decode_words((low >> np.uint64(8)) | (high << np.uint64(56)))
    at = starts + 1 + widths
    alone = at >= ends
    tags = window.octets[np.where(alone, starts, at)]
    sizes, size_widths = decode_words(window.words[np.where(alone, starts, at) + 1])
    begins = at + 1 + size_widths
    child_starts = np.where(tags == CHILDREN_TAG, begins, at)
    child_ends = np.where(tags == CHILDREN_TAG, begins + sizes, at)
    rest = np.minimum(child_ends, ends)
    usual = (
        ((low & np.uint64(0xFF)) == PARENT_TAG)
        & (widths > 0)
        & (at <= ends)
        & (child_ends <= ends)
        & ((tags != CHILDREN_TAG) | (size_widths > 0))
        & ((rest == ends) | (window.octets[rest] == REFERENCES_TAG))
    )
    usual[alone] = (
        (at[alone] == ends[alone])
        & (widths[alone] > 0)
        & (window.octets[starts[alone]] == PARENT_TAG)
    )
    child_starts[alone] = child_ends[alone] = at[alone]
    for row in np.flatnonzero(~usual).tolist():
        message = parsed(bytes(window.data[int(starts[row]) : int(ends[row])]), int(starts[row]))
        parents[row] = message.parent
        child_starts[row] = ODD
        child_ends[row] = ends[row] if not message.refChildren else starts[row]
    return Entries(parents, child_starts, child_ends)


def parsed(raw: bytes, position: int) -> pb.DirEntry:
    """Parse a DirEntry as a message; unknown fields stay with it.

    Raises:
        BadMessage: if it is none; ``position`` is where it lies.
    """
    try:
        message = pb.DirEntry.FromString(raw)
    except DecodeError as problem:
        raise BadMessage(position, f"a message is no DirEntry ({problem})") from None
    if not message.HasField("parent") or message.parent >= 1 << 56:
        raise BadMessage(position, "a message is no DirEntry: it has no usual parent")
    return message


def plausible(data: bytes | bytearray, start: int, end: int) -> bool:
    """Return whether [start, end) is ``08 parent [12 n ...] [1a n ...]`` to the byte."""
    if start >= end or data[start] != PARENT_TAG:
        return False
    at = _behind_varint(data, start + 1, end)
    for tag in (CHILDREN_TAG, REFERENCES_TAG):
        if 0 < at < end and data[at] == tag:
            size_at = at + 1
            at = _behind_varint(data, size_at, end)
            if at > 0:
                size = sum((data[i] & 0x7F) << 7 * (i - size_at) for i in range(size_at, at))
                at += size
    return at == end


def _behind_varint(data: bytes | bytearray, at: int, end: int) -> int:
    """Return the position behind a varint; -1 if it does not end soon enough."""
    for position in range(at, min(at + 9, end)):
        if data[position] < 0x80:
            return position + 1
    return -1

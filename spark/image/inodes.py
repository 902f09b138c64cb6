"""The head of INODE messages: id, type and where the name lies, for many at a time.

The heads of all images seen are ``08 type 10 id 1a name``
(docs/reference/checkpoint.md#index-pass).  A chunk with another one is parsed by protobuf instead,
message by message.
"""

from typing import Final

import numpy as np
from google.protobuf.message import DecodeError

from ha.record import dataclass
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.image.messages import Chunk
from spark.image.varints import SLACK, Bytes, ByteWindow, Numbers, decode_words

FILE: Final = 1
DIRECTORY: Final = 2
SYMLINK: Final = 3

_HEAD_MASK: Final = np.uint64(0xFF00FF)
_HEAD: Final = np.uint64(0x100008)
_NAME_TAG: Final = 0x1A
_ID_AT: Final = 3


@dataclass(frozen=True, slots=True)
class Heads:
    """What begins each message of a chunk.  Names lie in ``names``, mostly the window itself."""

    ids: Numbers
    types: Bytes
    names: ByteWindow
    name_starts: Numbers
    name_lengths: Numbers

    def name(self, row: int) -> bytes:
        start = int(self.name_starts[row])
        return bytes(self.names.data[start : start + int(self.name_lengths[row])])

    def all_names(self) -> list[bytes]:
        data = memoryview(self.names.data)
        ends = (self.name_starts + self.name_lengths).tolist()
        spans = zip(self.name_starts.tolist(), ends, strict=True)
        return [bytes(data[start:end]) for start, end in spans]


class BadMessage(ImageError):
    """What lies at ``position`` of the window is no INode or DirEntry."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(position, what)
        self.position = position
        self.what = what

    def __str__(self) -> str:
        """Return it for people; a caller that knows the file adds its name."""
        return self.what


def heads(window: ByteWindow, chunk: Chunk) -> Heads:
    """Return the heads of a chunk whose messages lie in the window.

    Raises:
        BadMessage: if one is no INode.
    """
    starts, ends = chunk.starts, chunk.ends
    low, high = window.both_words(starts)
    types = ((low >> np.uint64(8)) & np.uint64(0xFF)).astype(np.uint8)
    ids, id_lengths = decode_words((low >> np.uint64(24)) | (high << np.uint64(40)))
    tags = starts + _ID_AT + id_lengths
    name_starts = tags + 2
    name_lengths = window.octets[tags + 1].astype(np.int64)
    long = np.flatnonzero(name_lengths >= 0x80)
    if long.size:
        sizes, widths = decode_words(window.words[tags[long] + 1])
        name_lengths[long] = sizes
        name_starts[long] += widths - 1
        id_lengths[long[widths == 0]] = 0
    usual = (
        ((low & _HEAD_MASK) == _HEAD)
        & ((types - np.uint8(1)) < SYMLINK)
        & (id_lengths > 0)
        & (window.octets[tags] == _NAME_TAG)
        & (name_starts + name_lengths <= ends)
    )
    if usual.all():
        return Heads(ids, types, window, name_starts, name_lengths)
    return _parse(window, chunk)


def _parse(window: ByteWindow, chunk: Chunk) -> Heads:
    """Parse the heads one message after another."""
    ids: list[int] = []
    types: list[int] = []
    names: list[bytes] = []
    for start, end in zip(chunk.starts.tolist(), chunk.ends.tolist(), strict=True):
        try:
            message = pb.INode.FromString(bytes(window.data[start:end]))
        except DecodeError as problem:
            raise BadMessage(start, f"a message is no INode ({problem})") from None
        if not message.HasField("id") or not message.HasField("type") or message.id >= 1 << 56:
            raise BadMessage(start, "a message is no INode: it has no type, or no usual id")
        ids.append(message.id)
        types.append(message.type)
        names.append(message.name)
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    return Heads(
        np.array(ids, np.int64),
        np.array(types, np.uint8),
        ByteWindow(b"".join(names) + bytes(SLACK)),
        np.cumsum(lengths) - lengths,
        lengths,
    )


def plausible(data: bytes | bytearray, start: int, end: int) -> bool:
    """Return whether [start, end) can be an INode by its head.

    The name's tag is asked for because an ``INodeFile{replication: 3, ...}`` looks like a symlink,
    ends where its INode ends, and has a fitting byte before it.
    """
    if data[start] != 0x08 or not FILE <= data[start + 1] <= SYMLINK or data[start + 2] != 0x10:
        return False
    at = start + _ID_AT
    while at < end and data[at] >= 0x80:
        at += 1
    if at + 2 >= end or at - start > _ID_AT + 8 or data[at + 1] != _NAME_TAG:
        return False
    length, at = data[at + 2], at + 3
    if length >= 0x80 and at < end:
        length, at = (length & 0x7F) | data[at] << 7, at + 1
    return at + length <= end

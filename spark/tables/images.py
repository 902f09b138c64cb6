"""An image opened for its tables: what its small sections say, and where its rows lie."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import numpy as np

from ha.record import dataclass, replace
from namenode_sim.image.codecs import decompressed
from namenode_sim.image.container import MAX_MESSAGE_BYTES, Section, stretch
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.sections import BROKEN, ImageSections
from namenode_sim.image.strings import Strings, read_strings
from namenode_sim.namespace.inode import ROOT_ID
from spark.image.ranges import SMALLEST_RANGE_BYTES, cut
from spark.tables.cursors import Ints
from spark.tables.message_stream import CHUNK_BYTES, BadMessage, Chunk, chunks_of

T = TypeVar("T")

INODES: Final = "INODE"
ENTRIES: Final = "INODE_DIR"
_HEADER_LOOK: Final = 16 * 1024
_ADVICE: Final = "Take another copy of this image"


@dataclass(frozen=True, slots=True)
class Piece:
    """Messages of a section that are read one after the other, by one task.

    Attributes:
        path: the image.
        section: INODE or INODE_DIR.
        offset, length: where in the file they lie, as they lie there.
        codec: Hadoop's class name of the compression codec, or empty.
        header: whether the section's header message comes first.
    """

    path: str
    section: str
    offset: int
    length: int
    codec: str
    header: bool


@dataclass(frozen=True, slots=True)
class ImageTables:
    """What is known of an image before its rows are read.

    ``references`` are the inodes of INODE_REFERENCE by number; empty without snapshots.
    """

    path: str
    layout: int
    codec: str
    txid: int
    namespace_id: int
    last_inode_id: int
    inodes: int
    strings: Strings
    references: Ints
    inode_pieces: tuple[Piece, ...]
    entry_pieces: tuple[Piece, ...]


def open_tables(path: str) -> ImageTables:
    """Read the small sections of an image.

    Raises:
        ImageError: if it is no sound image; names the file.
        OSError: if it cannot be read.
    """
    found = Path(path).stat()
    return _open(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)  # tasks of one process ask again for the image that they share
def _open(path: str, _size: int, _time: int) -> ImageTables:
    try:
        with Path(path).open("rb") as file:
            found = _read(path, file)
    except ImageError as problem:
        raise ImageError(f"{path} cannot be read: {problem}. {_ADVICE}") from problem
    header = _header(found.inode_pieces[0])
    return replace(found, last_inode_id=header.lastInodeId, inodes=header.numInodes)


def _read(path: str, file: BinaryIO) -> ImageTables:
    """Read all but what the header of INODE says."""
    sections = ImageSections(file)
    for name in ("NS_INFO", "STRING_TABLE", INODES):
        if name not in sections:
            raise ImageError(f"it has no section {name}")
    with sections.open("NS_INFO") as messages:
        info = pb.NameSystemSection.FromString(b"".join(messages))
    with sections.open("STRING_TABLE") as messages:
        strings = read_strings(messages, {})
    with sections.open("INODE_REFERENCE") as messages:
        referred = [pb.INodeReference.FromString(raw).referredId for raw in messages]
    summary = sections.summary
    pieces = {
        name: tuple(_pieces(path, summary.parts(name), name, summary.codec))
        for name in (INODES, ENTRIES)
    }
    return ImageTables(
        path, summary.layout, summary.codec, info.transactionId, info.namespaceId, 0, 0, strings,
        np.array(referred, np.int64), pieces[INODES], pieces[ENTRIES],
    )  # fmt: skip


def _pieces(path: str, parts: tuple[Section, ...], name: str, codec: str) -> Iterator[Piece]:
    for number, part in enumerate(parts):
        yield Piece(path, name, part.offset, part.length, codec, not number and name == INODES)


def _header(piece: Piece) -> pb.INodeSection:
    for chunk in _chunks(piece, _HEADER_LOOK):
        try:
            return pb.INodeSection.FromString(chunk.first())
        except BROKEN as problem:
            raise _error_at(
                piece, 0, f"malformed ({type(problem).__name__}: {problem})"
            ) from problem
    raise _error_at(piece, 0, "it is empty")


def header_end(piece: Piece) -> int:
    """Return where in the file the header of a plain piece ends that begins with one."""
    for chunk in _chunks(piece, _HEADER_LOOK):
        return piece.offset + int(chunk.ends[0])
    return piece.offset


def read_piece(piece: Piece, decode: Callable[[Chunk], T]) -> Iterator[T]:
    """Yield what ``decode`` makes of each chunk of a piece, in order; skip a header.

    Raises:
        ImageError: if a message is malformed, here or by what ``decode`` says (BadMessage at a
            byte of the chunk); names file and offset.
        OSError: if the file cannot be read.
    """
    header = piece.header
    for chunk in _chunks(piece, CHUNK_BYTES):
        rows = chunk.without_first() if header else chunk
        header = False
        try:
            result = decode(rows)
        except BadMessage as problem:
            raise _error_at(piece, chunk.offset + problem.at, problem.what) from problem
        yield result


def _chunks(piece: Piece, size: int) -> Iterator[Chunk]:
    limit = MAX_MESSAGE_BYTES if piece.codec else piece.length
    with Path(piece.path).open("rb") as file:
        raw = stretch(file, piece.offset, piece.length, at_once=size)
        stream = decompressed(raw, piece.codec)
        try:
            yield from chunks_of(_gather(stream, size) if piece.codec else stream, limit=limit)
        except BadMessage as problem:
            raise _error_at(piece, problem.at, problem.what) from problem
        except ImageError as problem:
            where = f"section {piece.section} at byte {piece.offset}"
            raise ImageError(f"{piece.path}: {where}: {problem}. {_ADVICE}") from problem


def _gather(stream: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Pieces of a good size: some codecs give a few bytes at a time."""
    waiting: list[bytes] = []
    held = 0
    for data in stream:
        waiting.append(data)
        held += len(data)
        if held >= size:
            yield b"".join(waiting)
            waiting, held = [], 0
    yield b"".join(waiting)


def _error_at(piece: Piece, at: int, what: str) -> ImageError:
    where = (
        f"section {piece.section} at byte {piece.offset}, byte {at} of its plain bytes"
        if piece.codec
        else f"section {piece.section}, byte {piece.offset + at} of the file"
    )
    return ImageError(f"{piece.path}: {where}: {what}. {_ADVICE}")


def find_root(image: ImageTables, ids_of: Callable[[Chunk], Ints]) -> int:
    """Return the root's id: a fixed one today, but very old images have another.

    ``ids_of`` returns the ids of nameless directories in a chunk.
    """
    nameless: list[int] = []
    with suppress(StopIteration):
        for piece in image.inode_pieces:
            for ids in read_piece(piece, ids_of):
                nameless += ids.tolist()
                if ROOT_ID in nameless:
                    return ROOT_ID
    if not nameless:
        raise ImageError(f"{image.path}: it has no root directory. {_ADVICE}")
    return nameless[0]


SPLIT_BYTES: Final = 64 * 1024 * 1024
"""What a task reads at most: some 700,000 inodes."""


def split(pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
    """Cut what is not compressed into pieces of about ``size`` bytes.

    Where a piece begins in the middle of a section is a guess by its bytes.  Reading the piece
    before proves it: that must end there exactly, or it is refused as malformed.
    """
    for piece in pieces:
        if piece.codec or piece.length <= size * 3 // 2:
            yield piece
            continue
        begin = header_end(piece) if piece.header else piece.offset
        end = piece.offset + piece.length
        for found in cut(piece.path, piece.section, begin, end, size, 0):
            first = found.number == 0
            offset = piece.offset if first else found.offset
            header = piece.header and first
            yield replace(piece, offset=offset, length=found.end - offset, header=header)


def piece_bytes(pieces: Iterable[Piece], parallelism: int) -> int:
    """Return how large pieces should be: some for each core, but none too small for a task."""
    total = sum(piece.length for piece in pieces)
    return max(SMALLEST_RANGE_BYTES, min(SPLIT_BYTES, total // (3 * parallelism)))

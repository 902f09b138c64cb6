"""The two files of a replica, open: blocks are written and read with their checksums."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from datanode.replicas import meta_file
from ha.record import dataclass
from hadoop.blocks import Checksum
from hadoop.wire.checksums import checksums_of, verify
from hadoop.wire.errors import ChecksumMismatch

_FILE_MODE: Final = 0o600
_PIECE_BYTES: Final = 1024 * 1024
_MOST_PIECES: Final = 1024
"""Linux's IOV_MAX."""


@dataclass(frozen=True, slots=True)
class ReplicaPaths:
    """Where the two files of a replica lie."""

    block: Path
    meta: Path

    def unlink(self) -> None:
        """Delete both files; no error where they are gone."""
        self.block.unlink(missing_ok=True)
        self.meta.unlink(missing_ok=True)


@dataclass(slots=True)
class ReplicaFiles:
    """An open replica; its owner closes it."""

    block_fd: int
    meta_fd: int
    checksum: Checksum

    def close(self) -> None:
        os.close(self.block_fd)
        os.close(self.meta_fd)

    def write(self, offset: int, data: Sequence[memoryview], sums: Sequence[memoryview]) -> None:
        """Put bytes and the checksums of their chunks in place; ``offset`` begins a chunk."""
        _write_all(self.block_fd, data, offset)
        _write_all(self.meta_fd, sums, meta_file.sums_at(self.checksum, offset))

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the block; fewer at its end."""
        return os.pread(self.block_fd, length, offset)

    def read_sums(self, offset: int, length: int) -> bytes:
        """Return the checksums of the chunks that the ``length`` bytes from ``offset`` on touch."""
        checksum = self.checksum
        count = checksum.chunks(offset + length) - offset // checksum.bytes_per_chunk
        return os.pread(self.meta_fd, count * checksum.size, meta_file.sums_at(checksum, offset))

    def checked(self, offset: int, length: int, what: str) -> bytes:
        """Return bytes from the beginning of a chunk on, once they fit their checksums.

        Raises:
            ChecksumMismatch: if they do not.
        """
        data = self.read(offset, length)
        verify(data, self.read_sums(offset, length), self.checksum, at=offset, what=what)
        return data

    def pieces(self, length: int, what: str) -> Iterator[tuple[int, int]]:
        """Yield where each megabyte of a whole replica begins, and its length, for ``checked``.

        Raises:
            ChecksumMismatch: if the replica does not have ``length`` bytes.
        """
        if self.size() != length:
            raise ChecksumMismatch(f"{what} has {self.size()} bytes", self.size())
        piece = self._piece()
        for at in range(0, length, piece):
            yield at, min(piece, length - at)

    def _piece(self) -> int:
        """Return about a megabyte of whole chunks, in bytes."""
        step = self.checksum.bytes_per_chunk
        return max(1, _PIECE_BYTES // step) * step

    def sync(self) -> None:
        """Wait until everything that was written is on the disk; takes long."""
        os.fdatasync(self.block_fd)
        os.fdatasync(self.meta_fd)

    def cut(self, length: int, what: str) -> None:
        """Shorten the block; the checksum of a chunk that is cut is made anew.

        Raises:
            ChecksumMismatch: if neither that chunk nor what stays of it fits its checksum.
        """
        start = self.checksum.chunk_start(length)
        partial = b""
        if start < length:
            partial = self.read(start, length - start)
            if checksums_of(partial, self.checksum) != self.read_sums(start, 1):
                whole = min(self.checksum.bytes_per_chunk, self.size() - start)
                self.checked(start, whole, what)
        if partial:
            made = checksums_of(partial, self.checksum)
            _write_all(self.meta_fd, [memoryview(made)], meta_file.sums_at(self.checksum, start))
        self.shorten(length)

    def shorten(self, length: int) -> None:
        """Cut both files; the checksum of a chunk that this cuts does not fit any more."""
        os.ftruncate(self.block_fd, length)
        os.ftruncate(self.meta_fd, meta_file.meta_bytes(self.checksum, length))

    def copy_to(self, other: "ReplicaFiles", length: int, what: str) -> None:
        """Copy the first ``length`` bytes; raise as ``checked`` where they are damaged."""
        at = 0
        while at < length:
            at = self.copy_piece(other, at, length, what)

    def copy_piece(self, other: "ReplicaFiles", at: int, length: int, what: str) -> int:
        """Copy a megabyte of the first ``length`` bytes, from ``at`` on; return where it ends."""
        count = min(self._piece(), length - at)
        end = self.checksum.chunks(at + count) * self.checksum.bytes_per_chunk
        there = min(end, self.size()) - at
        data = self.checked(at, there, what)[:count]
        sums = checksums_of(data, self.checksum)
        other.write(at, [memoryview(data)], [memoryview(sums)])
        return at + count

    def size(self) -> int:
        return os.fstat(self.block_fd).st_size

    def valid_length(self, what: str) -> int:
        """Return the number of bytes that fit their checksums, if all but the last chunk do.

        A process that was killed may have made the last chunk longer and not its checksum yet: then
        that of the shorter chunk is still there, and readers may have seen that much.
        """
        step, size = self.checksum.bytes_per_chunk, self.checksum.size
        length = self.size()
        if size:
            sums = max(0, os.fstat(self.meta_fd).st_size - meta_file.HEADER_BYTES) // size
            length = min(length, sums * step)
        if length == 0:
            return 0
        last = self.checksum.chunk_start(length - 1)
        try:
            self.checked(last, length - last, what)
        except ChecksumMismatch:
            return last + self._fitting(self.read(last, length - last), self.read_sums(last, 1))
        return length

    def _fitting(self, chunk: bytes, stored: bytes) -> int:
        """Return how many bytes at the beginning of a chunk have this checksum; 0 for none."""
        for count in range(len(chunk) - 1, 0, -1):
            if checksums_of(chunk[:count], self.checksum) == stored:
                return count
        return 0


def create_files(paths: ReplicaPaths, checksum: Checksum) -> None:
    """Make the two files of a new replica, which has no bytes yet.

    Raises:
        OSError: if one exists already, or if the disk refuses.
    """
    paths.block.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    os.close(os.open(paths.block, flags, _FILE_MODE))
    fd = os.open(paths.meta, flags, _FILE_MODE)
    try:
        os.write(fd, meta_file.encode_header(checksum))
    finally:
        os.close(fd)


def open_files(paths: ReplicaPaths, *, writable: bool) -> ReplicaFiles:
    """Open the files of a replica.

    Raises:
        OSError: if one is not there.
        BadMetaFile: if the meta file's header makes no sense.
    """
    flags = os.O_RDWR if writable else os.O_RDONLY
    block_fd = os.open(paths.block, flags)
    try:
        meta_fd = os.open(paths.meta, flags)
    except OSError:
        os.close(block_fd)
        raise
    try:
        checksum = meta_file.decode_header(os.pread(meta_fd, meta_file.HEADER_BYTES, 0))
    except BaseException:
        os.close(block_fd)
        os.close(meta_fd)
        raise
    return ReplicaFiles(block_fd, meta_fd, checksum)


@contextmanager
def opened(paths: ReplicaPaths, *, writable: bool) -> Iterator[ReplicaFiles]:
    """Open the files of a replica for the time of the ``with``; raise as ``open_files``."""
    files = open_files(paths, writable=writable)
    try:
        yield files
    finally:
        files.close()


def _write_all(fd: int, pieces: Sequence[memoryview], offset: int) -> None:
    rest = pieces
    while rest:
        written = os.pwritev(fd, rest[:_MOST_PIECES], offset)
        offset += written
        rest = _behind(rest, written)


def _behind(pieces: Sequence[memoryview], count: int) -> Sequence[memoryview]:
    """Return what is left when ``count`` bytes have been written."""
    for index, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[index + 1 :]]
        count -= len(piece)
    return []

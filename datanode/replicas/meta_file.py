"""Meta files: the checksums of a replica behind a header of seven bytes.

See docs/reference/datanode.md#meta-files.

Pure.
"""

import struct
from typing import Final

from hadoop.blocks import Checksum, ChecksumType
from hadoop.wire.errors import DataNodeError

_HEADER: Final = struct.Struct(">HBI")
HEADER_BYTES: Final = _HEADER.size
_VERSION: Final = 1
MAX_CHUNK_BYTES: Final = 1024 * 1024
"""Longest chunk that we take: a reader always gets whole chunks, so longer ones cost memory."""


class BadMetaFile(DataNodeError):
    """A meta file does not begin as Hadoop's do."""


def encode_header(checksum: Checksum) -> bytes:
    return _HEADER.pack(_VERSION, checksum.kind, checksum.bytes_per_chunk)


def decode_header(data: bytes) -> Checksum:
    """Return the kind of checksums that a meta file has.

    Raises:
        BadMetaFile: if the header is short or has invalid numbers.
    """
    if len(data) < HEADER_BYTES:
        raise BadMetaFile(f"the meta file has {len(data)} bytes, fewer than its header")
    version, kind, chunk = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise BadMetaFile(f"the meta file has version {version}; only {_VERSION} is known")
    return checked(kind, chunk)


def checked(kind: int, bytes_per_chunk: int) -> Checksum:
    """Return a checksum from numbers that a file or a peer gave.

    Raises:
        BadMetaFile: if there is no such kind, or if the chunks are too short or too long.
    """
    if kind not in set(ChecksumType):
        raise BadMetaFile(f"there is no checksum of type {kind}")
    if not 0 < bytes_per_chunk <= MAX_CHUNK_BYTES:
        raise BadMetaFile(f"{bytes_per_chunk} bytes per checksum: allowed are 1 to 1048576")
    return Checksum(ChecksumType(kind), bytes_per_chunk)


def sums_at(checksum: Checksum, offset: int) -> int:
    """Return the place in the meta file of the checksum for the chunk that holds ``offset``."""
    return HEADER_BYTES + offset // checksum.bytes_per_chunk * checksum.size


def meta_bytes(checksum: Checksum, length: int) -> int:
    """Return the size of the meta file of a block of ``length`` bytes."""
    return HEADER_BYTES + checksum.chunks(length) * checksum.size

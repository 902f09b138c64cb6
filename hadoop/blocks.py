"""Blocks as DataNodes and their clients name them, and how their bytes are checked.  Pure."""

from enum import IntEnum
from typing import NewType

from ha.record import dataclass

BlockId = NewType("BlockId", int)
GenerationStamp = NewType("GenerationStamp", int)
PoolId = NewType("PoolId", str)


class ChecksumType(IntEnum):
    """How chunks are checked; the numbers are those in meta files and on the wire."""

    NULL = 0
    CRC32 = 1
    CRC32C = 2


@dataclass(frozen=True, slots=True)
class Checksum:
    """The checksums of one replica."""

    kind: ChecksumType = ChecksumType.CRC32C
    bytes_per_chunk: int = 512

    @property
    def size(self) -> int:
        return 0 if self.kind is ChecksumType.NULL else 4

    def chunks(self, length: int) -> int:
        """Return the number of chunks in ``length`` bytes; the last may be short."""
        return -(-length // self.bytes_per_chunk)

    def chunk_start(self, offset: int) -> int:
        """Return the beginning of the chunk that holds this offset."""
        return offset - offset % self.bytes_per_chunk


@dataclass(frozen=True, slots=True)
class Block:
    """A block as it is named: an id, and the generation stamp of its last change."""

    block_id: BlockId
    stamp: GenerationStamp

    def __str__(self) -> str:
        return f"blk_{self.block_id}_{self.stamp}"

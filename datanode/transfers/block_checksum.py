"""The checksum of a whole block, from those of its chunks (``hadoop fs -checksum``)."""

import asyncio
import hashlib
from typing import Final

from datanode.errors import ReplicaRefused
from datanode.replicas.store import Store
from datanode.transfers.send import Stretch, open_stretch
from hadoop.blocks import Block
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.checksums import checksums_of, composite

MAX_SUMS_BYTES: Final = 64 * 1024 * 1024
"""Checksums of one block that are read at once: those of 8 GiB with Hadoop's chunks."""


async def block_checksum(
    store: Store, block: Block, length: int, options: pb.BlockChecksumOptionsProto
) -> pb.OpBlockChecksumResponseProto:
    """Return the checksum of the first ``length`` bytes that readers see (0: of all).

    Raises:
        ReplicaMissing: if there is no such replica.
        ReplicaRefused: if it has more checksums than we hold at once.
        VolumeFailed, OSError: if the disk refuses.
    """
    stretch = await open_stretch(store, block, 0, None)
    try:
        size = min(length or stretch.end, stretch.end)
        checksum = stretch.checksum
        count = checksum.chunks(size) * checksum.size
        if count > MAX_SUMS_BYTES:
            raise ReplicaRefused(
                f"{block} has {count} bytes of checksums; at most {MAX_SUMS_BYTES} are summed up"
            )
        sums = await asyncio.to_thread(_sums, stretch, size)
    finally:
        stretch.files.close()
    kind = options.blockChecksumType
    if kind == pb.BlockChecksumTypeProto.COMPOSITE_CRC:
        whole = await asyncio.to_thread(composite, sums, size, checksum)
    else:
        whole = hashlib.md5(sums, usedforsecurity=False).digest()
    return pb.OpBlockChecksumResponseProto(
        bytesPerCrc=checksum.bytes_per_chunk,
        crcPerBlock=len(sums) // checksum.size if checksum.size else 0,
        blockChecksum=whole,
        crcType=hdfs.ChecksumTypeProto.ValueType(checksum.kind),
        blockChecksumOptions=pb.BlockChecksumOptionsProto(blockChecksumType=kind),
    )


def _sums(stretch: Stretch, length: int) -> bytes:
    sums = stretch.files.read_sums(0, length)
    checksum = stretch.checksum
    start = checksum.chunk_start(length)
    if start == length:
        return sums
    if length == stretch.end:
        return sums[: -checksum.size] + stretch.last_sum if stretch.last_sum else sums
    return sums[: -checksum.size] + checksums_of(
        stretch.files.read(start, length - start), checksum
    )

"""The checksum of a whole block, from those of its chunks (``hadoop fs -checksum``)."""

import hashlib

from namenode_sim.datanode.checksums import checksums_of, composite
from namenode_sim.datanode.model import Block
from namenode_sim.datanode.send import Stretch, open_stretch
from namenode_sim.datanode.store import Store
from namenode_sim.proto import data_transfer_pb2 as pb
from namenode_sim.proto import hdfs_types_pb2 as hdfs


async def block_checksum(
    store: Store, block: Block, length: int, options: pb.BlockChecksumOptionsProto
) -> pb.OpBlockChecksumResponseProto:
    """The checksum of the first ``length`` bytes that readers see (0: of all).

    Raises:
        ReplicaMissing: if there is no such replica.
        VolumeFailed, OSError: if the disk refuses.
    """
    stretch = await open_stretch(store, block, 0, None)
    try:
        size = min(length or stretch.end, stretch.end)
        sums = _sums(stretch, size)
    finally:
        stretch.files.close()
    checksum = stretch.checksum
    kind = options.blockChecksumType
    whole = (
        composite(sums, size, checksum)
        if kind == pb.BlockChecksumTypeProto.COMPOSITE_CRC
        else hashlib.md5(sums, usedforsecurity=False).digest()
    )
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
    if start == length or not checksum.size:
        return sums
    if length == stretch.end:
        return sums[: -checksum.size] + stretch.last_sum if stretch.last_sum else sums
    return sums[: -checksum.size] + checksums_of(
        stretch.files.read(start, length - start), checksum
    )

"""The checksum of a whole file: Hadoop's MD5 of the blocks' MD5s of their chunks' CRCs."""

import hashlib
import struct
from typing import Final

from files.connect import connect
from files.errors import Unreadable, Unsupported
from files.namenodes import Namenodes
from files.read import Reader
from ha.record import dataclass
from hadoop.blocks import ChecksumType
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import block_id_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.packets import Op, encode_op

_MD5_BYTES: Final = 16
_LEAST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """Equal for files of equal bytes in blocks of equal size; ``raw`` as Java writes it."""

    algorithm: str
    raw: bytes


async def file_checksum(namenodes: Namenodes, path: str) -> FileChecksum:
    """Return a file's checksum, as FileChecksumHelper makes it.

    Raises:
        FilesError: if the NameNode refuses, or if no replica of a block gives its part.
    """
    reader = await Reader.open(namenodes, path)
    parts: list[pb.OpBlockChecksumResponseProto] = []
    at = 0
    while at < reader.length:
        block = await reader.block_at(at)
        parts.append(await _of_block(block, reader))
        at = block.offset + block.b.numBytes
    if len({(part.bytesPerCrc, part.crcType) for part in parts}) > 1:
        raise Unsupported(f"{path} has blocks with different kinds of checksums")
    return _join(parts)


def _join(parts: list[pb.OpBlockChecksumResponseProto]) -> FileChecksum:
    sums = b"".join(part.blockChecksum for part in parts)
    # Java sums up its whole buffer, which doubles as it grows, and the zeros behind the MD5s.
    size = _LEAST_BYTES
    while size < len(sums):
        size *= 2
    whole = hashlib.md5(sums.ljust(size, b"\0"), usedforsecurity=False).digest()
    chunk = parts[0].bytesPerCrc if parts else 0
    chunks = parts[0].crcPerBlock if len(parts) > 1 else 0
    kind = ChecksumType(parts[0].crcType) if parts else ChecksumType.CRC32
    raw = struct.pack(">IQ", chunk, chunks) + whole
    return FileChecksum(f"MD5-of-{chunks}MD5-of-{chunk}{kind.name}", raw)


async def _of_block(
    block: hdfs.LocatedBlockProto, reader: Reader
) -> pb.OpBlockChecksumResponseProto:
    header = pb.BaseHeaderProto(block=block.b, token=block.blockToken)
    request = encode_op(Op.BLOCK_CHECKSUM, pb.OpBlockChecksumProto(header=header))
    limits, found = reader.limits, []
    for node in block.locs:
        peer = None
        try:
            peer = await connect(
                reader.namenodes, node.id, block.blockToken, seconds=limits.connect_seconds
            )
            await peer.send(request, seconds=limits.packet_seconds)
            answer = await peer.read_message(pb.BlockOpResponseProto, seconds=limits.packet_seconds)
        except (PeerLost, MalformedTransfer) as problem:
            found.append(str(problem))
        else:
            if len(answer.checksumResponse.blockChecksum) == _MD5_BYTES:
                return answer.checksumResponse
            found.append(f"{peer.name} refuses: {answer.message[:500]}")
        finally:
            if peer is not None:
                peer.close()
    number = block_id_of(block.b.blockId)
    raise Unreadable(
        f"{reader.path} has no checksum: no replica of block {number} gave its part "
        f"({'; '.join(found) or 'no DataNode has one'}). → nnha explain block {number}"
    )

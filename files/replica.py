"""One replica of a block, asked of its DataNode: its bytes with their checksums, its length."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from files.connect import DataKeys, connect
from ha.conf.topology import HostPort
from ha.record import dataclass
from ha.rpc.client import call_once
from ha.rpc.java_names import CLIENT_DATANODE_PROTOCOL
from hadoop.blocks import Checksum, ChecksumType
from hadoop.proto import client_datanode_pb2 as datanode
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import address_of, block_id_of
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.checksums import verify
from hadoop.wire.errors import DataNodeError, MalformedTransfer
from hadoop.wire.packets import Op, Packet, encode_op
from hadoop.wire.peer import Peer


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How patient a reader is, in seconds."""

    connect_seconds: float = 5.0
    packet_seconds: float = 20.0
    """Without a packet for this time, the next replica is read."""
    rounds: int = 3
    """How often all replicas of a block are tried in vain."""
    round_seconds: float = 1.0
    """Between two rounds, and longer each time."""


@dataclass(frozen=True, slots=True)
class ReplicaRead:
    """The bytes from ``offset`` to ``end`` in a block, of its replica on ``node``."""

    block: hdfs.LocatedBlockProto
    node: hdfs.DatanodeInfoProto
    offset: int
    end: int


async def parts(
    keys: DataKeys, read: ReplicaRead, client: str, limits: ReadLimits, budget: ByteBudget
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes in order, each checked against its checksum.

    Raises:
        PeerLost: if the DataNode goes away, or sends nothing for too long.
        DataNodeError: if it refuses, or if the bytes are not those that it says.
        FilesError: if no NameNode gives a key.
    """
    peer = await connect(
        keys, read.node.id, read.block.blockToken, seconds=limits.connect_seconds, budget=budget
    )
    try:
        request = encode_op(Op.READ_BLOCK, _request(read, client))
        await peer.send(request, seconds=limits.packet_seconds)
        answer = await peer.read_message(pb.BlockOpResponseProto, seconds=limits.packet_seconds)
        if answer.status != pb.Status.SUCCESS:
            raise DataNodeError(f"{peer.name} refuses: {answer.message[:500]}")
        async with aclosing(_packets(peer, limits.packet_seconds)) as packets:
            async for part in _read_checked(read, answer.readOpChecksumInfo, packets):
                yield part
        done = pb.ClientReadStatusProto(status=pb.Status.CHECKSUM_OK)
        await peer.send_message(done, seconds=limits.packet_seconds)
    finally:
        peer.close()


def _request(read: ReplicaRead, client: str) -> pb.OpReadBlockProto:
    header = pb.BaseHeaderProto(block=read.block.b, token=read.block.blockToken)
    return pb.OpReadBlockProto(
        header=pb.ClientOperationHeaderProto(baseHeader=header, clientName=client),
        offset=read.offset,
        len=read.end - read.offset,
    )


async def _packets(peer: Peer, seconds: float) -> AsyncGenerator[Packet, None]:
    while True:
        for packet in (await peer.read_packets(seconds=seconds)).packets:
            yield packet
            if packet.header.last:
                return


async def _read_checked(
    read: ReplicaRead, told: pb.ReadOpChecksumInfoProto, packets: AsyncIterator[Packet]
) -> AsyncGenerator[bytes, None]:
    """Yield what was asked for out of whole chunks, which may begin before and end behind it."""
    checksum = _checksum(told.checksum)
    at, what = told.chunkOffset, f"block {block_id_of(read.block.b.blockId)}"
    if not checksum.chunk_start(read.offset) <= at <= read.offset:
        raise MalformedTransfer(f"bytes from {at} where those from {read.offset} were asked for")
    async for packet in packets:
        header, data = packet.header, bytes(packet.data)
        if header.last:
            break
        if header.offset != at or len(packet.sums) != checksum.chunks(len(data)) * checksum.size:
            raise MalformedTransfer(f"a packet at {header.offset} that does not follow {at}")
        if checksum.size:
            verify(data, packet.sums, checksum, at=at, what=f"{what} of {address_of(read.node)}")
        part = data[max(0, read.offset - at) : max(0, read.end - at)]
        at = header.end
        if part:
            yield part
    if at < read.end:
        raise MalformedTransfer(f"the bytes end at {at}, before {read.end}")


def _checksum(told: pb.ChecksumProto) -> Checksum:
    if not 0 < told.bytesPerChecksum <= 1 << 24:
        raise MalformedTransfer(f"checksums of {told.bytesPerChecksum} bytes each")
    return Checksum(ChecksumType(told.type), told.bytesPerChecksum)


async def visible_length(
    block: hdfs.ExtendedBlockProto, node: hdfs.DatanodeInfoProto, limits: ReadLimits
) -> int:
    """Return how much of a block that is being written readers see at a DataNode.

    Raises:
        RemoteFault: if it does not have the replica, or refuses.
        RpcError: if it does not answer.
    """
    answer = await call_once(
        HostPort(node.id.ipAddr, node.id.ipcPort),
        CLIENT_DATANODE_PROTOCOL,
        "getReplicaVisibleLength",
        datanode.GetReplicaVisibleLengthRequestProto(block=block),
        datanode.GetReplicaVisibleLengthResponseProto,
        deadline_seconds=limits.connect_seconds,
    )
    return answer.length

"""A client of DataNodes for tests: writes through a pipeline, reads and checks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import Message

from datanode.replicas.store import Store
from datanode.transfers.balance_throttle import MoveRules
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.transfer import DamagedSource
from datanode.transfers.xceiver import XceiverServer
from hadoop.block_tokens import NO_TOKEN
from hadoop.blocks import Block, Checksum, ChecksumType
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire import handshake
from hadoop.wire.block_messages import extended
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.checksums import checksums_of, verify
from hadoop.wire.errors import ChecksumMismatch
from hadoop.wire.packets import Op, PacketHeader, encode_op, encode_packet
from hadoop.wire.peer import Peer, TransferLimits
from tests.datanode.stores import CHECKSUM, POOL, store, volume

SECONDS = 30.0
LIMITS = TransferLimits(operation_seconds=SECONDS, packet_seconds=SECONDS, connect_seconds=SECONDS)
PACKET = 4096
STAGE = pb.OpWriteBlockProto


_CONNECTED: list[Peer] = []
"""Closed with the nodes: what a test leaves open is its subject, not its fault."""


_KEYS: list[hdfs.DataEncryptionKeyProto] = []


def encrypt_by(*keys: hdfs.DataEncryptionKeyProto) -> None:
    """Have all connections from now on encrypted by a key; without one, none."""
    _KEYS[:] = keys


async def connect(port: int, token: hdfs.TokenProto = NO_TOKEN) -> Peer:
    """Connect, with a handshake if there is to be one (``log_in``, ``encrypt_by``)."""
    to = hdfs.DatanodeIDProto(ipAddr="127.0.0.1", xferPort=port)
    key, room = next(iter(_KEYS), None), ByteBudget(1 << 24)
    peer = await handshake.connect(to, token, key=key, seconds=SECONDS, budget=room)
    _CONNECTED.append(peer)
    return peer


async def plain(port: int) -> Peer:
    """Connect without a handshake."""
    peer = await Peer.connect("127.0.0.1", port, seconds=SECONDS)
    _CONNECTED.append(peer)
    return peer


def hang_up() -> None:
    for peer in _CONNECTED:
        peer.abort()
    _CONNECTED.clear()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a DataNode takes and gives blocks."""

    port: int

    @property
    def info(self) -> hdfs.DatanodeInfoProto:
        return hdfs.DatanodeInfoProto(
            id=hdfs.DatanodeIDProto(
                ipAddr="127.0.0.1", hostName="localhost", datanodeUuid=f"uuid-{self.port}",
                xferPort=self.port, infoPort=0, ipcPort=0,
            )
        )  # fmt: skip

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@dataclass(slots=True)
class Node:
    """A DataNode without NameNodes."""

    store: Store
    server: XceiverServer
    place: Place
    suspected: list[Block]


def places(nodes: list[Node]) -> list[Place]:
    return [one.place for one in nodes]


@asynccontextmanager
async def node(
    folder: Path,
    limits: TransferLimits = LIMITS,
    *,
    moves: MoveRules | None = None,
    more: Sequence[str] = (),
    on_damaged_source: Callable[[DamagedSource], None] = lambda _: None,
    access: BlockAccess | None = None,
    port: int = 0,
) -> AsyncIterator[Node]:
    """Run one with a volume on a disk, and one of each type of ``more``."""
    others = [volume(folder / kind, f"DS-{folder.name}-{kind}", kind) for kind in more]
    kept = await store(volume(folder / "disk", f"DS-{folder.name}"), *others)
    suspected = list[Block]()
    server = XceiverServer(
        kept, POOL.pool, limits, moves=moves, uuid=f"uuid-{folder.name}",
        on_suspicion=suspected.append,
        on_damaged_source=on_damaged_source, access=access,
    )  # fmt: skip
    port = await server.start("127.0.0.1", port)
    try:
        yield Node(kept, server, Place(port), suspected)
    finally:
        hang_up()
        await server.stop()
        await kept.volumes.close()


@asynccontextmanager
async def relay(to: Place, spoil: bytes = b"") -> AsyncIterator[tuple[Place, bytearray]]:
    """Pass bytes on and keep them; the first byte behind ``spoil`` is altered on the way back."""
    passed, spoiled = bytearray(), [not spoil]

    async def pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool
    ) -> None:
        try:
            while data := await reader.read(1 << 16):
                passed.extend(data)
                if back and not spoiled[0] and spoil in data:
                    at = data.index(spoil) + len(spoil)
                    data = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
                    spoiled[0] = True
                writer.write(data)
        finally:  # one that reads no more may end with a reset
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", to.port)
        await asyncio.gather(
            pump(reader, outer, back=False), pump(inner, writer, back=True), return_exceptions=True
        )
        for one in (outer, writer):
            one.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Place(server.sockets[0].getsockname()[1]), passed


def header(
    block: Block, length: int = 0, client: str = "test", token: hdfs.TokenProto = NO_TOKEN
) -> pb.ClientOperationHeaderProto:
    base = pb.BaseHeaderProto(block=extended(block, POOL.pool, length), token=token)
    return pb.ClientOperationHeaderProto(baseHeader=base, clientName=client)


class Writing:
    """A pipeline that has been set up."""

    def __init__(self, peer: Peer, set_up: pb.BlockOpResponseProto, offset: int) -> None:
        self.peer, self.set_up = peer, set_up
        self._offset, self._seqno = offset, 0

    async def send(
        self, data: bytes, *, at: int | None = None, sync: bool = False, bad_sum: bool = False
    ) -> int:
        offset = self._offset if at is None else at
        sums = checksums_of(data, CHECKSUM)
        if bad_sum:
            sums = bytes(len(sums))
        head = PacketHeader(offset, self._seqno, last=False, length=len(data), sync=sync)
        await self.peer.send(encode_packet(head, sums, data), seconds=SECONDS)
        self._offset, self._seqno = offset + len(data), self._seqno + 1
        return head.seqno

    async def heartbeat(self) -> None:
        head = PacketHeader(0, -1, last=False, length=0)
        await self.peer.send(encode_packet(head, b"", b""), seconds=SECONDS)

    async def end(self, *, sync: bool = False) -> None:
        head = PacketHeader(self._offset, self._seqno, last=True, length=0, sync=sync)
        await self.peer.send(encode_packet(head, b"", b""), seconds=SECONDS)

    async def ack(self) -> pb.PipelineAckProto:
        return await self.peer.read_message(pb.PipelineAckProto, seconds=SECONDS)

    async def write(self, data: bytes) -> None:
        numbers = [await self.send(data[at : at + PACKET]) for at in range(0, len(data), PACKET)]
        for number in numbers:
            answer = await self.ack()
            assert (answer.seqno, set(answer.reply)) == (number, {pb.Status.SUCCESS})

    async def close(self) -> None:
        await self.end()
        answer = await self.ack()
        assert set(answer.reply) == {pb.Status.SUCCESS}
        self.peer.close()


async def begin(
    nodes: Sequence[Place],
    block: Block,
    *,
    stage: STAGE.BlockConstructionStage.ValueType = STAGE.PIPELINE_SETUP_CREATE,
    stamp: int = 0,
    length: int = 0,
    received: int | None = None,
    checksum: Checksum = CHECKSUM,
    client: str = "test",
    size: int = 1 << 20,
    source: Place | None = None,
    pins: Sequence[bool] = (),
    token: hdfs.TokenProto = NO_TOKEN,
) -> Writing:
    """Set up a pipeline through these nodes; ``set_up`` has the answer."""
    peer = await connect(nodes[0].port, token)
    request = pb.OpWriteBlockProto(
        header=header(block, size, client, token),
        targets=[one.info for one in nodes[1:]],
        stage=stage,
        pipelineSize=len(nodes),
        minBytesRcvd=length,
        maxBytesRcvd=length if received is None else received,
        latestGenerationStamp=stamp,
        requestedChecksum=pb.ChecksumProto(
            type=hdfs.ChecksumTypeProto.ValueType(checksum.kind),
            bytesPerChecksum=checksum.bytes_per_chunk,
        ),
        targetStorageTypes=[hdfs.StorageTypeProto.DISK for _ in nodes[1:]],
        targetStorageIds=["" for _ in nodes[1:]],
        pinning=bool(pins and pins[0]),
        targetPinnings=pins[1:],
    )
    if source is not None:
        request.source.CopyFrom(source.info)
    await peer.send(encode_op(Op.WRITE_BLOCK, request), seconds=SECONDS)
    answer = pb.BlockOpResponseProto(status=pb.Status.SUCCESS)
    if client:
        answer = await peer.read_message(pb.BlockOpResponseProto, seconds=SECONDS)
    return Writing(peer, answer, length)


async def write_whole(
    nodes: Sequence[Place], block: Block, data: bytes, token: hdfs.TokenProto = NO_TOKEN
) -> None:
    writing = await begin(nodes, block, token=token)
    assert writing.set_up.status == pb.Status.SUCCESS
    await writing.write(data)
    await writing.close()


class ReadRefused(Exception):
    """The DataNode does not send these bytes."""


async def read(
    of: Place,
    block: Block,
    offset: int,
    length: int,
    *,
    peer: Peer | None = None,
    complain: bool = False,
    token: hdfs.TokenProto = NO_TOKEN,
) -> bytes:
    """Bytes of a block, once they fit their checksums.  ``complain``: else the DataNode hears it.

    Raises:
        ReadRefused: with the DataNode's reason.
        ChecksumMismatch: if they do not fit.
    """
    kept = peer or await connect(of.port, token)
    request = pb.OpReadBlockProto(header=header(block, token=token), offset=offset, len=length)
    await kept.send(encode_op(Op.READ_BLOCK, request), seconds=SECONDS)
    try:
        answer = await kept.read_message(pb.BlockOpResponseProto, seconds=SECONDS)
        if answer.status != pb.Status.SUCCESS:
            raise ReadRefused(answer.message)
        told = answer.readOpChecksumInfo
        checksum = Checksum(ChecksumType(told.checksum.type), told.checksum.bytesPerChecksum)
        found = b""
        ended = False
        while not ended:
            for packet in (await kept.read_packets(seconds=SECONDS)).packets:
                assert packet.header.offset == told.chunkOffset + len(found)
                verify(packet.data, packet.sums, checksum, at=packet.header.offset, what=str(block))
                found += packet.data
                ended = packet.header.last
        done = pb.ClientReadStatusProto(status=pb.Status.CHECKSUM_OK)
        await kept.send_message(done, seconds=SECONDS)
        begin_at = offset - told.chunkOffset
        return found[begin_at : begin_at + length]
    except ChecksumMismatch:
        if complain:
            bad = pb.ClientReadStatusProto(status=pb.Status.ERROR_CHECKSUM)
            await kept.send_message(bad, seconds=SECONDS)
        raise
    finally:
        if peer is None:
            kept.close()


async def ask(
    of: Place, op: Op, request: Message, token: hdfs.TokenProto = NO_TOKEN
) -> pb.BlockOpResponseProto:
    peer = await connect(of.port, token)
    try:
        await peer.send(encode_op(op, request), seconds=SECONDS)
        return await peer.read_message(pb.BlockOpResponseProto, seconds=SECONDS)
    finally:
        peer.close()


async def idle(of: Node) -> None:
    await until(lambda: not of.server.active)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.002)

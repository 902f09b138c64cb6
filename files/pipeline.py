"""A connection to a pipeline of DataNodes that takes the packets of one block."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from files.connect import DataKeys, connect
from files.window import OUT_OF_BAND, Sent, Window, failed_node
from ha.record import dataclass, field
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import address_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import DataNodeError, MalformedTransfer
from hadoop.wire.packets import HEARTBEAT_SEQNO, Op, PacketHeader, encode_op, encode_packet
from hadoop.wire.peer import Peer

_HEARTBEAT: Final = encode_packet(PacketHeader(0, HEARTBEAT_SEQNO, last=False, length=0), b"", b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLimits:
    """How patient a writer is, in seconds, and how much it sends ahead."""

    connect_seconds: float = 10.0
    set_up_seconds: float = 75.0
    """For the answer of a pipeline; longer than its DataNodes wait for each other."""
    ack_seconds: float = 60.0
    node_seconds: float = 5.0
    """More for each DataNode: the one that stands still is accused by the one before it."""
    alive_seconds: float = 20.0
    """Between two signs of life to the pipeline, and renewals of the lease (it lasts 60 s)."""
    window_bytes: Callable[[], int] = lambda: 3 * 1024 * 1024
    """Kept until all DataNodes have them; one packet at least."""
    packet_bytes: int = 0
    """Of a packet, with its checksums, where the NameNode names less."""
    complete_seconds: float = 90.0
    """For enough DataNodes to report the last block of a file."""
    attempts: int = 5
    """Pipelines of a new block that may fail, each without the DataNodes that failed before."""

    def waiting(self, nodes: int) -> float:
        """Return how long an acknowledgement of this number of DataNodes may take."""
        return self.ack_seconds + self.node_seconds * nodes


class NodeFailed(Exception):
    """A DataNode of a pipeline has failed: the one in place ``index``."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


@dataclass(frozen=True, slots=True)
class Place:
    """One storage of a pipeline."""

    node: hdfs.DatanodeInfoProto
    kind: hdfs.StorageTypeProto.ValueType
    storage: str

    def __str__(self) -> str:
        return address_of(self.node)


def places_of(block: hdfs.LocatedBlockProto) -> list[Place]:
    """Return the pipeline that the NameNode has chosen for a block."""
    kinds = list(block.storageTypes) or [hdfs.StorageTypeProto.DISK] * len(block.locs)
    storages = list(block.storageIDs) or [""] * len(block.locs)
    return [Place(*one) for one in zip(block.locs, kinds, storages, strict=True)]


@dataclass(slots=True)
class Pipeline:
    """It has accepted the block; a task of it hears the acknowledgements."""

    peer: Peer
    window: Window
    seconds: float
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _hearing: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self._hearing = asyncio.create_task(self._hear())
        self._hearing.add_done_callback(self._ended)

    @classmethod
    async def open(
        cls,
        keys: DataKeys,
        places: Sequence[Place],
        request: pb.OpWriteBlockProto,
        window: Window,
        limits: WriteLimits,
    ) -> "Pipeline":
        """Connect to the first DataNode, which connects to the next.

        Raises:
            NodeFailed: one of them cannot be had, or refuses.
            FilesError: no NameNode gives a key.
        """
        first = places[0].node.id
        seconds = limits.waiting(len(places))
        peer = None
        try:
            token = request.header.baseHeader.token
            peer = await connect(keys, first, token, seconds=limits.connect_seconds)
            await peer.send(encode_op(Op.WRITE_BLOCK, request), seconds=seconds)
            answer = await peer.read_message(
                pb.BlockOpResponseProto,
                seconds=limits.set_up_seconds + limits.node_seconds * len(places),
            )
        except BaseException as problem:
            if peer is not None:
                peer.abort()
            if isinstance(problem, PeerLost | MalformedTransfer):
                raise NodeFailed(0, str(problem)) from problem
            raise
        if answer.status != pb.Status.SUCCESS:
            peer.abort()
            bad = [str(place) for place in places]
            index = bad.index(answer.firstBadLink) if answer.firstBadLink in bad else 0
            raise NodeFailed(index, f"{bad[index]} refuses: {answer.message[:500]}")
        return cls(peer, window, seconds)

    async def send(self, packet: Sent) -> None:
        """Send a packet that is in the window; raise ``NodeFailed``."""
        try:
            self.peer.begin_send(packet.raw)
            await self.peer.flushed(seconds=self.seconds)
        except PeerLost as problem:
            await asyncio.wait([self._hearing], timeout=self.seconds)  # it may know who it was
            self._raise_failure()
            raise NodeFailed(0, str(problem)) from problem

    async def until(self, reached: Callable[[Window], bool]) -> None:
        """Wait until acknowledgements have brought the window there; raise ``NodeFailed``."""
        while not reached(self.window):
            self._raise_failure()
            self._heard.clear()
            await self._heard.wait()

    def keep_alive(self) -> None:
        """Send a sign of life, which is acknowledged, too."""
        self.peer.begin_send(_HEARTBEAT)

    async def close(self) -> None:
        """Hang up."""
        self.peer.abort()
        self._hearing.cancel()
        await asyncio.wait([self._hearing])

    def _raise_failure(self) -> None:
        if self._hearing.done():
            self._hearing.result()

    def _ended(self, hearing: asyncio.Task[None]) -> None:
        self._heard.set()
        _ = hearing.cancelled() or hearing.exception()  # read, even if nothing waits for it

    async def _hear(self) -> None:
        """Take acknowledgements until one accuses a DataNode, or the first one is lost."""
        try:
            while True:
                ack = await self.peer.read_message(pb.PipelineAckProto, seconds=self.seconds)
                bad = failed_node(ack.reply)
                if bad is not None:
                    raise NodeFailed(bad, f"it answered {pb.Status.Name(ack.reply[bad])}")
                if ack.seqno not in (HEARTBEAT_SEQNO, OUT_OF_BAND):
                    self.window.acknowledge(ack.seqno)
                    self._heard.set()
        except (PeerLost, DataNodeError) as problem:
            raise NodeFailed(0, str(problem)) from problem

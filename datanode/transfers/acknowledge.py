"""Acknowledges packets to the client: in order, with what the DataNodes behind us answered.

See docs/reference/datanode.md#acknowledgements.
"""

import asyncio
import contextlib
from typing import Final, Self

from datanode.replicas.store import Store
from ha.record import dataclass
from hadoop.blocks import Block
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import DataNodeError, MalformedTransfer
from hadoop.wire.packets import PacketHeader
from hadoop.wire.peer import Peer

_SUCCESS: Final = pb.Status.SUCCESS
_MOST_DUE: Final = 1024
"""Packets without an acknowledgement; the client itself stops at 80."""
_MAX_REPLIES: Final = 64
_OUT_OF_BAND: Final = -2
"""The number of an acknowledgement that is of no packet."""
_RESTART_SECONDS: Final = 1.5
"""For a client to take the news of a restart (dfs.datanode.oob.timeout-ms)."""


@dataclass(frozen=True, slots=True)
class Due:
    """A packet that is on our disk and not acknowledged yet."""

    header: PacketHeader
    tail: bytes
    status: int


class Acknowledger:
    """Sends the acknowledgements of one write.  Its task waits for those of the next DataNode."""

    def __init__(
        self,
        store: Store,
        block: Block,
        client: Peer | None,
        mirror: Peer | None,
        *,
        seconds: float,
    ) -> None:
        """Prepare to acknowledge to ``client`` (None: send none); ``mirror``: the next DataNode."""
        self._store, self._block = store, block
        self._client, self._mirror = client, mirror
        self._seconds = seconds
        self._due: asyncio.Queue[Due | None] = asyncio.Queue(_MOST_DUE)
        self._task: asyncio.Task[None] | None = None
        self._lost = False

    async def __aenter__(self) -> Self:
        if self._mirror is not None:
            self._task = asyncio.create_task(self._run(), name=f"acknowledge {self._block}")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._task is None:
            return
        if kind is None:
            await self._due.put(None)
            await self._task
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, PeerLost, DataNodeError):
            await self._task

    def mirror_lost(self) -> None:
        """Give up the next DataNode, which takes no more packets."""
        self._lost = True
        if self._mirror is not None:
            self._mirror.abort()

    async def announce_restart(self) -> None:
        """Let the client know that this DataNode is back soon; raises ``PeerLost``."""
        if self._client is not None:
            ack = _acknowledgement(_OUT_OF_BAND, [pb.Status.OOB_RESTART])
            await self._client.send_message(ack, seconds=_RESTART_SECONDS)

    async def add(self, due: Due) -> None:
        """Acknowledge, in its turn, a packet that is on our disk.

        Raises:
            PeerLost: if the client does not take its acknowledgement.
        """
        if self._client is None:
            return
        if self._task is None:
            await self._send(due, [])
            return
        if self._task.done():
            self._task.result()  # says why
        await self._due.put(due)

    async def _run(self) -> None:
        try:
            while (due := await self._due.get()) is not None:
                await self._send(due, await self._downstream(due.header))
        finally:
            while not self._due.empty():  # an ``add`` that waits for room would wait for ever
                self._due.get_nowait()

    async def _downstream(self, header: PacketHeader) -> list[int]:
        """Return the replies of the DataNodes behind us: ERROR if the next one is lost."""
        if self._lost:
            return [pb.Status.ERROR]
        assert self._mirror is not None
        try:
            ack = await self._mirror.read_message(pb.PipelineAckProto, seconds=self._seconds)
            while ack.seqno == _OUT_OF_BAND and len(ack.reply) < _MAX_REPLIES:
                assert self._client is not None, "without a client nothing is acknowledged"
                relayed = _acknowledgement(_OUT_OF_BAND, [pb.Status.SUCCESS, *ack.reply])
                await self._client.send_message(relayed, seconds=self._seconds)
                ack = await self._mirror.read_message(pb.PipelineAckProto, seconds=self._seconds)
        except (PeerLost, MalformedTransfer):
            self._lost = True
            return [pb.Status.ERROR]
        if ack.seqno != header.seqno or not 0 < len(ack.reply) <= _MAX_REPLIES:
            self._lost = True
            return [pb.Status.ERROR]
        return list(ack.reply)

    async def _send(self, due: Due, downstream: list[int]) -> None:
        replies = [due.status, *downstream]
        header = due.header
        if header.length and replies.count(_SUCCESS) == len(replies):
            self._store.acknowledged(self._block, header.end, due.tail)
        assert self._client is not None
        await self._client.send_soon(_acknowledgement(header.seqno, replies), seconds=self._seconds)


def _acknowledgement(seqno: int, replies: list[int]) -> pb.PipelineAckProto:
    ack = pb.PipelineAckProto(seqno=seqno, flag=replies)
    ack.reply.extend(pb.Status.ValueType(reply) for reply in replies)
    return ack

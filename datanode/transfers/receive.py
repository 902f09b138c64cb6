"""Takes a block in: from a client or a DataNode, onto the disk, on to the next DataNode.

See docs/reference/datanode.md#packets-of-a-write.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

import structlog

from datanode import errors
from datanode.model import Replica, StorageId
from datanode.replicas.moving import pin
from datanode.replicas.operations import Complete, OpenCopy
from datanode.replicas.store import Store
from datanode.replicas.volumes import FULL
from datanode.transfers.acknowledge import Acknowledger, Due
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.block_writer import BlockWriter
from datanode.transfers.send import Paced
from datanode.transfers.write_plan import WritePlan
from ha.record import dataclass
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import address_of
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch, DataNodeError, MalformedTransfer
from hadoop.wire.packets import Op, Packet, PacketHeader, encode_op
from hadoop.wire.peer import Peer, TransferLimits

log = structlog.get_logger()

_SUCCESS: Final = pb.Status.SUCCESS
_ERROR: Final = pb.Status.ERROR


@dataclass(frozen=True, slots=True)
class Move:
    """A replica comes for a balancer: ``hint`` may lose its own; ``paced`` bounds its speed."""

    hint: str
    paced: Paced


class Receiver:
    """One write, from its set-up to its end."""

    def __init__(
        self,
        store: Store,
        plan: WritePlan,
        peer: Peer,
        limits: TransferLimits,
        access: BlockAccess,
        *,
        move: Move | None = None,
        pins: bool = False,
    ) -> None:
        """``access`` connects to the next DataNode.  ``pins``: the replica is to stay here."""
        self._store, self._plan, self._peer, self._limits = store, plan, peer, limits
        self._move, self._pins, self._access = move, pins, access
        self._seconds = limits.waiting(len(plan.request.targets))
        self.bytes_taken = 0
        self._disk_is_full = False
        self._acknowledger: Acknowledger | None = None

    async def announce_restart(self) -> None:
        """Let the client of a write know that this DataNode is back soon; raises ``PeerLost``."""
        if self._acknowledger is not None:
            await self._acknowledger.announce_restart()

    async def run(self) -> None:
        """Carry the write out; the connection is of no more use afterwards.

        Raises:
            PeerLost: if the other side goes away; what has come stays.
            DataNodeError: if the write is refused, or cannot go on.
        """
        try:
            replica = await self._set_up()
        except (DataNodeError, OSError) as refusal:
            await self._answer(_ERROR, message=str(refusal))
            raise
        try:
            async with self._mirror() as mirror:
                if self._plan.without_data:
                    return
                await self._take_packets(replica, mirror)
        finally:
            self._store.end_writing(replica.block.block_id)
            with contextlib.suppress(DataNodeError):
                if not self._plan.from_client:
                    await self._store.discard(replica.block)
                elif self._disk_is_full:
                    await self._store.discard_unacknowledged(replica.block)

    async def _set_up(self) -> Replica:
        plan, request = self._plan, self._plan.request
        storage = StorageId("")
        if plan.is_new:
            storage = self._store.volumes.choose(
                request.header.baseHeader.block.numBytes,
                hdfs.StorageTypeProto.Name(request.storageType),
                request.storageId,
                only_type=self._move is not None,
            )
        operation = plan.set_up(storage)
        return await self._store.perform(operation, plan.checksum, to_write=True)

    @contextlib.asynccontextmanager
    async def _mirror(self) -> AsyncIterator[Peer | None]:
        """Yield the next DataNode, set up, or None; the client has its answer by then."""
        target = self._plan.next_target
        mirror, said = None, pb.BlockOpResponseProto(status=_SUCCESS)
        if target is not None:
            try:
                mirror, said = await self._set_up_mirror(target)
            except (PeerLost, MalformedTransfer) as problem:
                bad_link = address_of(target)
                log.warning("datanode.mirror_lost", target=bad_link, why=str(problem))
                said = pb.BlockOpResponseProto(
                    status=_ERROR, firstBadLink=bad_link, message=str(problem)
                )
        try:
            await self._answer(said.status, bad_link=said.firstBadLink, message=said.message)
            if self._plan.from_client and said.status != _SUCCESS:
                raise errors.ReplicaRefused(
                    f"the pipeline ends at {said.firstBadLink}: {said.message}"
                )
            yield mirror
        finally:
            if mirror is not None:
                mirror.close()

    async def _set_up_mirror(
        self, target: hdfs.DatanodeInfoProto
    ) -> tuple[Peer, pb.BlockOpResponseProto]:
        """Connect to the next DataNode, and return with it what it answers for a client.

        Raises:
            PeerLost, MalformedTransfer: it cannot be had, and no connection is left.
        """
        seconds = self._limits.connect_seconds + self._limits.downstream_seconds
        request = self._plan.for_next()
        token = request.header.baseHeader.token
        mirror = await self._access.connect(target.id, token, seconds=seconds)
        said = pb.BlockOpResponseProto(status=_SUCCESS)
        try:
            await mirror.send(encode_op(Op.WRITE_BLOCK, request), seconds=self._seconds)
            if self._plan.from_client:
                said = await mirror.read_message(pb.BlockOpResponseProto, seconds=self._seconds)
        except BaseException:
            mirror.abort()
            raise
        if said.status != _SUCCESS and not said.firstBadLink:
            said.firstBadLink = address_of(target)
        return mirror, said

    async def _answer(self, status: int, *, bad_link: str = "", message: str = "") -> None:
        """Send the outcome; a copy gets no answer at all, a transfer one when it is whole."""
        if not self._plan.from_client and (
            status == _SUCCESS or not self._plan.request.header.clientName
        ):
            return
        answer = pb.BlockOpResponseProto(status=pb.Status.ValueType(status), firstBadLink=bad_link)
        if message:
            answer.message = message
        await self._peer.send_message(answer, seconds=self._seconds)

    async def _take_packets(self, replica: Replica, mirror: Peer | None) -> None:
        files = await self._store.open(replica, writable=True)
        try:
            writer = BlockWriter(
                self._store,
                replica,
                files,
                self._plan.checksum,
                checks=mirror is None or not self._plan.from_client,
            )
            self._acknowledger = acknowledger = Acknowledger(
                self._store,
                replica.block,
                self._peer if self._plan.from_client else None,
                mirror if self._plan.from_client else None,
                seconds=self._seconds,
            )
            async with acknowledger:
                await self._packets(writer, mirror, acknowledger)
        finally:
            files.close()
        if self._plan.is_transfer:
            done = pb.BlockOpResponseProto(status=_SUCCESS)
            await self._peer.send_message(done, seconds=self._seconds)

    async def _packets(
        self, writer: BlockWriter, mirror: Peer | None, acknowledger: Acknowledger
    ) -> None:
        ended = False
        while not ended:
            batch = await self._peer.read_packets(seconds=self._seconds)
            if self._move is not None:
                await self._move.paced(sum(one.header.length for one in batch.packets))
            if mirror is not None:
                mirror.begin_send(batch.raw)
            try:
                ended = await self._write(writer, batch.packets, acknowledger)
            except OSError as problem:
                self._disk_is_full = problem.errno in FULL
                replica = self._store.find(writer.block)
                await self._store.volumes.suspect(replica.storage, problem)
                raise DataNodeError(f"{writer.block} cannot be written: {problem}") from problem
            if mirror is not None:
                try:
                    await mirror.flushed(seconds=self._seconds)
                except PeerLost as problem:
                    # The client hears of it with the next acknowledgement, and decides.
                    log.warning("datanode.mirror_lost", block=str(writer.block), why=str(problem))
                    acknowledger.mirror_lost()
                    mirror = None

    async def _write(
        self, writer: BlockWriter, packets: Sequence[Packet], acknowledger: Acknowledger
    ) -> bool:
        """Write packets, and return whether the block is complete."""
        due: list[Due] = []
        for packet in packets:
            header = packet.header
            self.bytes_taken += header.length
            try:
                tail = writer.take(packet) if header.length else b""
            except DataNodeError as problem:
                await _written(writer, due, acknowledger)
                if isinstance(problem, ChecksumMismatch):
                    await acknowledger.add(Due(header, b"", pb.Status.ERROR_CHECKSUM))
                raise
            if header.last or header.sync:
                await _written(writer, due, acknowledger)
                due = []
                await self._settle(writer, header)
            due.append(Due(header, tail, _SUCCESS))
            if header.last:
                break
        await _written(writer, due, acknowledger)
        return packets[-1].header.last

    async def _settle(self, writer: BlockWriter, header: PacketHeader) -> None:
        """Finish or sync what a packet requires before it may be acknowledged."""
        if header.last:
            writer.finish(header)
        if header.sync:
            await writer.sync()
        if header.last:
            hint = "" if self._move is None else self._move.hint
            block = writer.block
            ending = OpenCopy(block) if self._plan.opens else Complete(block, hint)
            replica = await self._store.perform(ending)
            if self._pins:
                await pin(self._store, replica)
            if header.sync:
                await self._store.sync_names(replica)


async def _written(writer: BlockWriter, due: Sequence[Due], acknowledger: Acknowledger) -> None:
    writer.flush()
    for one in due:
        await acknowledger.add(one)

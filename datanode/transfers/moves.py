"""Moves of replicas between DataNodes and volumes, as Hadoop's Balancer and Mover ask for them.

See docs/reference/datanode.md#moves.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog

from datanode.errors import ReplicaMissing
from datanode.metrics import BYTES_READ, BYTES_WRITTEN
from datanode.model import Finalized, StorageId
from datanode.replicas.moving import is_pinned, move
from datanode.replicas.store import Store
from datanode.transfers.balance_throttle import BalanceThrottle, MoveRefused, MoveRules
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.receive import Move, Receiver
from datanode.transfers.send import open_stretch, opening, send_stretch
from datanode.transfers.transfer import DamagedSource
from datanode.transfers.write_plan import write_plan
from ha.rpc.protocol import Call, Method
from hadoop.block_tokens import Mode, TokenRefused
from hadoop.blocks import Block, PoolId
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import checked_block
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.connection import PeerLost
from hadoop.wire.errors import ChecksumMismatch, DataNodeError, MalformedTransfer
from hadoop.wire.packets import Op, encode_op
from hadoop.wire.peer import Peer, TransferLimits

log = structlog.get_logger()

_RELEASED: Final = b"\x00d"
"""What the source of a replica sends once it counts the move no more (Java's writeChar)."""


class Moves:
    """Both ends of a move: ``copy`` at its source, ``replace`` at its target.

    ``uuid`` is this DataNode's; packets are taken within the ``budget``.  The callbacks are those
    of ``XceiverServer``.
    """

    def __init__(  # noqa: PLR0913 - what both ends of a move need
        self,
        store: Store,
        pool: PoolId,
        limits: TransferLimits,
        rules: MoveRules,
        uuid: str,
        *,
        budget: ByteBudget,
        on_suspicion: Callable[[Block], None],
        on_damaged_source: Callable[[DamagedSource], None],
        access: BlockAccess,
    ) -> None:
        self._store, self._pool, self._limits, self._uuid = store, pool, limits, uuid
        self._on_suspicion, self._on_damaged_source = on_suspicion, on_damaged_source
        self._access = access
        self.rules, self._budget = rules, budget
        self.throttle = BalanceThrottle(rules)

    async def copy(self, request: pb.OpCopyBlockProto, peer: Peer) -> None:
        """Send a whole replica to the DataNode that asks for it.

        Raises:
            MoveRefused: nothing was sent.
            DataNodeError, PeerLost, OSError: the connection is of no more use.
        """
        block = self._block(request.header, Mode.COPY)
        replica = self._whole(block)
        what = f"Not able to copy block {block.block_id} to {peer.name}"
        try:
            pinned = self.rules.pinning and await is_pinned(self._store, replica)
        except (DataNodeError, OSError) as problem:
            raise self._unreadable(block, what, problem) from problem
        if pinned:
            raise MoveRefused(f"{what} because it's pinned ", pb.Status.ERROR_BLOCK_PINNED)
        with self.throttle.slot(what):
            try:
                stretch = await open_stretch(self._store, block, 0, None)
            except (DataNodeError, OSError) as problem:
                raise self._unreadable(block, what, problem) from problem
            seconds = self._limits.packet_seconds
            try:
                await peer.send_message(opening(stretch), seconds=seconds)
                await send_stretch(peer, stretch, seconds=seconds, paced=self.throttle.passed)
            except OSError:
                self._on_suspicion(block)
                raise
            finally:
                stretch.files.close()
        BYTES_READ.inc(stretch.end)
        await peer.send(_RELEASED, seconds=seconds)

    async def replace(self, request: pb.OpReplaceBlockProto, peer: Peer) -> None:
        """Get a replica from another DataNode, or put our own onto a volume of another type.

        Raises:
            MoveRefused: nothing has changed here.
        """
        block = self._block(request.header, Mode.REPLACE)
        what = f"Not able to receive block {block.block_id} from {peer.name}"
        with self.throttle.slot(what):
            async with self._signs_of_life(peer):
                try:
                    if request.source.id.datanodeUuid == self._uuid:
                        await self._change_volume(request, block)
                    else:
                        await self._fetch(request, block)
                except MoveRefused:
                    raise
                except (DataNodeError, PeerLost, OSError) as problem:
                    raise MoveRefused(
                        f"opReplaceBlock {block} received exception {problem}"
                    ) from problem
        log.info("datanode.block_moved", block=str(block), source=request.source.id.datanodeUuid)

    def methods(self) -> dict[str, Method]:
        """Return what ClientDatanodeProtocol asks about moves."""

        async def bandwidth(
            _: Call, __: client.GetBalancerBandwidthRequestProto
        ) -> client.GetBalancerBandwidthResponseProto:
            found = self.throttle.bytes_per_second
            return client.GetBalancerBandwidthResponseProto(bandwidth=found)

        return {"getBalancerBandwidth": Method(client.GetBalancerBandwidthRequestProto, bandwidth)}

    def _block(self, header: pb.BaseHeaderProto, mode: Mode) -> Block:
        try:
            self._access.check(header, mode)
            return checked_block(header.block, self._pool)
        except MalformedTransfer as problem:
            raise MoveRefused(str(problem), pb.Status.ERROR_INVALID) from problem
        except TokenRefused as refusal:
            raise MoveRefused(str(refusal), pb.Status.ERROR_ACCESS_TOKEN) from refusal

    def _unreadable(self, block: Block, what: str, problem: Exception) -> MoveRefused:
        """Have the replica scanned, and return the refusal."""
        self._on_suspicion(block)
        return MoveRefused(f"{what}: {problem}")

    def _whole(self, block: Block) -> Finalized:
        try:
            replica = self._store.find(block)
        except ReplicaMissing as missing:
            raise MoveRefused(str(missing)) from missing
        if not isinstance(replica, Finalized) or replica.block != block:
            raise MoveRefused(
                f"{block} is not whole here: {replica.block} is {type(replica).__name__}"
            )
        return replica

    async def _change_volume(self, request: pb.OpReplaceBlockProto, block: Block) -> None:
        replica = self._whole(block)
        length = request.header.block.numBytes
        if replica.length != length:
            raise MoveRefused(
                f"Corrupted replica {block} with a length of {replica.length} expected length is "
                f"{length}"
            )
        kind = hdfs.StorageTypeProto.Name(request.storageType)
        wish = StorageId(request.storageId)
        try:
            await move(self._store, replica, kind, wish, paced=self.throttle.passed)
        except (ChecksumMismatch, ReplicaMissing):
            self._on_suspicion(block)
            raise

    async def _fetch(self, request: pb.OpReplaceBlockProto, block: Block) -> None:
        source, limits = request.source.id, self._limits
        proxy = await self._access.connect(
            source, request.header.token, seconds=limits.connect_seconds, budget=self._budget
        )
        try:
            asked = pb.OpCopyBlockProto(header=request.header)
            await proxy.send(encode_op(Op.COPY_BLOCK, asked), seconds=limits.packet_seconds)
            answer = await proxy.read_message(
                pb.BlockOpResponseProto, seconds=limits.packet_seconds
            )
            if answer.status != pb.Status.SUCCESS:
                pinned = answer.status == pb.Status.ERROR_BLOCK_PINNED
                raise MoveRefused(
                    f"opReplaceBlock {block} received exception {proxy.name} refused: "
                    f"{answer.message}",
                    pb.Status.ERROR_BLOCK_PINNED if pinned else pb.Status.ERROR,
                )
            await self._take(request, block, answer.readOpChecksumInfo.checksum, proxy)
            with suppress(PeerLost):  # the replica is here, whatever becomes of its source
                await proxy.read(len(_RELEASED), seconds=limits.packet_seconds)
        finally:
            proxy.abort()

    async def _take(
        self, request: pb.OpReplaceBlockProto, block: Block, checksum: pb.ChecksumProto, proxy: Peer
    ) -> None:
        length = request.header.block.numBytes
        written = pb.OpWriteBlockProto(
            header=pb.ClientOperationHeaderProto(baseHeader=request.header, clientName=""),
            stage=pb.OpWriteBlockProto.PIPELINE_SETUP_CREATE,
            pipelineSize=0,
            minBytesRcvd=0,
            maxBytesRcvd=0,
            latestGenerationStamp=0,
            requestedChecksum=checksum,
            storageType=request.storageType,
            storageId=request.storageId,
        )
        receiver = Receiver(
            self._store,
            write_plan(written, self._pool),
            proxy,
            self._limits,
            self._access,
            move=Move(request.delHint, self.throttle.passed),
        )
        try:
            await receiver.run()
        except ChecksumMismatch:
            self._on_damaged_source(DamagedSource(block, length, request.source.id))
            raise
        finally:
            BYTES_WRITTEN.inc(receiver.bytes_taken)

    @asynccontextmanager
    async def _signs_of_life(self, peer: Peer) -> AsyncIterator[None]:
        """Let the caller know from time to time that the move goes on."""
        task = asyncio.create_task(self._show_life(peer))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _show_life(self, peer: Peer) -> None:
        seconds = self._limits.packet_seconds
        alive = pb.BlockOpResponseProto(status=pb.Status.IN_PROGRESS)
        with suppress(PeerLost):  # the answer at the end finds it out, too
            while True:
                await asyncio.sleep(seconds / 2)
                await peer.send_message(alive, seconds=seconds)

"""Writes one block to a pipeline of DataNodes, and goes on without those that fail."""

from collections.abc import Callable
from typing import Final

import structlog

from files.errors import Unwritable
from files.namenodes import Namenodes
from files.pipeline import NodeFailed, Pipeline, Place, WriteLimits
from files.window import Sent, Window
from ha.record import dataclass, field
from hadoop.blocks import Checksum, ChecksumType
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import block_id_of
from hadoop.wire.checksums import checksums_of
from hadoop.wire.packets import PacketHeader, encode_packet

log = structlog.get_logger()

Stage = pb.OpWriteBlockProto
_RECOVERY: Final = {
    Stage.PIPELINE_SETUP_APPEND: Stage.PIPELINE_SETUP_APPEND_RECOVERY,
    Stage.DATA_STREAMING: Stage.PIPELINE_SETUP_STREAMING_RECOVERY,
    Stage.PIPELINE_CLOSE: Stage.PIPELINE_CLOSE_RECOVERY,
}
"""How a pipeline goes on, by what it was doing when it failed."""
_PACKET_HEADER_BYTES: Final = 33


@dataclass(slots=True)
class OpenFile:
    """A file as its writer has it open, under the lease of ``client``."""

    namenodes: Namenodes
    path: str
    client: str
    status: hdfs.HdfsFileStatusProto
    defaults: hdfs.FsServerDefaultsProto
    limits: WriteLimits
    checksum: Checksum = field(init=False)
    packet_bytes: int = field(init=False)
    """How many bytes go into a packet: whole chunks, which have their checksums with them."""

    def __post_init__(self) -> None:
        told, most = self.defaults, max(self.defaults.writePacketSize, self.limits.packet_bytes)
        chunk = self.checksum = Checksum(ChecksumType(told.checksumType), told.bytesPerChecksum)
        chunks = (most - _PACKET_HEADER_BYTES) // (chunk.bytes_per_chunk + chunk.size)
        self.packet_bytes = max(1, chunks) * chunk.bytes_per_chunk


@dataclass(slots=True)
class BlockWriter:
    """A block that is being written; ``stage`` is what its pipeline is doing."""

    file: OpenFile
    located: hdfs.LocatedBlockProto
    places: list[Place]
    window: Window
    stage: pb.OpWriteBlockProto.BlockConstructionStage.ValueType
    _pipeline: Pipeline | None = None
    _seqno: int = 0

    @property
    def name(self) -> hdfs.ExtendedBlockProto:
        """The block, with as many bytes as all DataNodes have."""
        self.located.b.numBytes = self.window.acked
        return self.located.b

    async def create(self) -> None:
        """Set up the first pipeline of a new block; raise ``NodeFailed``."""
        self._pipeline = await self._open_pipeline(Stage.PIPELINE_SETUP_CREATE, 0)

    async def send(self, data: bytes | bytearray, *, last: bool = False) -> None:
        """Send a packet once the window has room; return when it is on its way.

        Raises:
            Unwritable: if all DataNodes have failed.
            FilesError: if the NameNode refuses that the others go on, or is not there.
        """
        if self._pipeline is None:
            await self._go_on(None)
        count, most = len(data), self.file.limits.window_bytes
        await self._wait(lambda it: not it.waiting or it.sent - it.acked + count <= most())
        header = PacketHeader(self.window.sent, self._seqno, last=last, length=count)
        raw = encode_packet(header, checksums_of(data, self.file.checksum), data)
        packet = Sent(self._seqno, header.end, raw)
        self._seqno += 1
        self.window.add(packet)
        try:
            assert self._pipeline is not None
            await self._pipeline.send(packet)
        except NodeFailed as failure:
            await self._go_on(failure)

    async def end(self) -> None:
        """Have all DataNodes finish the block; raise as ``send``."""
        if self._pipeline is None:
            await self._go_on(None)
        await self._wait(lambda window: not window.waiting)
        self.stage = Stage.PIPELINE_CLOSE
        await self.send(b"", last=True)
        await self._wait(lambda window: not window.waiting)
        await self.hang_up()

    def keep_alive(self) -> None:
        """Send the DataNodes a sign of life, however slowly bytes come."""
        if self._pipeline is not None:
            self._pipeline.keep_alive()

    async def hang_up(self) -> None:
        """Leave the DataNodes; what they have stays."""
        if self._pipeline is not None:
            pipeline, self._pipeline = self._pipeline, None
            await pipeline.close()

    async def _wait(self, reached: Callable[[Window], bool]) -> None:
        while not reached(self.window):
            try:
                assert self._pipeline is not None
                await self._pipeline.until(reached)
            except NodeFailed as failure:
                await self._go_on(failure)

    async def _go_on(self, failure: NodeFailed | None) -> None:
        """Set up a pipeline of the DataNodes that are left, and send again what it may lack.

        Without a ``failure`` it is the first one of an append.
        """
        while True:
            await self.hang_up()
            stage = self.stage
            if failure is not None:
                self._leave_out(failure)
                stage = _RECOVERY[stage]
            try:
                await self._renew(stage)
                if self.stage == Stage.PIPELINE_CLOSE:
                    self.window.waiting.clear()  # the set-up has finished the block
                    return
                self.stage = Stage.DATA_STREAMING
                assert self._pipeline is not None
                for packet in list(self.window.waiting):
                    await self._pipeline.send(packet)
            except NodeFailed as another:
                failure = another
            else:
                return

    def _leave_out(self, failure: NodeFailed) -> None:
        """Take a DataNode out of the pipeline; raise ``Unwritable`` if it was the last."""
        bad = self.places.pop(min(failure.index, len(self.places) - 1))
        path = self.file.path
        log.info("files.datanode_failed", path=path, datanode=str(bad), why=str(failure))
        if not self.places:
            raise Unwritable(
                f"{path} cannot be written on: the DataNodes of block "
                f"{block_id_of(self.located.b.blockId)} have failed, the last of them {bad}: "
                f"{failure}. The file stays open with what all of them had "
                f"({self.window.acked} bytes of this block). → nnha status shows the DataNodes."
            )

    async def _renew(self, stage: pb.OpWriteBlockProto.BlockConstructionStage.ValueType) -> None:
        """Give the block a new stamp with its pipeline: replicas left out keep the old one."""
        file = self.file
        fresh = await file.namenodes.ask(
            calls.UpdateBlockForPipelineResponseProto, block=self.name, clientName=file.client
        )
        self.located.blockToken.CopyFrom(fresh.block.blockToken)
        renewed = hdfs.ExtendedBlockProto()
        renewed.CopyFrom(self.name)
        renewed.generationStamp = fresh.block.b.generationStamp
        self._pipeline = await self._open_pipeline(stage, renewed.generationStamp)
        await file.namenodes.ask(
            calls.UpdatePipelineResponseProto,
            clientName=file.client,
            oldBlock=self.name,
            newBlock=renewed,
            newNodes=[place.node.id for place in self.places],
            storageIDs=[place.storage for place in self.places],
        )
        self.located.b.generationStamp = renewed.generationStamp

    async def _open_pipeline(
        self, stage: pb.OpWriteBlockProto.BlockConstructionStage.ValueType, stamp: int
    ) -> Pipeline:
        file, (first, *rest) = self.file, self.places
        block = hdfs.ExtendedBlockProto()
        block.CopyFrom(self.name)
        block.numBytes = file.status.blocksize
        checksum = pb.ChecksumProto(
            type=file.defaults.checksumType, bytesPerChecksum=file.defaults.bytesPerChecksum
        )
        request = pb.OpWriteBlockProto(
            header=pb.ClientOperationHeaderProto(
                baseHeader=pb.BaseHeaderProto(block=block, token=self.located.blockToken),
                clientName=file.client,
            ),
            targets=[place.node for place in rest],
            stage=stage,
            pipelineSize=len(self.places),
            minBytesRcvd=self.window.acked,
            maxBytesRcvd=self.window.sent,
            latestGenerationStamp=stamp,
            requestedChecksum=checksum,
            storageType=first.kind,
            targetStorageTypes=[place.kind for place in rest],
            storageId=first.storage,
            targetStorageIds=[place.storage for place in rest],
        )
        return await Pipeline.open(file.namenodes, self.places, request, self.window, file.limits)

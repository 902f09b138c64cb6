"""What a WRITE asks for: which operation on which replica, and how it ends.

See docs/reference/datanode.md#stages-of-a-write.

Pure.
"""

from typing import Final, TypeAlias

from datanode.model import StorageId
from datanode.replicas import operations
from datanode.replicas.meta_file import BadMetaFile, checked
from ha.record import dataclass
from hadoop.blocks import Block, Checksum, GenerationStamp, PoolId
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import checked_block, checked_stamp
from hadoop.wire.errors import MalformedTransfer

_Stage = pb.OpWriteBlockProto
MAX_TARGETS: Final = 64

SetUp: TypeAlias = (
    operations.Create
    | operations.CreateCopy
    | operations.RecoverPipeline
    | operations.Append
    | operations.RecoverAppend
    | operations.RecoverClose
)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A checked request to write.

    ``from_client``: a client waits for an answer and for acknowledgements.  ``opens``: the copy is
    of a block that is still being written, and its client goes on with it here.
    """

    request: pb.OpWriteBlockProto
    block: Block
    stage: int
    checksum: Checksum

    @property
    def from_client(self) -> bool:
        return bool(self.request.header.clientName) and not self.is_transfer

    @property
    def is_transfer(self) -> bool:
        """Whether a DataNode sends the replica because a client asked it to."""
        return self.stage in (_Stage.TRANSFER_RBW, _Stage.TRANSFER_FINALIZED)

    @property
    def opens(self) -> bool:
        return self.stage == _Stage.TRANSFER_RBW

    @property
    def without_data(self) -> bool:
        """Whether the set-up is all there is."""
        return self.stage == _Stage.PIPELINE_CLOSE_RECOVERY

    @property
    def is_new(self) -> bool:
        """Whether the replica is made by this write, so that a volume must be chosen."""
        return self.stage == _Stage.PIPELINE_SETUP_CREATE or not self.from_client

    @property
    def next_target(self) -> hdfs.DatanodeInfoProto | None:
        return self.request.targets[0] if self.request.targets else None

    def set_up(self, storage: StorageId) -> SetUp:
        """Return the operation that the request begins with; ``storage`` is for a new replica.

        Raises:
            MalformedTransfer: for a stage that no peer begins with.
        """
        request = self.request
        stamp = GenerationStamp(request.latestGenerationStamp)
        length, size = request.minBytesRcvd, request.header.baseHeader.block.numBytes
        if not self.from_client:
            return operations.CreateCopy(self.block, storage, size, replaces_whole=self.is_transfer)
        match self.stage:
            case _Stage.PIPELINE_SETUP_CREATE:
                return operations.Create(self.block, storage, size, again=stamp != 0)
            case _Stage.PIPELINE_SETUP_STREAMING_RECOVERY:
                return operations.RecoverPipeline(self.block, stamp, length, request.maxBytesRcvd)
            case _Stage.PIPELINE_SETUP_APPEND:
                return operations.Append(self.block, stamp, length)
            case _Stage.PIPELINE_SETUP_APPEND_RECOVERY:
                return operations.RecoverAppend(self.block, stamp, length)
            case _Stage.PIPELINE_CLOSE_RECOVERY:
                return operations.RecoverClose(self.block, stamp, length)
            case _:
                raise MalformedTransfer(f"no write begins with stage {self.stage}")

    def for_next(self) -> pb.OpWriteBlockProto:
        """Return the request to the next DataNode: the same, with one target less."""
        passed = pb.OpWriteBlockProto()
        passed.CopyFrom(self.request)
        for field in ("targets", "targetStorageTypes", "targetStorageIds", "targetPinnings"):
            rest = list(getattr(self.request, field)[1:])
            passed.ClearField(field)
            getattr(passed, field).extend(rest)
        if self.request.targetStorageTypes:
            passed.storageType = self.request.targetStorageTypes[0]
        passed.ClearField("pinning")
        if self.request.targetPinnings:
            passed.pinning = self.request.targetPinnings[0]
        passed.ClearField("source")  # whose bytes we have found whole
        passed.ClearField("storageId")
        if self.request.targetStorageIds:
            passed.storageId = self.request.targetStorageIds[0]
        return passed


def write_plan(request: pb.OpWriteBlockProto, pool: PoolId) -> WritePlan:
    """Check a request to write.

    Raises:
        MalformedTransfer: if it is about another pool, or has numbers that cannot be.
    """
    if len(request.targets) > MAX_TARGETS:
        raise MalformedTransfer(f"{len(request.targets)} targets; at most {MAX_TARGETS}")
    block = checked_block(request.header.baseHeader.block, pool)
    checked_stamp(request.latestGenerationStamp)
    asked = request.requestedChecksum
    try:
        checksum = checked(asked.type, asked.bytesPerChecksum)
    except BadMetaFile as problem:
        raise MalformedTransfer(str(problem)) from problem
    return WritePlan(request, block, request.stage, checksum)

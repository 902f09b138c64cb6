"""Sends a whole replica to other DataNodes, as a client or the NameNode asks."""

from collections.abc import Sequence

from datanode import model
from datanode.errors import ReplicaRefused
from datanode.replicas.store import Store
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.send import Stretch, open_stretch, send_stretch
from ha.record import dataclass
from hadoop.block_tokens import NO_TOKEN
from hadoop.blocks import Block, Checksum, PoolId
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import extended
from hadoop.wire.errors import DataNodeError
from hadoop.wire.packets import Op, encode_op
from hadoop.wire.peer import TransferLimits


@dataclass(frozen=True, slots=True)
class Targets:
    """The DataNodes that get the replica; each passes it on to the next."""

    nodes: Sequence[hdfs.DatanodeInfoProto]
    storage_types: Sequence[hdfs.StorageTypeProto.ValueType]
    storage_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class DamagedSource:
    """A replica that another DataNode, ``holder``, has sent to us with damaged bytes."""

    block: Block
    length: int
    holder: hdfs.DatanodeIDProto


class TransferFailed(DataNodeError):
    """A DataNode did not take the replica."""


async def push(
    store: Store,
    pool: PoolId,
    block: Block,
    targets: Targets,
    limits: TransferLimits,
    *,
    access: BlockAccess,
    client: str = "",
    source: hdfs.DatanodeIDProto | None = None,
) -> None:
    """Send a replica to the first target; with ``client`` wait until it confirms that it has it.

    ``access`` makes the block token that the targets ask for.

    A target that finds the bytes damaged reports to the NameNode that ``source``, this DataNode,
    has a bad replica, if it is given.

    Raises:
        ReplicaMissing, ReplicaRefused: if the replica is not here, or not in a state to be sent.
        TransferFailed: if the target refuses.
        PeerLost: if it goes away.
    """
    if not targets.nodes:
        raise ReplicaRefused(f"{block} is to be sent to nobody")
    replica = store.find(block)
    if not isinstance(replica, model.Finalized) and not (
        client and isinstance(replica, model.BeingWritten)
    ):
        raise ReplicaRefused(f"{replica.block} is not whole, and is not sent")
    stretch = await open_stretch(store, block, 0, None)
    try:
        request = _request(replica, pool, targets, stretch.checksum, client)
        request.header.baseHeader.token.CopyFrom(access.token(block))
        if source is not None:
            request.source.id.CopyFrom(source)
        await _send(request, stretch, targets, limits, access)
    finally:
        stretch.files.close()


async def _send(
    request: pb.OpWriteBlockProto, stretch: Stretch, targets: Targets, limits: TransferLimits,
    access: BlockAccess,
) -> None:  # fmt: skip
    first, token = targets.nodes[0].id, request.header.baseHeader.token
    seconds = limits.waiting(len(targets.nodes))
    peer = await access.connect(first, token, seconds=limits.connect_seconds)
    try:
        await peer.send(encode_op(Op.WRITE_BLOCK, request), seconds=seconds)
        await send_stretch(peer, stretch, seconds=seconds)
        if request.header.clientName:
            answer = await peer.read_message(pb.BlockOpResponseProto, seconds=seconds)
            if answer.status != pb.Status.SUCCESS:
                raise TransferFailed(f"{peer.name} did not take the block: {answer.message}")
    finally:
        peer.close()


def _request(
    replica: model.Replica,
    pool: PoolId,
    targets: Targets,
    checksum: Checksum,
    client: str,
) -> pb.OpWriteBlockProto:
    stage = pb.OpWriteBlockProto.PIPELINE_SETUP_CREATE
    if client:
        stage = (
            pb.OpWriteBlockProto.TRANSFER_FINALIZED
            if isinstance(replica, model.Finalized)
            else pb.OpWriteBlockProto.TRANSFER_RBW
        )
    block = extended(replica.block, pool, model.readable_length(replica))
    request = pb.OpWriteBlockProto(
        header=pb.ClientOperationHeaderProto(
            baseHeader=pb.BaseHeaderProto(block=block, token=NO_TOKEN), clientName=client
        ),
        targets=targets.nodes[1:],
        stage=stage,
        pipelineSize=0,
        minBytesRcvd=0,
        maxBytesRcvd=0,
        latestGenerationStamp=0,
        requestedChecksum=pb.ChecksumProto(
            type=hdfs.ChecksumTypeProto.ValueType(checksum.kind),
            bytesPerChecksum=checksum.bytes_per_chunk,
        ),
        targetStorageTypes=targets.storage_types[1:],
        targetStorageIds=targets.storage_ids[1:],
    )
    if targets.storage_types:
        request.storageType = targets.storage_types[0]
    if targets.storage_ids:
        request.storageId = targets.storage_ids[0]
    return request

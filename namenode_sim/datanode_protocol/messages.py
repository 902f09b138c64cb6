"""The messages of DatanodeProtocol and the words for them; what breaks a limit is refused.

See docs/reference/datanodes.md#limits.
"""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from ha.record import dataclass
from hadoop.block_tokens import NO_TOKEN
from hadoop.longs import signed, unsigned
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import namenode_protocol_pb2 as nn
from namenode_sim.blocks.model import Deleted, ReplicaState, Reported
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.blocks.report_rows import from_buffers, from_longs
from namenode_sim.blocks.reports import Part, in_order, parts
from namenode_sim.client_protocol.words.datanode_info import id_of
from namenode_sim.datanode_protocol.errors import BadMessage
from namenode_sim.datanodes import commands, model
from namenode_sim.datanodes.damage import Damaged
from namenode_sim.datanodes.registry import NamespaceIds, Registration

MAX_NAME_CHARS: Final = 256
MAX_STORAGES: Final = 64
MAX_NEWS: Final = 100_000
MAX_DAMAGED: Final = 1000
MAX_CACHED: Final = 1_000_000
MAX_PORT: Final = 65_535
MAX_ERROR_CHARS: Final = 1024

_News = pb.ReceivedDeletedBlockInfoProto


def registration_of(message: pb.DatanodeRegistrationProto, address: str) -> Registration:
    """Read which DataNode calls; ``address`` is where the connection comes from.

    Raises:
        BadMessage: if a name or a port cannot be one.
    """
    told, stored = message.datanodeID, message.storageInfo
    for what, text in (
        ("uuid", told.datanodeUuid),
        ("host name", told.hostName),
        ("software version", message.softwareVersion),
        ("cluster id", stored.clusterID),
    ):
        _check_name("registration", what, text)
    ports = (told.xferPort, told.infoPort, told.ipcPort, told.infoSecurePort)
    if max(ports) > MAX_PORT:
        raise BadMessage("registration", f"ports {ports}, at most {MAX_PORT}")
    return Registration(
        model.DatanodeId(
            told.datanodeUuid,
            address,
            told.hostName,
            told.xferPort,
            told.infoPort,
            told.ipcPort,
            told.infoSecurePort,
        ),
        NamespaceIds(stored.namespceID, stored.clusterID, stored.cTime),
        message.softwareVersion,
    )


def _check_name(method: str, what: str, text: str) -> None:
    if not text or len(text) > MAX_NAME_CHARS or not text.isprintable():
        raise BadMessage(
            method,
            f"the {what} {text[:MAX_NAME_CHARS]!r} has {len(text)} characters; it must have 1 to "
            f"{MAX_NAME_CHARS}, all printable",
        )


def heartbeat_of(message: pb.HeartbeatRequestProto, of: model.DatanodeId) -> commands.Heartbeat:
    """Read a heartbeat.

    Raises:
        BadMessage: if it has too many storages, or one without a name.
    """
    if len(message.reports) > MAX_STORAGES:
        raise BadMessage("sendHeartbeat", f"{len(message.reports)} storages, most {MAX_STORAGES}")
    return commands.Heartbeat(
        of,
        tuple(map(_storage_report, message.reports)),
        message.xceiverCount,
        message.xmitsInProgress,
        message.failedVolumes,
        signed(message.cacheCapacity),
        signed(message.cacheUsed),
    )


def _storage_report(message: hdfs.StorageReportProto) -> commands.StorageReport:
    _check_name("sendHeartbeat", "storage id", message.storageUuid)
    kind, state = described(message.storage)
    return commands.StorageReport(
        message.storageUuid,
        kind,
        model.StorageState.FAILED if message.failed else state,
        model.Room(
            message.capacity,
            message.dfsUsed,
            message.remaining,
            message.blockPoolUsed,
            message.nonDfsUsed,
        ),
    )


def described(message: hdfs.DatanodeStorageProto) -> tuple[model.StorageType, model.StorageState]:
    """Read what a storage is made of, and whether its replicas count."""
    shared = message.state == hdfs.DatanodeStorageProto.READ_ONLY_SHARED
    state = model.StorageState.READ_ONLY_SHARED if shared else model.StorageState.NORMAL
    return model.StorageType(message.storageType), state


@dataclass(frozen=True, slots=True)
class ListedStorage:
    """A full report of one storage, not decoded yet."""

    uuid: str
    type: model.StorageType
    state: model.StorageState
    message: pb.StorageBlockReportProto

    def decoded(self) -> tuple[int, list[Part]]:
        """Return the number of rows, and the rows by id; work for a thread.

        Raises:
            MalformedReport, BadReport: if they are no rows, or impossible ones.
        """
        message = self.message
        if message.blocks or not message.HasField("numberOfBlocks"):
            rows = from_longs(message.blocks)
        else:
            rows = from_buffers(message.blocksBuffers, message.numberOfBlocks)
        return len(rows), list(parts(in_order(rows)))


def listed_storages(message: pb.BlockReportRequestProto) -> tuple[ListedStorage, ...]:
    """Read the storages of a full report.

    Raises:
        BadMessage: if there are too many, or one has no name.
    """
    if len(message.reports) > MAX_STORAGES:
        raise BadMessage("blockReport", f"{len(message.reports)} storages, at most {MAX_STORAGES}")
    found = []
    for report in message.reports:
        _check_name("blockReport", "storage id", report.storage.storageUuid)
        found.append(ListedStorage(report.storage.storageUuid, *described(report.storage), report))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StorageNews:
    """What came to a storage, is coming, or went.

    ``hints`` are DataNodes, by uuid, that may give up their replicas of blocks which came.
    """

    uuid: str
    type: model.StorageType
    state: model.StorageState
    items: tuple[tuple[int, ReplicaReport], ...]
    hints: tuple[tuple[int, str], ...] = ()


def news_of(message: pb.BlockReceivedAndDeletedRequestProto) -> tuple[StorageNews, ...]:
    """Read an incremental report.

    Raises:
        BadMessage: if it has too many blocks, or what cannot be.
    """
    count = sum(len(one.blocks) for one in message.blocks)
    if count > MAX_NEWS or len(message.blocks) > MAX_STORAGES:
        raise BadMessage(
            "blockReceivedAndDeleted",
            f"{count} blocks on {len(message.blocks)} storages; at most {MAX_NEWS} on "
            f"{MAX_STORAGES}",
        )
    found = []
    for one in message.blocks:
        _check_name("blockReceivedAndDeleted", "storage id", one.storageUuid)
        items, hints = tuple(map(_news, one.blocks)), tuple(_hints(one))
        found.append(StorageNews(one.storageUuid, *described(one.storage), items, hints))
    return tuple(found)


def _hints(message: pb.StorageReceivedDeletedBlocksProto) -> Iterator[tuple[int, str]]:
    for one in message.blocks:
        if one.status == _News.RECEIVED and one.deleteHint:
            yield signed(one.block.blockId), one.deleteHint


def _news(message: pb.ReceivedDeletedBlockInfoProto) -> tuple[int, ReplicaReport]:
    block = message.block
    block_id, stamp = signed(block.blockId), signed(block.genStamp)
    if stamp < 0:
        raise BadMessage("blockReceivedAndDeleted", f"block {block_id} has stamp {stamp}")
    match message.status:
        case _News.DELETED:
            return block_id, Deleted(stamp)
        case _News.RECEIVED:
            length = signed(block.numBytes)
            if length < 0:
                raise BadMessage("blockReceivedAndDeleted", f"block {block_id} is {length} B long")
            return block_id, Reported(ReplicaState.FINALIZED, stamp, length)
        case _:
            # The length is that which the writer plans, so it says nothing.
            return block_id, Reported(ReplicaState.RBW, stamp, 0)


def damaged_of(message: pb.ReportBadBlocksRequestProto) -> tuple[Damaged, ...]:
    """Read which replicas a DataNode found damaged.

    Raises:
        BadMessage: if there are too many.
    """
    found = tuple(
        Damaged(signed(located.b.blockId), signed(located.b.generationStamp), one.id.datanodeUuid)
        for located in message.blocks
        for one in located.locs
    )
    if len(found) > MAX_DAMAGED:
        raise BadMessage("reportBadBlocks", f"{len(found)} replicas, at most {MAX_DAMAGED}")
    return found


def cached_of(message: pb.CacheReportRequestProto) -> frozenset[int]:
    """Read which blocks a DataNode has in memory.

    Raises:
        BadMessage: if there are too many.
    """
    if len(message.blocks) > MAX_CACHED:
        raise BadMessage("cacheReport", f"{len(message.blocks)} blocks, at most {MAX_CACHED}")
    return frozenset(map(signed, message.blocks))


# ---- answers ----

REGISTER: Final = pb.DatanodeCommandProto(
    cmdType=pb.DatanodeCommandProto.RegisterCommand, registerCmd=pb.RegisterCommandProto()
)


def command_message(command: commands.Command, pool: str) -> pb.DatanodeCommandProto:
    match command:
        case commands.Delete():
            return _block_command(
                pb.BlockCommandProto(
                    action=pb.BlockCommandProto.INVALIDATE,
                    blockPoolId=pool,
                    blocks=[_block(number, stamp) for number, stamp in command.replicas],
                )
            )
        case commands.Transfer():
            return _block_command(_transfer(command, pool))
        case commands.Recover():
            return pb.DatanodeCommandProto(
                cmdType=pb.DatanodeCommandProto.BlockRecoveryCommand,
                recoveryCmd=pb.BlockRecoveryCommandProto(
                    blocks=[_recovering(one, pool) for one in command.blocks]
                ),
            )
        case commands.Cache():
            return _memory_command(pb.BlockIdCommandProto.CACHE, command.blocks, pool)
        case commands.Uncache():
            return _memory_command(pb.BlockIdCommandProto.UNCACHE, command.blocks, pool)
        case commands.Bandwidth():
            return pb.DatanodeCommandProto(
                cmdType=pb.DatanodeCommandProto.BalancerBandwidthCommand,
                balancerCmd=pb.BalancerBandwidthCommandProto(bandwidth=command.bytes_per_second),
            )
    assert_never(command)


def key_update(keys: tokens.ExportedBlockKeysProto) -> pb.DatanodeCommandProto:
    return pb.DatanodeCommandProto(
        cmdType=pb.DatanodeCommandProto.KeyUpdateCommand,
        keyUpdateCmd=pb.KeyUpdateCommandProto(keys=keys),
    )


def _block_command(message: pb.BlockCommandProto) -> pb.DatanodeCommandProto:
    return pb.DatanodeCommandProto(cmdType=pb.DatanodeCommandProto.BlockCommand, blkCmd=message)


def _memory_command(
    action: pb.BlockIdCommandProto.Action.ValueType, blocks: tuple[int, ...], pool: str
) -> pb.DatanodeCommandProto:
    message = pb.BlockIdCommandProto(
        action=action, blockPoolId=pool, blockIds=map(unsigned, blocks)
    )
    return pb.DatanodeCommandProto(cmdType=pb.DatanodeCommandProto.BlockIdCommand, blkIdCmd=message)


def _transfer(command: commands.Transfer, pool: str) -> pb.BlockCommandProto:
    message = pb.BlockCommandProto(action=pb.BlockCommandProto.TRANSFER, blockPoolId=pool)
    for copy in command.blocks:
        message.blocks.append(_block(copy.block_id, copy.stamp, copy.length))
        message.targets.append(
            types.DatanodeInfosProto(datanodes=[node_info(node) for node, _ in copy.targets])
        )
        message.targetStorageUuids.append(
            types.StorageUuidsProto(storageUuids=[storage.uuid for _, storage in copy.targets])
        )
        message.targetStorageTypes.append(hdfs.StorageTypesProto(storageTypes=_types(copy.targets)))
    return message


def _types(
    places: Sequence[tuple[model.Node, model.NodeStorage]],
) -> list[hdfs.StorageTypeProto.ValueType]:
    return [hdfs.StorageTypeProto.ValueType(storage.type) for _, storage in places]


def _recovering(recovery: commands.Recovery, pool: str) -> types.RecoveringBlockProto:
    located = hdfs.LocatedBlockProto(
        b=hdfs.ExtendedBlockProto(
            poolId=pool,
            blockId=unsigned(recovery.block_id),
            generationStamp=recovery.stamp,
            numBytes=recovery.length,
        ),
        offset=0,
        corrupt=False,
        blockToken=NO_TOKEN,
        locs=[node_info(node) for node, _ in recovery.places],
        storageIDs=[storage.uuid for _, storage in recovery.places],
        storageTypes=_types(recovery.places),
    )
    message = types.RecoveringBlockProto(newGenStamp=recovery.recovery_stamp, block=located)
    if recovery.cut is not None:
        cut = recovery.cut
        message.truncateBlock.CopyFrom(_block(recovery.becomes, cut.stamp, cut.length))
    return message


def _block(block_id: int, stamp: int, length: int = 0) -> types.BlockProto:
    return types.BlockProto(blockId=unsigned(block_id), genStamp=stamp, numBytes=length)


def node_info(node: model.Node) -> hdfs.DatanodeInfoProto:
    """Describe a DataNode as other DataNodes need to know it."""
    return hdfs.DatanodeInfoProto(id=id_of(node.id), location=node.rack)


def claim_message(*, active: bool, txid: int) -> nn.NNHAStatusHeartbeatProto:
    """Say whether this NameNode is the active, and up to which edit."""
    states = nn.NNHAStatusHeartbeatProto
    return states(state=states.ACTIVE if active else states.STANDBY, txid=txid)

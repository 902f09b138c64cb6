"""DatanodeProtocol: the calls of this DataNode to one NameNode.

See docs/reference/datanode.md#datanodeprotocol.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from google.protobuf.message import Message

from datanode.model import Replica, StorageId
from datanode.namenodes.identity import Identity
from datanode.namenodes.report_rows import encode_rows
from datanode.replicas.store import Announcement
from datanode.replicas.volumes import StorageUse
from datanode.transfers.transfer import DamagedSource
from ha.conf.topology import HostPort
from ha.record import dataclass, field
from ha.rpc.client import Connection, RpcConnection
from ha.rpc.java_names import DATANODE_PROTOCOL
from hadoop.block_tokens import NO_TOKEN
from hadoop.blocks import Block, BlockId, PoolId
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import namenode_protocol_pb2 as nn
from hadoop.wire.block_messages import extended, plain, unsigned

M = TypeVar("M", bound=Message)

CALL_SECONDS: Final = 30.0
REPORT_SECONDS: Final = 120.0
"""A NameNode may have to work a while on a full report."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How this DataNode is, for a heartbeat."""

    storages: Sequence[StorageUse]
    failed_paths: Sequence[str]
    transfers: int
    connections: int
    last_failure: float = 0.0
    """When the last volume failed, in seconds since 1970; 0 for not since the start."""
    lost_bytes: int = 0
    """How much the volumes could take that have failed since the start."""
    memory_bytes: int = 0
    """How much memory replicas may take; ``memory_used`` is taken."""
    memory_used: int = 0


@dataclass(slots=True)
class NameNodeCalls:
    """A connection to one NameNode.

    Every call raises ``RemoteFault`` when the NameNode refuses, ``RpcError`` without an answer.
    """

    connection: Connection
    _report_id: int = field(default_factory=lambda: random.getrandbits(62))

    @classmethod
    async def open(cls, address: HostPort, *, seconds: float) -> "NameNodeCalls":
        """Connect to a NameNode; raise ``ConnectFailed`` if it does not accept in time."""
        return cls(
            await RpcConnection.open(
                address.host, address.port, protocol=DATANODE_PROTOCOL, deadline_seconds=seconds
            )
        )

    async def close(self) -> None:
        await self.connection.close()

    async def version(self) -> nn.NamespaceInfoProto:
        answer = await self._call(
            "versionRequest", nn.VersionRequestProto(), nn.VersionResponseProto
        )
        return answer.info

    async def register(self, identity: Identity) -> tokens.ExportedBlockKeysProto:
        """Register, and return the keys of block tokens."""
        answer = await self._call(
            "registerDatanode",
            pb.RegisterDatanodeRequestProto(registration=identity.registration),
            pb.RegisterDatanodeResponseProto,
        )
        return answer.registration.keys

    async def heartbeat(
        self, identity: Identity, condition: Condition, *, wants_lease: bool
    ) -> pb.HeartbeatResponseProto:
        """Send a heartbeat; the answer has commands."""
        request = pb.HeartbeatRequestProto(
            registration=identity.registration,
            reports=[_storage_report(one) for one in condition.storages],
            xmitsInProgress=condition.transfers,
            xceiverCount=condition.connections,
            failedVolumes=len(condition.failed_paths),
            cacheCapacity=condition.memory_bytes,
            cacheUsed=condition.memory_used,
            requestFullBlockReportLease=wants_lease,
        )
        if condition.failed_paths:
            request.volumeFailureSummary.CopyFrom(
                pb.VolumeFailureSummaryProto(
                    failedStorageLocations=condition.failed_paths,
                    lastVolumeFailureDate=int(condition.last_failure * 1000),
                    estimatedCapacityLostTotal=condition.lost_bytes,
                )
            )
        return await self._call("sendHeartbeat", request, pb.HeartbeatResponseProto)

    async def incremental(
        self,
        identity: Identity,
        news: Mapping[StorageId, Sequence[Announcement]],
        types: Mapping[StorageId, str],
    ) -> None:
        """Report what has come, is coming and has gone."""
        request = pb.BlockReceivedAndDeletedRequestProto(
            registration=identity.registration,
            blockPoolId=identity.namespace.pool,
            blocks=[
                pb.StorageReceivedDeletedBlocksProto(
                    storageUuid=storage,
                    storage=_storage(storage, types.get(storage, "DISK")),
                    blocks=[
                        pb.ReceivedDeletedBlockInfoProto(
                            block=plain(one.block, one.length),
                            status=pb.ReceivedDeletedBlockInfoProto.BlockStatus.ValueType(one.news),
                            deleteHint=one.hint or None,
                        )
                        for one in announcements
                    ],
                )
                for storage, announcements in news.items()
            ],
        )
        await self._call(
            "blockReceivedAndDeleted", request, pb.BlockReceivedAndDeletedResponseProto
        )

    async def full_report(
        self,
        identity: Identity,
        replicas: Iterable[Replica],
        types: Mapping[StorageId, str],
        *,
        lease: int,
        split_blocks: int,
    ) -> None:
        """Report every replica; volumes without any are reported, too.

        From ``split_blocks`` replicas on, each volume has a call of its own: one for all would hold
        up the NameNode for too long, and be longer than it takes.
        """
        by_storage: dict[StorageId, list[Replica]] = {storage: [] for storage in types}
        for replica in replicas:
            by_storage.setdefault(replica.storage, []).append(replica)
        reports = await asyncio.to_thread(_storage_block_reports, by_storage, dict(types))
        split = sum(one.numberOfBlocks for one in reports) >= split_blocks
        calls = [[one] for one in reports] if split else [reports]
        self._report_id += 1
        for number, together in enumerate(calls):
            request = pb.BlockReportRequestProto(
                registration=identity.registration,
                blockPoolId=identity.namespace.pool,
                reports=together,
                context=pb.BlockReportContextProto(
                    totalRpcs=len(calls), curRpc=number, id=self._report_id, leaseId=lease
                ),
            )
            await self._call(
                "blockReport", request, pb.BlockReportResponseProto, seconds=REPORT_SECONDS
            )

    async def cache_report(self, identity: Identity, blocks: Iterable[BlockId]) -> None:
        """Report which blocks are in memory."""
        request = pb.CacheReportRequestProto(
            registration=identity.registration,
            blockPoolId=identity.namespace.pool,
            blocks=map(unsigned, blocks),
        )
        await self._call("cacheReport", request, pb.CacheReportResponseProto)

    async def bad_replica(self, identity: Identity, replica: Replica, storage_type: str) -> None:
        block = extended(replica.block, identity.namespace.pool, replica.length)
        bad = located(block, [identity.node_id])
        bad.storageIDs.append(replica.storage)
        bad.storageTypes.append(hdfs.StorageTypeProto.Value(storage_type))
        await self._bad_block(bad)

    async def bad_source(self, identity: Identity, source: DamagedSource) -> None:
        """Report a replica of another DataNode, whose bytes came damaged; its storage is unknown.

        As Hadoop's ``DataNode.reportRemoteBadBlock``.
        """
        block = extended(source.block, identity.namespace.pool, source.length)
        await self._bad_block(located(block, [source.holder]))

    async def _bad_block(self, bad: hdfs.LocatedBlockProto) -> None:
        request = pb.ReportBadBlocksRequestProto(blocks=[bad])
        await self._call("reportBadBlocks", request, pb.ReportBadBlocksResponseProto)

    async def error(self, identity: Identity, code: int, message: str) -> None:
        request = pb.ErrorReportRequestProto(
            registartion=identity.registration, errorCode=code, msg=message
        )
        await self._call("errorReport", request, pb.ErrorReportResponseProto)

    async def commit_recovery(self, request: pb.CommitBlockSynchronizationRequestProto) -> None:
        await self._call(
            "commitBlockSynchronization", request, pb.CommitBlockSynchronizationResponseProto
        )

    async def _call(
        self, method: str, request: Message, response: type[M], *, seconds: float = CALL_SECONDS
    ) -> M:
        return await self.connection.call(method, request, response, deadline_seconds=seconds)


def located(
    block: hdfs.ExtendedBlockProto, nodes: Iterable[hdfs.DatanodeIDProto]
) -> hdfs.LocatedBlockProto:
    """Return the message that says where a block is, without a block token."""
    return hdfs.LocatedBlockProto(
        b=block,
        offset=0,
        locs=[hdfs.DatanodeInfoProto(id=one) for one in nodes],
        corrupt=False,
        blockToken=NO_TOKEN,
    )


def recovery_request(
    block: Block,
    pool: PoolId,
    *,
    new_stamp: int,
    length: int,
    nodes: Sequence[hdfs.DatanodeIDProto] = (),
    storages: Sequence[str] = (),
) -> pb.CommitBlockSynchronizationRequestProto:
    """Return the request that ends a recovery; without nodes the block is deleted."""
    return pb.CommitBlockSynchronizationRequestProto(
        block=extended(block, pool),
        newGenStamp=new_stamp,
        newLength=length,
        closeFile=True,
        deleteBlock=not nodes,
        newTaragets=nodes,
        newTargetStorages=storages,
    )


def _storage_block_reports(
    by_storage: Mapping[StorageId, Sequence[Replica]], types: Mapping[StorageId, str]
) -> list[pb.StorageBlockReportProto]:
    reports = []
    for storage, kept in by_storage.items():
        count, buffers = encode_rows(kept)
        reports.append(
            pb.StorageBlockReportProto(
                storage=_storage(storage, types.get(storage, "DISK")),
                numberOfBlocks=count,
                blocksBuffers=buffers,
            )
        )
    return reports


def _storage(storage: StorageId, storage_type: str) -> hdfs.DatanodeStorageProto:
    return hdfs.DatanodeStorageProto(
        storageUuid=storage,
        state=hdfs.DatanodeStorageProto.NORMAL,
        storageType=hdfs.StorageTypeProto.Value(storage_type),
    )


def _storage_report(use: StorageUse) -> hdfs.StorageReportProto:
    return hdfs.StorageReportProto(
        storageUuid=use.storage,
        failed=False,
        capacity=use.capacity,
        dfsUsed=use.used,
        remaining=use.remaining,
        blockPoolUsed=use.used,
        storage=_storage(use.storage, use.storage_type),
        nonDfsUsed=use.used_by_others,
    )

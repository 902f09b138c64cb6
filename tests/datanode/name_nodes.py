"""A NameNode that records what DataNodes report and says what a test wants, on real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from datanode.namenodes.actor import Rhythm
from datanode.namenodes.claim import NameNodeId
from datanode.process.node import DataNode
from datanode.process.settings import DataNodeSettings
from datanode.replicas.volume import DataDirectory
from ha.conf.keys import datanode as keys
from ha.conf.listening import Door
from ha.conf.topology import HostPort
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import DATANODE_PROTOCOL, IO_EXCEPTION, STANDBY_EXCEPTION
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.rpc.server import RpcServer
from hadoop.blocks import Block
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import namenode_protocol_pb2 as nn
from hadoop.wire.block_messages import plain
from tests.datanode.block_client import LIMITS, SECONDS, Place, hang_up
from tests.datanode.stores import POOL

RECEIVING, RECEIVED, DELETED = 1, 2, 3
ACTIVE, STANDBY = nn.NNHAStatusHeartbeatProto.ACTIVE, nn.NNHAStatusHeartbeatProto.STANDBY


@dataclass(slots=True)
class NameNode:
    """What was reported to it, and what it will say."""

    port: int = 0
    state: nn.NNHAStatusHeartbeatProto.State.ValueType = ACTIVE
    txid: int = 100
    cluster_id: str = "CID-1"
    lease: int = 0
    commands: list[pb.DatanodeCommandProto] = field(default_factory=list)
    failures: int = 0
    """This number of incremental reports is refused."""
    registrations: list[pb.DatanodeRegistrationProto] = field(default_factory=list)
    heartbeats: list[pb.HeartbeatRequestProto] = field(default_factory=list)
    reports: list[pb.BlockReportRequestProto] = field(default_factory=list)
    news: list[pb.ReceivedDeletedBlockInfoProto] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    damage_calls: int = 0
    holders: list[str] = field(default_factory=list)
    """The DataNodes that have what is damaged."""
    deaf: int = 0
    """This number of reports of damage is refused."""
    recoveries: list[pb.CommitBlockSynchronizationRequestProto] = field(default_factory=list)
    cached: list[list[int]] = field(default_factory=list)
    """What each cache report has named."""
    is_old: bool = False
    """It does not know cache reports."""
    refused: int = 0
    """This number of heartbeats is refused."""
    greets: asyncio.Event = field(default_factory=asyncio.Event)
    """Set where it answers the first call of a connection."""
    on_report: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.greets.set()

    async def version(self, _: Call, __: nn.VersionRequestProto) -> nn.VersionResponseProto:
        await self.greets.wait()
        stored = nn.StorageInfoProto(
            layoutVersion=(1 << 32) - 67,
            namespceID=POOL.namespace_id,
            clusterID=self.cluster_id,
            cTime=POOL.ctime,
        )
        info = nn.NamespaceInfoProto(
            buildVersion="test", unused=0, blockPoolID=POOL.pool, storageInfo=stored,
            softwareVersion="3.5.0", capabilities=1, state=self.state,
        )  # fmt: skip
        return nn.VersionResponseProto(info=info)

    async def register(
        self, _: Call, request: pb.RegisterDatanodeRequestProto
    ) -> pb.RegisterDatanodeResponseProto:
        self.registrations.append(request.registration)
        return pb.RegisterDatanodeResponseProto(registration=request.registration)

    async def heartbeat(
        self, _: Call, request: pb.HeartbeatRequestProto
    ) -> pb.HeartbeatResponseProto:
        self.heartbeats.append(request)
        if self.refused:
            self.refused -= 1
            raise RemoteFault(IO_EXCEPTION, "planted")
        told, self.commands = self.commands, []
        lease, self.lease = self.lease, 0
        return pb.HeartbeatResponseProto(
            cmds=told,
            haStatus=nn.NNHAStatusHeartbeatProto(state=self.state, txid=self.txid),
            fullBlockReportLeaseId=lease,
        )

    async def report(
        self, _: Call, request: pb.BlockReportRequestProto
    ) -> pb.BlockReportResponseProto:
        self.reports.append(request)
        self.on_report()
        return pb.BlockReportResponseProto()

    async def incremental(
        self, _: Call, request: pb.BlockReceivedAndDeletedRequestProto
    ) -> pb.BlockReceivedAndDeletedResponseProto:
        if self.failures:
            self.failures -= 1
            raise RemoteFault(IO_EXCEPTION, "planted")
        for storage in request.blocks:
            self.news.extend(storage.blocks)
        return pb.BlockReceivedAndDeletedResponseProto()

    async def error(
        self, _: Call, request: pb.ErrorReportRequestProto
    ) -> pb.ErrorReportResponseProto:
        self.errors.append(request.msg)
        return pb.ErrorReportResponseProto()

    async def bad_blocks(
        self, _: Call, request: pb.ReportBadBlocksRequestProto
    ) -> pb.ReportBadBlocksResponseProto:
        if self.deaf:
            self.deaf -= 1
            raise RemoteFault(IO_EXCEPTION, "planted")
        self.damage_calls += 1
        if self.state == STANDBY:
            raise RemoteFault(STANDBY_EXCEPTION, "this NameNode has marked nothing")
        self.damaged.extend(one.b.blockId for one in request.blocks)
        self.holders.extend(at.id.datanodeUuid for one in request.blocks for at in one.locs)
        return pb.ReportBadBlocksResponseProto()

    async def cache_report(
        self, _: Call, request: pb.CacheReportRequestProto
    ) -> pb.CacheReportResponseProto:
        self.cached.append(list(request.blocks))
        if self.is_old:
            raise RemoteFault(IO_EXCEPTION, "no such method")
        return pb.CacheReportResponseProto()

    async def commit(
        self, _: Call, request: pb.CommitBlockSynchronizationRequestProto
    ) -> pb.CommitBlockSynchronizationResponseProto:
        self.recoveries.append(request)
        return pb.CommitBlockSynchronizationResponseProto()

    def protocol(self) -> RpcProtocol:
        return RpcProtocol(
            DATANODE_PROTOCOL,
            {
                "versionRequest": Method(nn.VersionRequestProto, self.version),
                "registerDatanode": Method(pb.RegisterDatanodeRequestProto, self.register),
                "sendHeartbeat": Method(pb.HeartbeatRequestProto, self.heartbeat),
                "blockReport": Method(pb.BlockReportRequestProto, self.report),
                "blockReceivedAndDeleted": Method(
                    pb.BlockReceivedAndDeletedRequestProto, self.incremental
                ),
                "reportBadBlocks": Method(pb.ReportBadBlocksRequestProto, self.bad_blocks),
                "cacheReport": Method(pb.CacheReportRequestProto, self.cache_report),
                "errorReport": Method(pb.ErrorReportRequestProto, self.error),
                "commitBlockSynchronization": Method(
                    pb.CommitBlockSynchronizationRequestProto, self.commit
                ),
            },
        )


@asynccontextmanager
async def name_node(
    state: nn.NNHAStatusHeartbeatProto.State.ValueType = ACTIVE, txid: int = 100
) -> AsyncIterator[NameNode]:
    model = NameNode(state=state, txid=txid)
    server = RpcServer([model.protocol()])
    model.port = await server.start("127.0.0.1", 0)
    try:
        yield model
    finally:
        await server.stop()


def settings(
    folders: Sequence[Path],
    name_nodes: Sequence[NameNode],
    *,
    tolerated: int = 0,
    split_blocks: int = 1_000_000,
    locked_memory: int = 0,
) -> DataNodeSettings:
    return DataNodeSettings(
        directories=tuple(DataDirectory(folder) for folder in folders),
        namenodes={
            NameNodeId(f"nn{number}"): HostPort("127.0.0.1", one.port)
            for number, one in enumerate(name_nodes, start=1)
        },
        data=Door(keys.DATA.name, "127.0.0.1", 0),
        rpc=Door(keys.RPC.name, "127.0.0.1", 0),
        http=Door(keys.HTTP.name, "127.0.0.1", 0),
        host_name="127.0.0.1",
        kept_free=0,
        tolerated=tolerated,
        locked_memory=locked_memory,
        rhythm=Rhythm(0.05, 3600, split_blocks, cache_report_seconds=0.05),
        limits=LIMITS,
    )


@asynccontextmanager
async def data_node(folder: Path, *name_nodes: NameNode) -> AsyncIterator[DataNode]:
    """Run a DataNode with one volume, once all these NameNodes have heard of it."""
    async with started(settings([folder], name_nodes), *name_nodes) as node:
        yield node


@asynccontextmanager
async def started(chosen: DataNodeSettings, *name_nodes: NameNode) -> AsyncIterator[DataNode]:
    before = [len(one.heartbeats) for one in name_nodes]
    node = DataNode(chosen)
    stop = asyncio.Event()
    task = asyncio.create_task(node.run(stop))
    try:
        async with asyncio.timeout(SECONDS):
            while not all(
                _told_by(node, one.heartbeats[count:])
                for one, count in zip(name_nodes, before, strict=True)
            ):
                if task.done():
                    task.result()
                await asyncio.sleep(0.002)
        yield node
    finally:
        hang_up()
        stop.set()
        await task


def _told_by(node: DataNode, heartbeats: Sequence[pb.HeartbeatRequestProto]) -> bool:
    uuid = node.status()["uuid"]
    return any(one.registration.datanodeID.datanodeUuid == uuid for one in heartbeats)


async def rounds(of: NameNode, count: int = 2) -> None:
    target = len(of.heartbeats) + count
    await seen(lambda: len(of.heartbeats) >= target)


async def seen(holds: Callable[[], bool], *, seconds: float = SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.002)


def invalidate(block: Block, *, quietly: bool = False) -> pb.DatanodeCommandProto:
    return pb.DatanodeCommandProto(
        cmdType=pb.DatanodeCommandProto.BlockCommand,
        blkCmd=pb.BlockCommandProto(
            action=pb.BlockCommandProto.INVALIDATE,
            blockPoolId=POOL.pool,
            blocks=[plain(block, (1 << 63) - 1 if quietly else 0)],
        ),
    )


def register() -> pb.DatanodeCommandProto:
    return pb.DatanodeCommandProto(
        cmdType=pb.DatanodeCommandProto.RegisterCommand, registerCmd=pb.RegisterCommandProto()
    )


def place(node: DataNode) -> Place:
    port = node.status()["data_port"]
    assert isinstance(port, int)
    return Place(port)


def told(model: NameNode) -> list[tuple[int, int]]:
    return [(one.block.blockId, one.status) for one in model.news]

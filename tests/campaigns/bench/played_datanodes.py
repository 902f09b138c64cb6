"""DataNodes without replicas: they register, live and report at any NameNode, ours or Hadoop's."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from datanode.model import StorageId
from datanode.namenodes.identity import Identity, namespace_of
from datanode.namenodes.namenode_client import Condition, NameNodeCalls
from datanode.replicas.operations import News
from datanode.replicas.store import Announcement
from datanode.replicas.volumes import StorageUse
from ha.conf.topology import HostPort
from ha.rpc.errors import RemoteFault, RpcError
from hadoop.blocks import Block
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs

HEARTBEAT_SECONDS: Final = 1.0
CALL_SECONDS: Final = 120.0
_BUFFER_BYTES: Final = 64 * 1024
_FIRST_PORT: Final = 21_000
_CAPACITY: Final = 10**12
_CONNECTIONS: Final = 2
_DISK: Final = "DISK"


@dataclass(slots=True)
class PlayedDataNode:
    """One DataNode at one NameNode.  Calls raise ``RpcError``, as ``NameNodeCalls`` does."""

    calls: NameNodeCalls
    identity: Identity
    storages: Sequence[StorageId]
    _news: list[tuple[Block, int, "asyncio.Future[None]"]] = field(default_factory=list)
    _telling: "asyncio.Task[None] | None" = None

    @classmethod
    async def registered(cls, address: HostPort, number: int, storages: int) -> "PlayedDataNode":
        calls = await NameNodeCalls.open(address, seconds=CALL_SECONDS)
        space = namespace_of(await calls.version())
        port = _FIRST_PORT + 10 * number
        identity = Identity(f"played-{number}", "127.0.0.1", port, port + 1, port + 2, space)
        names = [StorageId(f"DS-played-{number}-{each}") for each in range(storages)]
        await calls.register(identity)
        return cls(calls, identity, names)

    async def heartbeat(self, *, wants_lease: bool = False) -> int:
        """Report that it lives; return the id of the lease for a report, 0 for none."""
        uses = [StorageUse(one, _DISK, _CAPACITY, 0, _CAPACITY) for one in self.storages]
        condition = Condition(uses, (), 0, _CONNECTIONS)
        answer = await self.calls.heartbeat(self.identity, condition, wants_lease=wants_lease)
        return answer.fullBlockReportLeaseId

    async def report(self, reports: Sequence[tuple[StorageId, int, bytes]], lease: int = 0) -> None:
        """Report all replicas of some storages: how many there are, and their rows."""
        request = pb.BlockReportRequestProto(
            registration=self.identity.registration,
            blockPoolId=self.identity.namespace.pool,
            reports=[_storage_report(*one) for one in reports],
            context=pb.BlockReportContextProto(
                totalRpcs=1, curRpc=0, id=random.getrandbits(62), leaseId=lease
            ),
        )
        answer = await self.calls.connection.call(
            "blockReport", request, pb.BlockReportResponseProto, deadline_seconds=CALL_SECONDS
        )
        if answer.HasField("cmd") and answer.cmd.HasField("registerCmd"):
            raise RuntimeError(f"{self.identity.uuid} reported and was told to register")

    async def received(self, block: Block, length: int) -> None:
        """Report that a block has come; what comes during a call goes with the next."""
        told = asyncio.get_running_loop().create_future()
        self._news.append((block, length, told))
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())
        await told

    async def _tell(self) -> None:
        storage = self.storages[0]
        while self._news:
            some, self._news = self._news, []
            news = [Announcement(News.RECEIVED, storage, block, size) for block, size, _ in some]
            try:
                await self.calls.incremental(self.identity, {storage: news}, {storage: _DISK})
            except (RpcError, RemoteFault) as failure:
                for _, _, told in some:
                    told.set_exception(failure)
            else:
                for _, _, told in some:
                    told.set_result(None)
        self._telling = None

    async def live(self) -> None:
        while True:
            await self.heartbeat()
            await asyncio.sleep(HEARTBEAT_SECONDS)


@asynccontextmanager
async def living(nodes: Sequence[PlayedDataNode]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(node.live()) for node in nodes]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for node in nodes:
            await node.calls.close()


def _storage_report(storage: StorageId, count: int, rows: bytes) -> pb.StorageBlockReportProto:
    return pb.StorageBlockReportProto(
        storage=hdfs.DatanodeStorageProto(storageUuid=storage),
        numberOfBlocks=count,
        blocksBuffers=[
            rows[start : start + _BUFFER_BYTES] for start in range(0, len(rows), _BUFFER_BYTES)
        ],
    )

"""DataNodes without processes: what they say to a NameNode in memory, word by word."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from datanode import model
from datanode.namenodes.report_rows import encode_rows
from hadoop.blocks import Block, BlockId, GenerationStamp
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from namenode_sim.blocks.model import Deleted, ReplicaState, Reported
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.datanode_protocol.intake import ReportContext
from namenode_sim.datanode_protocol.keeper import Answer
from namenode_sim.datanode_protocol.messages import ListedStorage, StorageNews
from namenode_sim.datanodes.commands import Heartbeat, StorageReport
from namenode_sim.datanodes.model import DatanodeId, Node, Room, StorageState, StorageType
from namenode_sim.datanodes.registry import Registration
from namenode_sim.edits.ops import Op
from tests.namenode_sim.datanode_protocol.served import IDS, Clock, NameNode, given, in_memory

FIRST, STAMP = (1 << 30) + 1, 1001
NORMAL, DISK = StorageState.NORMAL, StorageType.DISK


@dataclass(slots=True)
class DataNode:
    """One DataNode with storages; it says what a test wants."""

    at: NameNode
    name: str = "a"
    storages: list[str] = field(default_factory=lambda: ["DS-a"])
    failed: set[str] = field(default_factory=set)
    failed_volumes: int = 0
    port: int = 0
    version: str = "3.5.0-nnha"
    cache_capacity: int = 0

    @property
    def id(self) -> DatanodeId:
        port = self.port or 9000 + ord(self.name)
        return DatanodeId(self.name, "10.0.0.1", "host", port, 1, 2)

    @property
    def node(self) -> Node:
        """As the NameNode knows it."""
        return self.at.cluster.nodes[self.name]

    def is_confirmed(self) -> bool:
        return all(one.held.confirmed for one in self.node.storages.values())

    def register(self) -> Node:
        return self.at.keeper.register(Registration(self.id, IDS, self.version))

    def heartbeat(self, *, wants_lease: bool = False) -> Answer:
        return self.at.keeper.hear(self.heart(), wants_lease=wants_lease)

    def heart(self) -> Heartbeat:
        reports = tuple(
            StorageReport(
                one, DISK, StorageState.FAILED if one in self.failed else NORMAL, Room(100, 1, 99)
            )
            for one in self.storages
        )
        return Heartbeat(
            self.id, reports, failed_volumes=self.failed_volumes, cache_capacity=self.cache_capacity
        )

    async def report(self, *replicas: model.Replica, lease: int = 0) -> bool:
        """Send a full report: of the first storage these, of the others nothing."""
        listed = [
            listed_storage(one, replicas if one == self.storages[0] else ())
            for one in self.storages
        ]
        return await self.at.keeper.intake.report(self.id, listed, ReportContext(lease))

    async def tell(self, *items: tuple[int, ReplicaReport], storage: str | None = None) -> None:
        news = StorageNews(storage or self.storages[0], DISK, NORMAL, items)
        await self.at.keeper.intake.receive(self.id, [news])

    async def joined(self, *replicas: model.Replica) -> "DataNode":
        """Register, heartbeat and report."""
        self.register()
        lease = self.heartbeat(wants_lease=True).lease
        await self.report(*replicas, lease=lease)
        return self


def listed_storage(uuid: str, replicas: Sequence[model.Replica]) -> ListedStorage:
    count, buffers = encode_rows(replicas)
    message = pb.StorageBlockReportProto(
        storage=hdfs.DatanodeStorageProto(storageUuid=uuid),
        numberOfBlocks=count,
        blocksBuffers=buffers,
    )
    return ListedStorage(uuid, DISK, NORMAL, message)


def whole(number: int = 0, stamp: int = 1001, length: int = 10) -> model.Finalized:
    """Build a finalized replica as it stands in a full report."""
    return model.Finalized(_block(number, stamp), model.StorageId(""), length)


def being_written(number: int = 0, stamp: int = 1001, length: int = 5) -> model.BeingWritten:
    return model.BeingWritten(_block(number, stamp), model.StorageId(""), length)


def _block(number: int, stamp: int) -> Block:
    return Block(BlockId(FIRST + number), GenerationStamp(stamp))


def received(number: int = 0, stamp: int = 1001, length: int = 10) -> tuple[int, ReplicaReport]:
    return FIRST + number, Reported(ReplicaState.FINALIZED, stamp, length)


def receiving(number: int = 0, stamp: int = 1001) -> tuple[int, ReplicaReport]:
    return FIRST + number, Reported(ReplicaState.RBW, stamp, 0)


def deleted(number: int = 0, stamp: int = 1001) -> tuple[int, ReplicaReport]:
    return FIRST + number, Deleted(stamp)


def edits(number: int = 0, length: int = 10) -> list[Op]:
    return given(FIRST + number, STAMP + number, length, f"/f{number}")


async def with_blocks(count: int = 1, *, clock: Clock | None = None) -> tuple[NameNode, DataNode]:
    """Build an active, and a DataNode that has reported all blocks and is confirmed."""
    made = in_memory(clock=clock)
    made.become_active()
    for number in range(count):
        made.apply(*edits(number))
    replicas = [whole(number, STAMP + number) for number in range(count)]
    return made, await DataNode(made).joined(*replicas)

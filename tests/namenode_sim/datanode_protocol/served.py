"""NameNodes' DataNode side on real sockets, with real DataNodes; edits are given by hand."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from google.protobuf.message import Message

from datanode.namenodes.claim import NameNodeId
from datanode.namenodes.namenode_client import NameNodeCalls
from datanode.process.node import DataNode
from datanode.replicas.scanner import ScanRhythm
from ha.conf.topology import HostPort
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import DATANODE_PROTOCOL, IO_EXCEPTION
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from journal.model import LAYOUT_VERSION, NamespaceInfo, TxId
from namenode_sim.blocks.safemode import SafeModeRules
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanode_protocol.drain_check import ReadPage, read_page
from namenode_sim.datanode_protocol.keeper import Keeper, KeeperRules, Standing
from namenode_sim.datanode_protocol.service import DatanodeService
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.registry import NamespaceIds, RegistryRules
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.supervised import supervise
from namenode_sim.term.role import Role
from tests.datanode import name_nodes
from tests.datanode.block_client import hang_up
from tests.datanode.stores import POOL
from tests.namenode_sim.namespace.given_edits import add, close

IDS = NamespaceIds(POOL.namespace_id, "CID-1", POOL.ctime)
INFO = NamespaceInfo(LAYOUT_VERSION, IDS.namespace_id, IDS.cluster_id, IDS.ctime, POOL.pool)
RULES = KeeperRules(registry=RegistryRules(namespace=IDS, elsewhere_seconds=0.5))
SECONDS = 30.0


@dataclass(slots=True)
class Clock:
    """Monotonic time that a test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class NameNode:
    """One NameNode's namespace, map and DataNode side; ``durable`` follows what is applied."""

    namespace: Namespace
    keeper: Keeper
    leased: bool = True
    held_back: int = 0
    """How many of the last edits are not durable yet."""
    active: bool = False
    port: int = 0
    broken: list[str] = field(default_factory=list)

    def standing(self) -> Standing:
        durable = TxId(self.namespace.last_applied - self.held_back)
        leased = self.active and self.leased
        return Standing(active=leased, durable=durable, lapsed=self.active and not leased)

    def become(self, *roles: Role) -> None:
        for role in roles:
            self.keeper.role_changed(role)
            self.active = role is Role.ACTIVE

    def become_active(self) -> None:
        """As the role's owner does it: the log is opened last."""
        self.become(Role.RECOVERING, Role.CATCHING_UP, Role.OPENING, Role.ACTIVE)

    def apply(self, *edits: Op) -> None:
        for op in edits:
            self.namespace.apply(TxId(self.namespace.last_applied + 1), op)

    @property
    def cluster(self) -> Cluster:
        return self.keeper.cluster

    def holders(self, block_id: int) -> list[str]:
        blocks = self.cluster.blocks
        blocks.map.check()
        slot = blocks.map.find(block_id)
        if slot is None:
            return []
        return [blocks.map.storages.at(number).uuid for number in blocks.map.storages_of(slot)]


async def refused(call: Call, _: Message) -> Message:
    raise RemoteFault(IO_EXCEPTION, f"{call.method} has nothing to end here")


def in_memory(
    *,
    clock: Clock | None = None,
    rules: KeeperRules = RULES,
    safe_mode: SafeModeRules | None = None,
    has_caught_up: Callable[[], bool] = lambda: True,
    read: ReadPage = read_page,
) -> NameNode:
    namespace = Namespace.empty("hdfs")
    cluster = Cluster(INFO.block_pool_id, BlockState(), random.Random(7), safe_mode)
    cluster.belong_to(namespace)

    def standing() -> Standing:
        return made.standing()

    keeper = Keeper(
        cluster,
        rules,
        standing,
        has_caught_up=has_caught_up,
        clock=clock or time.monotonic,
        read=read,
    )
    made = NameNode(namespace, keeper)
    return made


@asynccontextmanager
async def name_node(*, active: bool = False, rules: KeeperRules = RULES) -> AsyncIterator[NameNode]:
    made = in_memory(rules=rules)
    if active:
        made.become_active()
    face = DatanodeService(made.keeper, INFO, refused)
    server = RpcServer([face.protocol(), face.lifeline()])
    made.port = await server.start("127.0.0.1", 0)
    tasks = [
        supervise(work, name, made.broken.append) for name, work in made.keeper.duties().items()
    ]
    try:
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.stop()
        assert made.broken == []


@asynccontextmanager
async def data_node(
    folder: Path,
    *served: NameNode,
    more: Sequence[Path] = (),
    scan: ScanRhythm | None = None,
    kept_free: int = 0,
    locked_memory: int = 0,
    algorithm: str | None = None,
) -> AsyncIterator[DataNode]:
    """Run a DataNode that all these NameNodes know; ``more`` are volumes of which all may fail.

    It leaves ``kept_free`` bytes of each volume to others, and may cache ``locked_memory``.  With
    an ``algorithm`` its connections are encrypted.
    """
    addresses = {
        NameNodeId(f"nn{number}"): HostPort("127.0.0.1", one.port)
        for number, one in enumerate(served, start=1)
    }
    chosen = name_nodes.settings(
        [folder, *more], [], tolerated=len(more), locked_memory=locked_memory
    )
    chosen = replace(chosen, namenodes=addresses, scan=scan or chosen.scan)
    node = DataNode(replace(chosen, kept_free=kept_free, algorithm=algorithm))
    stop = asyncio.Event()
    task = asyncio.create_task(node.run(stop))
    before = [_registrations(one) for one in served]
    try:
        await name_nodes.seen(
            lambda: task.done() or [_registrations(one) for one in served] > before, seconds=SECONDS
        )
        if task.done():
            task.result()
        yield node
    finally:
        hang_up()
        stop.set()
        await task


def _registrations(of: NameNode) -> int:
    return sum(node.registrations for node in of.cluster.nodes.values())


async def seen(*conditions: object) -> None:
    """Wait until all hold."""

    def hold() -> bool:
        return all(callable(one) and one() for one in conditions)

    await name_nodes.seen(hold, seconds=SECONDS)


@asynccontextmanager
async def calls(of: NameNode, protocol: str = DATANODE_PROTOCOL) -> AsyncIterator[NameNodeCalls]:
    """Yield the DataNode's own side of the protocol, without a DataNode."""
    connection = await RpcConnection.open(
        "127.0.0.1", of.port, protocol=protocol, deadline_seconds=SECONDS
    )
    try:
        yield NameNodeCalls(connection)
    finally:
        await connection.close()


def given(number: int, stamp: int, length: int, path: str) -> list[Op]:
    """Return the edits of a file with one block: up to addBlock, and its close."""
    return [
        ops.AllocateBlockId(number),
        ops.SetGenstampV2(stamp),
        add(path),
        ops.AddBlock(path, None, Block(number, 0, stamp)),
        close(path, Block(number, length, stamp)),
    ]


def hold_alike(served: Sequence[NameNode], block_id: int) -> bool:
    """Whether all know one and the same place of a block."""
    found = [one.holders(block_id) for one in served]
    return len(found[0]) == 1 and all(one == found[0] for one in found)

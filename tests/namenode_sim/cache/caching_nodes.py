"""Three DataNodes with memory, at a NameNode in memory: what they are ordered, they do."""

from dataclasses import dataclass, field
from typing import Any

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import CacheDirectiveStatsProto
from journal.model import TxId
from namenode_sim.cache.rescan import rescan
from namenode_sim.datanodes.commands import Cache, Uncache, orders
from namenode_sim.datanodes.liveness import LivenessRules
from namenode_sim.datanodes.model import Node
from tests.namenode_sim.client_protocol.datanodes_in_memory import with_datanodes, written
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve


@dataclass(slots=True)
class Caching:
    """The NameNode, and what is in the memory of each DataNode, by name: lengths by block."""

    served: Served = field(default_factory=lambda: with_datanodes(serve()))
    memory: dict[str, dict[int, int]] = field(default_factory=dict)
    now: float = 1000.0
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.now_ms = self.served.scene("hdfs").now_ms
        for node in self.nodes():
            self.memory[node.id.uuid] = {}
            self.hear(node, 1000)

    def nodes(self) -> list[Node]:
        return list(self.served.cluster.nodes.values())

    def node(self, name: str) -> Node:
        return self.served.cluster.nodes[name]

    def hear(self, node: Node, capacity: int | None = None) -> None:
        """Take in a heartbeat."""
        node.last_heard = self.now
        if capacity is not None:
            node.cache.capacity = capacity
        node.cache.used = sum(self.memory[node.id.uuid].values())

    def scan(self) -> None:
        cluster = self.served.cluster
        assert cluster.namespace is not None
        for _ in rescan(cluster, cluster.namespace, self.now_ms, self.now):
            pass

    def orders(self, node: Node, durable: int = 1 << 40) -> tuple[Cache | Uncache, ...]:
        found = orders(self.served.cluster, node, TxId(durable), LivenessRules(), self.now, 1000)
        return tuple(one for one in found if isinstance(one, Cache | Uncache))

    def obey(self, node: Node) -> None:
        """Let a DataNode do what it is ordered, as far as it has room."""
        held = self.memory[node.id.uuid]
        for order in self.orders(node):
            match order:
                case Uncache(blocks=blocks):
                    for block_id in blocks:
                        held.pop(block_id, None)
                case Cache(blocks=blocks):
                    for block_id in blocks:
                        length = node.cache.to_cache[block_id]
                        assert sum(held.values()) + length <= node.cache.capacity
                        held.setdefault(block_id, length)

    def report(self, node: Node) -> None:
        node.cache.report(frozenset(self.memory[node.id.uuid]))
        self.hear(node)

    def round(self) -> None:
        """Scan, let all obey and report."""
        self.now += 30.0
        self.scan()
        for node in self.nodes():
            self.obey(node)
            self.report(node)

    def holding(self, block_id: int) -> list[str]:
        return [name for name, held in sorted(self.memory.items()) if block_id in held]

    async def add(self, path: str, pool: str = "p", **more: Any) -> int:  # noqa: ANN401
        answer = await self.served.call(
            "addCacheDirective", info={"path": path, "pool": pool, **more}, cacheFlags=1
        )
        assert isinstance(answer, calls.AddCacheDirectiveResponseProto)
        return answer.id

    async def pool(self, name: str = "p", **more: Any) -> None:  # noqa: ANN401
        await self.served.call("addCachePool", info={"poolName": name, **more})

    async def stats(self) -> list[CacheDirectiveStatsProto]:
        answer = await self.served.call("listCacheDirectives", prevId=0, filter={})
        assert isinstance(answer, calls.ListCacheDirectivesResponseProto)
        return [one.stats for one in answer.elements]


async def prepared(*lengths: int, **pool: Any) -> tuple[Caching, list[int]]:  # noqa: ANN401
    """Return a NameNode with a file ``/d/a`` of these blocks, and a pool."""
    made = Caching()
    await made.pool(**pool)
    blocks = await written(made.served, "/d/a", *lengths)
    return made, [block.blockId for block in blocks]

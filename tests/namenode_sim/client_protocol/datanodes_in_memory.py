"""DataNodes as a NameNode in memory knows them: they register, and report what a test says."""

import time

from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.blocks.incremental_reports import receive
from namenode_sim.blocks.model import ReplicaState, Reported
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import DEFAULT_RACK, DatanodeId, Node, Room
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served

ROOM = Room(capacity=1 << 40, remaining=1 << 40)
POOL = "BP-1-127.0.0.1-1"


def joined(
    cluster: Cluster, name: str, *, rack: str = DEFAULT_RACK, ip: str = "", storages: int = 1
) -> Node:
    """Return a DataNode that has registered, heartbeated, and reported that it holds nothing."""
    number = len(cluster.nodes) + 1
    who = DatanodeId(name, ip or f"10.0.0.{number}", name, 9866, 9864, 9867)
    node = Node(who, "3.5.0", time.monotonic(), rack)
    cluster.nodes[name] = node
    for index in range(storages):
        storage = cluster.add_storage(node, f"DS-{name}-{index}")
        storage.room, storage.held.confirmed = ROOM, True
    return node


def with_datanodes(served: Served, count: int = 3) -> Served:
    for number in range(1, count + 1):
        joined(served.cluster, f"d{number}")
    return served


def report(
    served: Served,
    block: ExtendedBlockProto,
    *names: str,
    length: int | None = None,
    state: ReplicaState = ReplicaState.FINALIZED,
) -> None:
    told = Reported(state, block.generationStamp, block.numBytes if length is None else length)
    for name in names:
        storage = next(iter(served.cluster.nodes[name].storages.values()))
        receive(served.cluster.blocks, storage.held, [(block.blockId, told)], time.monotonic())


async def add_block(
    served: Served, src: str, previous: ExtendedBlockProto | None = None, **more: object
) -> hdfs_types_pb2.LocatedBlockProto:
    fields: Fields = {"src": src, "clientName": "writer", **more}
    if previous is not None:
        fields["previous"] = previous
    answer = await served.call("addBlock", **fields)
    assert isinstance(answer, calls.AddBlockResponseProto)
    return answer.block


def sized(block: ExtendedBlockProto, length: int) -> ExtendedBlockProto:
    """Return a block as its writer names it once ``length`` bytes are in it."""
    return ExtendedBlockProto(
        poolId=block.poolId,
        blockId=block.blockId,
        generationStamp=block.generationStamp,
        numBytes=length,
    )


async def written(served: Served, src: str, *lengths: int) -> list[ExtendedBlockProto]:
    """Write a closed file with blocks of these lengths, each on d1, d2 and d3."""
    await served.create(src)
    blocks: list[ExtendedBlockProto] = []
    for length in lengths:
        previous = blocks[-1] if blocks else None
        added = await add_block(served, src, previous)
        blocks.append(sized(added.b, length))
        report(served, blocks[-1], *(place.id.datanodeUuid for place in added.locs))
    assert await served.complete(src, last=blocks[-1])
    return blocks


async def locations(
    served: Served, src: str, offset: int = 0, length: int = 1 << 40, host: str = "10.9.9.9"
) -> hdfs_types_pb2.LocatedBlocksProto:
    answer = await served.call(
        "getBlockLocations", src=src, offset=offset, length=length, host=host
    )
    assert isinstance(answer, calls.GetBlockLocationsResponseProto)
    return answer.locations

"""Located blocks and DataNodes are written without messages: as protobuf would write them."""

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hadoop.block_tokens import NO_TOKEN, first_ring
from hadoop.proto import hdfs_types_pb2 as types
from namenode_sim.client_protocol.words import datanode_info
from namenode_sim.client_protocol.words.block_locations import block_at, extended, located_blocks
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.model import AdminState, DatanodeId, Node, Room, StorageType
from namenode_sim.datanodes.placement import Place
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile
from tests.namenode_sim.client_protocol.datanodes_in_memory import joined, written
from tests.namenode_sim.client_protocol.namenode_in_memory import serve

SIZES = (0, 1, 127, 128, 1 << 35, (1 << 63) - 1)


def info(node: Node, now: float, now_ms: int) -> types.DatanodeInfoProto:
    """Return a DatanodeInfo, made as a message and anew."""
    rooms = [storage.room for storage in node.storages.values()]
    made = types.DatanodeInfoProto(
        id=datanode_info.id_of(node.id),
        capacity=sum(room.capacity for room in rooms),
        dfsUsed=sum(room.used for room in rooms),
        remaining=sum(room.remaining for room in rooms),
        blockPoolUsed=sum(room.pool_used for room in rooms),
        nonDfsUsed=sum(room.non_dfs_used for room in rooms),
        lastUpdate=max(0, now_ms - int((now - node.last_heard) * 1000)),
        lastUpdateMonotonic=max(0, int(node.last_heard * 1000)),
        cacheCapacity=node.cache.capacity,
        cacheUsed=node.cache.used,
        xceiverCount=node.transceivers,
        location=node.rack,
        adminState=types.DatanodeInfoProto.AdminState.ValueType(int(node.admin)),
        numBlocks=sum(len(storage.held.slots) for storage in node.storages.values()),
        softwareVersion=node.software_version,
    )
    if node.last_report is not None:
        made.lastBlockReportTime = max(0, now_ms - int((now - node.last_report) * 1000))
        made.lastBlockReportMonotonic = max(0, int(node.last_report * 1000))
    return made


def located(
    scene: Scene, block: Block, offset: int, places: Sequence[Place], *, corrupt: bool
) -> types.LocatedBlockProto:
    """Return a block at places, made as a message."""
    token = NO_TOKEN
    if scene.cluster.block_keys is not None:
        token = block_at(scene, block, offset, places).blockToken
    kinds = [types.StorageTypeProto.ValueType(int(storage.type)) for _, storage in places]
    return types.LocatedBlockProto(
        b=extended(scene, block),
        offset=offset % (1 << 64),
        locs=[info(node, scene.now, scene.now_ms) for node, _ in places],
        corrupt=corrupt,
        blockToken=token,
        isCached=[block.block_id in node.cache.cached for node, _ in places],
        storageTypes=kinds,
        storageIDs=[storage.uuid for _, storage in places],
    )


def change(node: Node, chance: random.Random) -> None:
    """Change one thing that a DataNode is, as heartbeats, reports and operators do."""
    storage = chance.choice(list(node.storages.values()))
    here = DatanodeId(node.id.uuid, "10.0.0.1", "h", 1, 2, 3, 4)
    things: list[tuple[object, str, Sequence[object]]] = [
        (storage, "room", [Room(), Room(1, 300, 5, 1 << 40, 7)]),
        (storage.held, "slots", [array("I", range(size)) for size in (0, 1, 128, 20_000)]),
        (node, "last_heard", [0.001, 3.0, 70.25]),
        (node, "last_report", [None, 0.5, 70.25]),
        (node, "admin", list(AdminState)),
        (node, "rack", ["/default-rack", "/é", "/a" * 80]),
        (node, "transceivers", [0, 5, 500]),
        (node, "id", [here, replace(here, ip="::1")]),
        (node, "software_version", ["", "3.5.0", "3.5.0-nnha"]),
        (node.cache, "capacity", SIZES),
        (node.cache, "used", SIZES),
        (node.cache, "cached", [frozenset(), frozenset({1}), frozenset({1, 1 << 30})]),
    ]
    thing, name, values = chance.choice(things)
    setattr(thing, name, chance.choice(values))


@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_written_as_messages_are(seed: int) -> None:
    """Whatever has changed since the last answer: what is kept of DataNodes does not show."""
    chance, served = random.Random(seed), serve()
    if seed % 2:
        served.cluster.block_keys = first_ring(7, 0, 1000, 1000, bytes)
    kinds = list(StorageType)
    for name in ("d1", "é2", "d" * 130, "d4"):
        joined(served.cluster, name, storages=3)
    for node in served.cluster.nodes.values():
        for storage in node.storages.values():
            storage.type = chance.choice(kinds)
    scene = served.scene("alice")
    for _ in range(500):
        nodes = chance.sample(list(served.cluster.nodes.values()), chance.randrange(5))
        for node in nodes[:2]:
            change(node, chance)
        places = [(node, chance.choice(list(node.storages.values()))) for node in nodes]
        block = Block(chance.choice([1, -16, 1 << 30]), chance.choice(SIZES), chance.choice(SIZES))
        offset, corrupt = chance.choice([-1, *SIZES]), chance.random() < 0.5
        for node in nodes:
            assert datanode_info.info_of(node, scene.now, scene.now_ms) == info(
                node, scene.now, scene.now_ms
            )
        found = block_at(scene, block, offset, places, corrupt=corrupt)
        assert found == located(scene, block, offset, places, corrupt=corrupt)


async def test_a_file_s_blocks_are_in_the_order_of_fields() -> None:
    """A message keeps no order: the bytes must be those that it writes again."""
    served = serve()
    for name in ("d1", "d2", "d3"):
        joined(served.cluster, name)
    await written(served, "/f", *[1 << 20] * 30)
    await served.touch("/empty")
    await served.create("/open")
    for path in (b"f", b"empty", b"open"):
        file = served.namespace.tree.root.children[path]
        assert isinstance(file, INodeFile)
        for offset, length in ((0, 1 << 40), (1 << 21, 1 << 20), (1 << 40, 1)):
            for in_snapshot in (False, True):
                found = located_blocks(
                    served.scene(), file, offset, length, in_snapshot=in_snapshot
                )
                message = types.LocatedBlocksProto.FromString(found)
                assert message.SerializeToString() == found
                assert message.IsInitialized()

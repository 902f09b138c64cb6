"""Real DataNodes copy and delete replicas as the active orders them."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from datanode.process.node import DataNode
from ha.rpc.errors import RemoteFault
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import hdfs_types_pb2
from namenode_sim.edits import ops
from tests.datanode.block_client import Place, write_whole
from tests.datanode.stores import POOL, block
from tests.namenode_sim.datanode_protocol import served

DATA = bytes(range(251)) * 40
ID = block().block_id


def place(node: DataNode) -> Place:
    port = node.status()["data_port"]
    assert isinstance(port, int)
    return Place(port)


def is_on(folder: Path) -> bool:
    return any(folder.rglob(f"finalized/**/blk_{ID}"))


def damaged(*uuids: str) -> pb.ReportBadBlocksRequestProto:
    found = hdfs_types_pb2.LocatedBlockProto(
        b=hdfs_types_pb2.ExtendedBlockProto(poolId=POOL.pool, blockId=ID, generationStamp=1001),
        offset=0,
        corrupt=False,
        blockToken=hdfs_types_pb2.TokenProto(identifier=b"", password=b"", kind="", service=""),
    )
    for uuid in uuids:
        who = hdfs_types_pb2.DatanodeIDProto(
            ipAddr="127.0.0.1", hostName="h", datanodeUuid=uuid, xferPort=1, infoPort=1, ipcPort=1
        )
        found.locs.append(hdfs_types_pb2.DatanodeInfoProto(id=who))
    return pb.ReportBadBlocksRequestProto(blocks=[found])


async def report(active: served.NameNode, request: pb.ReportBadBlocksRequestProto) -> None:
    async with served.calls(active) as datanode:
        await datanode.connection.call(
            "reportBadBlocks", request, pb.ReportBadBlocksResponseProto, deadline_seconds=30
        )


async def test_a_block_is_copied_and_its_excess_deleted(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    async with served.name_node(active=True) as active, AsyncExitStack() as nodes:
        one, two = [
            await nodes.enter_async_context(served.data_node(folder, active)) for folder in folders
        ]
        await served.seen(lambda: {one.status()["obeyed"], two.status()["obeyed"]} == {"nn1"})
        active.apply(*served.given(ID, 1001, len(DATA), "/f")[:-1])
        await write_whole([place(one)], block(), DATA)
        active.apply(served.given(ID, 1001, len(DATA), "/f")[-1], ops.SetReplication("/f", 2))
        await served.seen(lambda: len(active.holders(ID)) == 2, lambda: all(map(is_on, folders)))
        active.apply(ops.SetReplication("/f", 1))
        await served.seen(lambda: sum(map(is_on, folders)) == 1)
        await served.seen(lambda: len(active.holders(ID)) == 1)
        assert len(active.cluster.blocks.map.pending_deletions) == 0


async def test_a_damaged_replica_gives_way_to_a_copy(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    async with served.name_node(active=True) as active, AsyncExitStack() as nodes:
        one, two = [
            await nodes.enter_async_context(served.data_node(folder, active)) for folder in folders
        ]
        await served.seen(lambda: {one.status()["obeyed"], two.status()["obeyed"]} == {"nn1"})
        active.apply(*served.given(ID, 1001, len(DATA), "/f")[:-1])
        await write_whole([place(one), place(two)], block(), DATA)
        active.apply(served.given(ID, 1001, len(DATA), "/f")[-1], ops.SetReplication("/f", 2))
        await served.seen(lambda: len(active.holders(ID)) == 2)
        await report(active, damaged(next(iter(active.cluster.nodes))))
        assert active.cluster.blocks.map.corrupt_count() == 1
        await served.seen(lambda: active.cluster.blocks.map.corrupt_count() == 0)
        await served.seen(lambda: len(active.holders(ID)) == 2, lambda: all(map(is_on, folders)))


async def test_a_standby_hears_of_no_damage(tmp_path: Path) -> None:
    async with served.name_node() as standby:
        with pytest.raises(RemoteFault) as refusal:
            await report(standby, damaged("nobody"))
        assert refusal.value.java_class.endswith("StandbyException")


async def test_damage_on_a_datanode_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    async with served.name_node(active=True) as active:
        await report(active, damaged("nobody"))  # the block is unknown, too
        active.apply(*served.given(ID, 1001, len(DATA), "/f"))
        with pytest.raises(RemoteFault) as refusal:
            await report(active, damaged("nobody"))
        assert refusal.value.message.startswith(f"Cannot mark blk_{ID}_1001 as corrupt")

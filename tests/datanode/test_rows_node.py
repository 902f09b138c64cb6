"""Rows about a DataNode: NameNodes that fail, appends through dying pipelines."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from datanode.process.node import DataNode
from ha.rpc.server import RpcServer
from hadoop.proto import data_transfer_pb2 as pb
from tests.datanode import name_nodes
from tests.datanode.block_client import STAGE, Node, begin, places, read, write_whole
from tests.datanode.name_nodes import NameNode, invalidate
from tests.datanode.stores import block

DATA = bytes(range(251)) * 40
OK = pb.Status.SUCCESS
RECEIVED, DELETED = 2, 3


@asynccontextmanager
async def served_at(model: NameNode) -> AsyncIterator[None]:
    server = RpcServer([model.protocol()])
    await server.start("127.0.0.1", model.port)
    try:
        yield
    finally:
        await server.stop()


@pytest.mark.row("B29")
async def test_b29_a_namenode_that_fails_holds_up_no_other(tmp_path: Path) -> None:
    """Send what it missed in the full report that follows its registration."""
    async with name_nodes.name_node() as active, AsyncExitStack() as stack:
        async with name_nodes.name_node(name_nodes.STANDBY, txid=90) as failing:
            pass
        async with served_at(failing):
            node = await stack.enter_async_context(name_nodes.data_node(tmp_path, active, failing))
            await write_whole([name_nodes.place(node)], block(0), DATA)
            await name_nodes.seen(lambda: (block(0).block_id, RECEIVED) in name_nodes.told(failing))
        await write_whole([name_nodes.place(node)], block(1), DATA)
        await name_nodes.seen(lambda: (block(1).block_id, RECEIVED) in name_nodes.told(active))
        active.commands = [invalidate(block(0))]
        await name_nodes.seen(lambda: (block(0).block_id, DELETED) in name_nodes.told(active))
        await name_nodes.seen(lambda: state_at(node, "nn2") != "registered")
        assert (state_at(node, "nn1"), node.trouble()) == ("registered", None)
        registered = len(failing.registrations)
        failing.lease = 5
        async with served_at(failing):
            await name_nodes.seen(lambda: len(failing.registrations) > registered)
            await name_nodes.seen(lambda: len(failing.reports) > 0)
            assert failing.reports[-1].reports[0].numberOfBlocks == 1
            assert (block(1).block_id, RECEIVED) not in name_nodes.told(failing)


def state_at(node: DataNode, name: str) -> str:
    states = node.status()["namenodes"]
    assert isinstance(states, dict)
    return str(states[name])


@pytest.mark.row("B26")
@pytest.mark.parametrize("victim", [0, 1, 2])
async def test_b26_an_append_goes_on_without_the_datanode_that_died_at_its_set_up(
    nodes: list[Node], victim: int
) -> None:
    """Begin the next append in the midst of a chunk."""
    await write_whole(places(nodes), block(), DATA[:700])
    await nodes[victim].server.stop()
    if victim:
        refused = await begin(
            places(nodes), block(), stage=STAGE.PIPELINE_SETUP_APPEND, stamp=1002, length=700
        )
        assert refused.set_up.firstBadLink == nodes[victim].place.address
    left = [one for one in nodes if one is not nodes[victim]]
    writing = await begin(
        places(left), block(), stage=STAGE.PIPELINE_SETUP_APPEND_RECOVERY, stamp=1003, length=700
    )
    assert writing.set_up.status == OK, writing.set_up.message
    await writing.send(DATA[700:1024])
    assert set((await writing.ack()).reply) == {OK}
    await writing.send(DATA[1024:1500])
    assert set((await writing.ack()).reply) == {OK}
    await writing.close()
    again = await begin(
        places(left), block(stamp=1003), stage=STAGE.PIPELINE_SETUP_APPEND, stamp=1004, length=1500
    )
    assert again.set_up.status == OK, again.set_up.message
    await again.send(DATA[1500:1536])
    await again.send(DATA[1536:3000])
    for _ in range(2):
        assert set((await again.ack()).reply) == {OK}
    await again.close()
    for one in left:
        assert await read(one.place, block(stamp=1004), 0, 3000) == DATA[:3000]

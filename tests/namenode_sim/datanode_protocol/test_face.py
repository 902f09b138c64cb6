"""DataNodes at NameNodes on real sockets: what they tell reaches the maps of active and standby."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from namenode_sim.datanode.node import DataNode
from namenode_sim.term.role import Role
from tests.namenode_sim.datanode.block_client import Place, write_whole
from tests.namenode_sim.datanode.stores import block
from tests.namenode_sim.datanode_protocol.served import (
    NameNode,
    data_node,
    given,
    hold_alike,
    name_node,
    seen,
)

DATA = bytes(range(251)) * 40


@pytest.fixture
async def active() -> AsyncIterator[NameNode]:
    async with name_node(active=True) as made:
        yield made


@pytest.fixture
async def standby() -> AsyncIterator[NameNode]:
    async with name_node() as made:
        yield made


def place(node: DataNode) -> Place:
    port = node.status()["data_port"]
    assert isinstance(port, int)
    return Place(port)


async def test_what_a_datanode_tells_reaches_active_and_standby(
    tmp_path: Path, active: NameNode, standby: NameNode
) -> None:
    both = (active, standby)
    one, two = block(0, 1001), block(1, 1002)
    async with data_node(tmp_path, *both) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        active.apply(*given(one.block_id, 1001, len(DATA), "/one")[:-1])
        await write_whole([place(node)], one, DATA)
        # The standby has no edit that shows the block: what it heard waits for one.
        await seen(lambda: active.cluster.blocks.seen_id == one.block_id)
        await seen(lambda: len(standby.cluster.blocks.waiting) == 1)
        active.apply(given(one.block_id, 1001, len(DATA), "/one")[-1])
        standby.apply(*given(one.block_id, 1001, len(DATA), "/one"))
        await seen(lambda: hold_alike(both, one.block_id))
        assert len(standby.cluster.blocks.waiting) == 0
        for name_node in both:
            name_node.apply(*given(two.block_id, 1002, len(DATA), "/two"))
        await write_whole([place(node)], two, DATA)
        await seen(lambda: hold_alike(both, two.block_id))
    async with data_node(tmp_path, *both):
        # Nothing is forgotten when it registers anew; its full report says the same.
        for name_node in both:
            (known,) = name_node.cluster.nodes.values()
            (storage,) = known.storages.values()
            await seen(lambda storage=storage: storage.held.reports == 1)
            assert hold_alike(both, one.block_id)
            assert hold_alike(both, two.block_id)
            assert storage.room.capacity > 0


async def test_a_first_report_fills_a_map_that_knew_nothing(
    tmp_path: Path, active: NameNode
) -> None:
    async with data_node(tmp_path, active) as node:
        await seen(lambda: node.status()["obeyed"] == "nn1")
        active.apply(*given(block().block_id, 1001, len(DATA), "/f")[:-1])
        await write_whole([place(node)], block(), DATA)
    async with name_node() as late:
        late.apply(*given(block().block_id, 1001, len(DATA), "/f"))
        late.become(Role.STANDBY)
        async with data_node(tmp_path, late):
            await seen(lambda: len(late.holders(block().block_id)) == 1)

"""Hadoop's own DataNode at NameNodes of ours: handshake, reports, orders, a failover."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from namenode_sim.datanodes.model import Node
from namenode_sim.edits import ops
from namenode_sim.term.role import Role
from tests.interop.hadoop_server import Hadoop
from tests.namenode_sim.datanode.block_client import Place, hang_up, write_whole
from tests.namenode_sim.datanode.stores import block
from tests.namenode_sim.datanode_protocol.served import (
    NameNode,
    given,
    hold_alike,
    name_node,
    seen,
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

DATA = bytes(range(251)) * 40


@asynccontextmanager
async def java_datanode(hadoop: Hadoop, folder: Path, *served: NameNode) -> AsyncIterator[None]:
    """One that belongs to these NameNodes, in Hadoop's JVM."""
    names = [f"nn{number}" for number in range(1, len(served) + 1)]
    settings = {
        "fs.defaultFS": "hdfs://ours",
        "dfs.nameservices": "ours",
        "dfs.ha.namenodes.ours": ",".join(names),
        "dfs.datanode.data.dir": (folder / "java").as_uri(),
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.heartbeat.interval": "1",
    }
    for name, one in zip(names, served, strict=True):
        settings[f"dfs.namenode.rpc-address.ours.{name}"] = f"127.0.0.1:{one.port}"
    kind = hadoop.hadoop.hdfs.server.datanode.DataNode

    def start() -> object:
        hadoop.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
        return kind.createDataNode(hadoop.strings(), hadoop.configuration(settings))

    node = await asyncio.to_thread(start)
    try:
        yield
    finally:
        hang_up()
        await asyncio.to_thread(node.shutdown)  # type: ignore[attr-defined]


def known(served: NameNode) -> Node | None:
    return next(iter(served.cluster.nodes.values()), None)


def has_reported(served: NameNode) -> bool:
    """Whether a full report of all its storages was taken in."""
    node = known(served)
    held = [] if node is None else [one.held for one in node.storages.values()]
    return bool(held) and all(one.reports for one in held)


def is_confirmed(served: NameNode) -> bool:
    node = known(served)
    return node is not None and all(one.held.confirmed for one in node.storages.values())


async def test_it_serves_our_pair_through_a_failover(hadoop: Hadoop, tmp_path: Path) -> None:
    one, two = block(0, 1001), block(1, 1002)
    async with name_node(active=True) as active, name_node() as standby:
        both = (active, standby)
        async with java_datanode(hadoop, tmp_path, *both):
            await seen(lambda: has_reported(active), lambda: has_reported(standby))
            node = known(active)
            assert node is not None
            assert node.software_version.startswith("3.")
            place = Place(node.id.transfer_port)
            for made in (one, two):
                for served in both:
                    path = f"/{made.block_id}"
                    served.apply(*given(made.block_id, made.stamp, len(DATA), path))
                await write_whole([place], made, DATA)
                await seen(lambda made=made: hold_alike(both, made.block_id))
            await seen(lambda: is_confirmed(active))
            for served in both:
                served.apply(ops.Delete(f"/{one.block_id}", 30))
            await seen(lambda: len(list(tmp_path.rglob(f"blk_{one.block_id}"))) == 0)
            assert not is_confirmed(standby)
            active.become(Role.CLOSING, Role.STANDBY)
            standby.apply(ops.StartLogSegment())
            standby.become_active()
            # It reports though it has not asked to: that is how it becomes known what it has.
            await seen(lambda: is_confirmed(standby))
            standby.apply(ops.Delete(f"/{two.block_id}", 30))
            await seen(lambda: len(list(tmp_path.rglob(f"blk_{two.block_id}"))) == 0)

"""Hadoop's own DataNode at NameNodes of ours: handshake, reports, orders, a failover."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from datanode.process.node import DataNode
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.datanode_protocol.drain_check import read_page
from namenode_sim.datanode_protocol.keeper import KeeperRules
from namenode_sim.datanodes.draining import (
    Bean,
    Deletions,
    DrainRules,
    query_of,
    question_to,
    read,
)
from namenode_sim.datanodes.model import Node
from namenode_sim.datanodes.redundancy import note_hint
from namenode_sim.edits import ops
from namenode_sim.term.role import Role
from tests.datanode.block_client import Place, hang_up, write_whole
from tests.datanode.stores import block
from tests.interop.hadoop_server import Hadoop, JavaObject
from tests.namenode_sim.datanode_protocol.served import (
    RULES,
    NameNode,
    data_node,
    given,
    hold_alike,
    name_node,
    seen,
)
from tests.needs import JAVA_COMPILER

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

DATA = bytes(range(251)) * 40


@asynccontextmanager
async def java_datanode(hadoop: Hadoop, folder: Path, *served: NameNode) -> AsyncIterator[None]:
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


@contextmanager
def deletions_held_up(hadoop: Hadoop, held: JavaObject) -> Iterator[None]:
    """Keep all DataNodes of Hadoop's from deleting anything until the end of the block."""
    injector = hadoop.hadoop.hdfs.server.datanode.DataNodeFaultInjector
    before = injector.get()
    injector.set(held)
    try:
        yield
    finally:
        held.release()
        injector.set(before)


def known(served: NameNode) -> Node | None:
    """Hadoop's DataNode."""
    nodes = served.cluster.nodes.values()
    return next((node for node in nodes if node.software_version == "3.5.0"), None)


def has_reported(served: NameNode) -> bool:
    node = known(served)
    held = [] if node is None else [one.held for one in node.storages.values()]
    return bool(held) and all(one.reports for one in held)


def is_confirmed(served: NameNode) -> bool:
    node = known(served)
    return node is not None and all(one.held.confirmed for one in node.storages.values())


@pytest.mark.row("B6")
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


PATH, ID = "/two-replicas", block().block_id
OTHERS_BYTES = 1 << 28
"""Our DataNode keeps this free, and so has the fuller storage, which is emptied first."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The former active has ordered Hadoop's DataNode to delete its replica, which takes long.

    ``active`` is the new one, which finds that there is one replica too many.
    """

    active: NameNode
    held: JavaObject
    ours: DataNode
    folder: Path

    @property
    def replicas(self) -> list[str]:
        """On whose disks there is one."""
        found = self.folder.rglob(f"blk_{ID}")
        return sorted(path.relative_to(self.folder).parts[0] for path in found)

    @property
    def java(self) -> Node:
        node = known(self.active)
        assert node is not None
        return node


@asynccontextmanager
async def taken_over(hadoop: Hadoop, folder: Path, rules: KeeperRules) -> AsyncIterator[Scene]:
    held = await asyncio.to_thread(hadoop.compiled, "nnha.HeldDeletions")
    async with AsyncExitStack() as running:
        former = await running.enter_async_context(name_node(active=True))
        active = await running.enter_async_context(name_node(rules=rules))
        both = (former, active)
        ours = await running.enter_async_context(
            data_node(folder / "ours", *both, kept_free=OTHERS_BYTES)
        )
        await running.enter_async_context(java_datanode(hadoop, folder, *both))
        await seen(lambda: has_reported(former), lambda: has_reported(active))
        node, data_port = known(former), ours.status()["data_port"]
        assert node is not None
        assert isinstance(data_port, int)
        for served in both:
            served.apply(*given(ID, block().stamp, len(DATA), PATH), ops.SetReplication(PATH, 2))
        await write_whole([Place(data_port), Place(node.id.transfer_port)], block(), DATA)
        await seen(*(lambda served=served: len(served.holders(ID)) == 2 for served in both))
        await seen(lambda: is_confirmed(former))
        running.enter_context(deletions_held_up(hadoop, held))
        former.apply(ops.SetReplication(PATH, 1))
        note_hint(former.cluster, ID, DeleteHint(node.id.uuid, ""))
        await seen(held.hasBegun)
        former.become(Role.CLOSING, Role.STANDBY)
        active.apply(ops.SetReplication(PATH, 1), ops.StartLogSegment())
        active.become_active()
        yield Scene(active, held, ours, folder)


def are_confirmed(served: NameNode) -> bool:
    return all(storage.confirmed for storage in served.cluster.blocks.map.storages)


@JAVA_COMPILER.mark
@pytest.mark.row("B34")
async def test_b34_no_replica_is_lost_by_a_deletion_that_takes_long(
    hadoop: Hadoop, tmp_path: Path
) -> None:
    async with taken_over(hadoop, tmp_path, RULES) as scene:
        active = scene.active
        await seen(lambda: scene.java.drain.commands_done)
        found = await read_page(scene.java.id, query_of(question_to(active.cluster, scene.java)))
        assert read(Bean.DELETIONS, found) == Deletions(1)
        assert len(active.holders(ID)) == 2
        assert len(active.cluster.blocks.rechecks.postponed) == 1
        scene.held.release()
        await seen(lambda: are_confirmed(active))
        await seen(lambda: len(active.cluster.blocks.rechecks.postponed) == 0)
        assert len(active.cluster.blocks.invalidations) == 0
        (holder,) = active.holders(ID)
        assert holder not in scene.java.storages
        assert scene.replicas == ["ours"]


@JAVA_COMPILER.mark
@pytest.mark.long  # it shows what Hadoop loses, and why ours waits
async def test_by_hadoops_rule_the_last_replica_is_lost(hadoop: Hadoop, tmp_path: Path) -> None:
    rules = replace(RULES, draining=DrainRules(check=False))
    async with taken_over(hadoop, tmp_path, rules) as scene:
        await seen(lambda: scene.replicas == ["java"])
        assert are_confirmed(scene.active)
        scene.held.release()
        await seen(lambda: scene.replicas == [])


@pytest.mark.parametrize("source", ["ours", "Hadoop's"])
async def test_who_gets_a_damaged_copy_tells_of_its_source(
    hadoop: Hadoop, tmp_path: Path, source: str
) -> None:
    async with AsyncExitStack() as running:
        active = await running.enter_async_context(name_node(active=True))
        ours = await running.enter_async_context(data_node(tmp_path / "ours", active))
        await running.enter_async_context(java_datanode(hadoop, tmp_path, active))
        await seen(lambda: has_reported(active))
        java = known(active)
        assert java is not None
        port = ours.status()["data_port"] if source == "ours" else java.id.transfer_port
        assert isinstance(port, int)
        active.apply(*given(ID, block().stamp, len(DATA), PATH))
        await write_whole([Place(port)], block(), DATA)
        await seen(lambda: len(active.holders(ID)) == 1)
        (holder,) = active.holders(ID)
        (replica,) = tmp_path.rglob(f"blk_{ID}")
        damaged = bytearray(replica.read_bytes())
        damaged[5000] ^= 4
        replica.write_bytes(damaged)
        active.apply(ops.SetReplication(PATH, 2))
        await seen(lambda: active.cluster.blocks.map.corrupt_count() == 1)
        assert active.holders(ID) == [holder], "and nobody took it"

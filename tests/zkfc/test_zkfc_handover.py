"""Planned hand-overs (hadoop-ha 3.7 and 8.1), without Hadoop's false failures (W7, W8)."""

from pathlib import Path

import pytest

from deploy.local.zookeeper import ZooKeeper
from ha.conf.topology import HostPort
from ha.service.errors import AccessDenied, ServiceFailed
from ha.service.model import ServiceState
from ha.service.zkfc_client import ZkfcClient
from tests.zkfc.zkfc_world import Node, World, until, world

pytestmark = pytest.mark.zookeeper


async def _to(node: Node) -> None:
    client = await node.rpc()
    try:
        await client.graceful_failover(deadline_seconds=30.0)
    finally:
        await client.close()


def _transitions(here: World) -> list[int]:
    return [node.namenode.active_transitions for node in here.nodes]


async def test_there_and_back_without_fencing(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as here:
        one, two = here.nodes
        await _to(two)
        await here.active(two)
        await here.standby(one)
        await _to(one)
        await here.active(one)
        await _to(one)  # already: no change
        assert here.fenced() == []
        assert _transitions(here) == [2, 1]


async def test_three_nodes_take_turns(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2", "nn3") as here:
        one, two, three = here.nodes
        for target in (two, three, one):
            await _to(target)
            await here.active(target)
            for other in here.nodes:
                if other is not target:
                    await here.standby(other)
        assert here.fenced() == []
        assert _transitions(here) == [2, 1, 1]


async def test_to_an_unhealthy_node_is_refused(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as here:
        one, two = here.nodes
        two.namenode.healthy = False
        await until(lambda: not two.zkfc.candidacy.joined, "nn2 out")
        with pytest.raises(ServiceFailed, match=r"nn2.*is not currently healthy"):
            await _to(two)
        assert one.namenode.state is ServiceState.ACTIVE


async def test_a_target_that_cannot_become_active_says_why(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as here:
        one, two = here.nodes
        two.namenode.fail_to_become_active = True
        with pytest.raises(ServiceFailed, match=r"Couldn't make NameNode .*nn2.*injected failure"):
            await _to(two)
        await here.active(one)
        assert here.fenced() == []


async def test_an_active_that_refuses_standby_is_fenced_once(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as here:
        one, two = here.nodes
        one.namenode.fail_to_become_standby = True
        here.resource.release("nn1")  # the fence of the test only takes a note
        await _to(two)
        await here.active(two)
        assert here.fenced() == ["nn1"]


async def test_an_active_that_cannot_be_fenced_fails_the_hand_over(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2") as here:
        one, two = here.nodes
        one.namenode.fail_to_become_standby = True
        (tmp_path / "broken").touch()
        with pytest.raises(ServiceFailed, match=r"Unable to fence .*nn1"):
            await _to(two)
        await here.active(one)


async def test_a_dead_third_controller_does_not_block_it(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    # hadoop-ha W8: in Hadoop any silent controller fails a planned failover.
    async with world(zookeeper.connect, tmp_path, "nn1", "nn2", "nn3") as here:
        _, two, three = here.nodes
        await three.stop()
        await _to(two)
        await here.active(two)
        assert here.fenced() == []


async def test_strangers_may_not_ask(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    async with world(zookeeper.connect, tmp_path, "nn1") as here:
        (one,) = here.nodes
        address = HostPort("127.0.0.1", one.zkfc.port)
        client = await ZkfcClient.open(address, deadline_seconds=5.0, user="mallory")
        with pytest.raises(AccessDenied, match=r"mallory"):
            await client.cede_active(1000, deadline_seconds=5.0)
        await client.close()
        assert one.namenode.state is ServiceState.ACTIVE

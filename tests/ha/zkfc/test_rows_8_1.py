"""Hadoop's TestZKFailoverController, row by row, on a real ZooKeeper.

The rows about formatting and exit codes are in test_zkfc_command.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deploy.local.cluster import zookeeper as cluster_zookeeper
from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor
from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Role
from ha.elector.zookeeper.znodes import read_active
from ha.service.errors import ServiceFailed
from ha.service.model import ServiceState
from tests import local_services
from tests.ha.zkfc.zkfc_world import Node, World, Worlds, is_active, world

pytestmark = pytest.mark.zookeeper


async def hand_over_to(node: Node) -> None:
    """Hand over as haadmin -failover does it."""
    client = await node.rpc()
    try:
        await client.graceful_failover(deadline_seconds=60.0)
    finally:
        await client.close()


def transitions(here: World) -> list[int]:
    return [node.namenode.active_transitions for node in here.nodes]


async def holder(here: World) -> str | None:
    found = await read_active(here.zookeeper, deadline_seconds=10.0)
    return None if found is None else found.namenode


@asynccontextmanager
async def own_server(folder: Path) -> AsyncIterator[tuple[ZooKeeper, Supervisor]]:
    with Supervisor(folder) as supervisor:
        (port,) = free_ports(1)
        server = cluster_zookeeper.start_zookeeper(
            supervisor, java=find_java(wrapper_directory=folder), port=port
        )
        await asyncio.to_thread(cluster_zookeeper.wait_for_zookeeper, server)
        yield server, supervisor


@pytest.mark.row("8.1 testAutoFailoverOnBadHealth", "8.11 ZK.testFailoverAndBackOnNNShutdown")
async def test_row_8_1_auto_failover_on_bad_health(here: World) -> None:
    one, two = here.nodes
    one.namenode.healthy = False
    await here.active(two)
    assert one.zkfc.believed is ServiceState.INITIALIZING
    assert here.fenced() == []  # it answered its successor's request
    await two.namenode.cut_off()
    one.namenode.healthy = True
    await here.active(one)
    assert here.fenced() == ["nn2"]
    # It comes back as what it was, and its own controller, having lost the lock, demotes it.
    await two.namenode.start()
    await here.standby(two)


@pytest.mark.row("8.1 testAutoFailoverOnBadState")
async def test_row_8_1_auto_failover_on_bad_state(here: World) -> None:
    one, two = here.nodes
    here.resource.release("nn1")
    one.namenode.state = ServiceState.STANDBY
    await here.active(two)
    await here.standby(one)


@pytest.mark.row("8.1 testAutoFailoverOnLostZKSession", because="the session is always ZooKeeper's")
async def test_row_8_1_auto_failover_on_lost_session(here: World) -> None:
    one, two = here.nodes
    for _ in range(2):
        await here.move_by_expiry(one, two)
        await here.move_by_expiry(two, one)


@pytest.mark.row("8.1 testDontFailoverToUnhealthyNode", because="a node is always a NameNode here")
async def test_row_8_1_dont_failover_to_unhealthy(here: World) -> None:
    one, two = here.nodes
    two.namenode.healthy = False
    await here.until(lambda: not two.zkfc.candidacy.joined, "nn2 out")
    one.gate.shut()
    await here.expire(one)
    await here.until(lambda: one.zkfc.elector.state.role is Role.NEUTRAL, "nn1 neutral")
    end = asyncio.get_running_loop().time() + 1.0
    while asyncio.get_running_loop().time() < end:
        assert await holder(here) is None
    one.gate.open()
    # Its NameNode has been active all the time.
    await here.until(lambda: one.zkfc.elector.state.role is Role.ACTIVE, "nn1 has the lock")
    assert await holder(here) == "nn1"
    assert two.namenode.active_transitions == 0


@pytest.mark.row("8.1 testBecomingActiveFails")
async def test_row_8_1_becoming_active_fails(here: World) -> None:
    one, two = here.nodes
    two.namenode.fail_to_become_active = True
    one.namenode.healthy = False
    await here.until(lambda: two.namenode.active_transitions >= 2, "tried twice")
    assert two.zkfc.attempts.last is not None
    assert "injected failure" in two.zkfc.attempts.last.text
    assert one.zkfc.believed is ServiceState.INITIALIZING
    assert here.resource.holder is None
    one.namenode.healthy = True
    await here.active(one)
    await here.standby(two)
    two.namenode.fail_to_become_active = False
    one.namenode.healthy = False
    await here.active(two)


@pytest.mark.row("8.1 testZooKeeperFailure", "W20")
async def test_row_8_1_zookeeper_failure(tmp_path: Path) -> None:
    async with (
        own_server(tmp_path) as (server, supervisor),
        world(server.connect, tmp_path, "nn1", "nn2", session_timeout_seconds=15.0) as here,
    ):
        one, two = here.nodes
        sessions = [node.keeper.session_id for node in here.nodes]
        server.process.kill()
        await here.until(
            lambda: all(n.zkfc.elector.state.role is Role.NEUTRAL for n in here.nodes),
            "both neutral",
        )
        assert one.namenode.state is ServiceState.ACTIVE
        assert two.namenode.state is ServiceState.STANDBY
        trouble = one.zkfc.failover_obstacle()
        assert trouble is not None
        assert "ZooKeeper" in trouble
        await asyncio.to_thread(local_services.restart_zookeeper, supervisor, server)
        await here.until(lambda: one.zkfc.elector.state.role is Role.ACTIVE, "active again")
        await here.standby(two)
        assert [node.keeper.session_id for node in here.nodes] == sessions
        assert transitions(here) == [1, 0]


@pytest.mark.row("8.1 testCedeActive")
async def test_row_8_1_cede_active(here: World) -> None:
    one, two = here.nodes
    loop = asyncio.get_running_loop()
    client = await one.rpc()
    begun = loop.time()
    await client.cede_active(8000, deadline_seconds=20.0)
    # Not when the time is over.  Hadoop asks for less than 1 s; this machine may be busy.
    assert loop.time() - begun < 6.0
    await client.close()
    assert one.zkfc.elector.state.role is Role.INIT
    await here.active(two)
    await here.standby(one)
    assert loop.time() - begun > 2.8
    assert here.fenced() == []


@pytest.mark.row("8.1 testGracefulFailover")
@pytest.mark.row(
    "8.11 ZK.testManualFailover", because="a manual failover under controllers is a graceful one"
)
async def test_row_8_1_graceful_failover(here: World) -> None:
    one, two = here.nodes
    await hand_over_to(two)
    await here.active(two)
    await here.standby(one)
    assert await holder(here) == "nn2"
    await hand_over_to(one)
    await here.active(one)
    assert await holder(here) == "nn1"
    await hand_over_to(one)  # already: no change
    assert here.fenced() == []
    assert transitions(here) == [2, 1]


@pytest.mark.row("8.1 testGracefulFailoverToUnhealthy")
async def test_row_8_1_graceful_failover_to_unhealthy(here: World) -> None:
    one, two = here.nodes
    two.namenode.healthy = False
    await here.until(lambda: not two.zkfc.candidacy.joined, "nn2 out")
    with pytest.raises(ServiceFailed, match=r"nn2.*is not currently healthy"):
        await hand_over_to(two)
    assert one.namenode.state is ServiceState.ACTIVE
    assert transitions(here) == [1, 0]


@pytest.mark.row("8.1 testGracefulFailoverFailBecomingActive")
async def test_row_8_1_graceful_failover_fail_becoming_active(here: World) -> None:
    one, two = here.nodes
    two.namenode.fail_to_become_active = True
    with pytest.raises(ServiceFailed, match=r"Couldn't make NameNode .*nn2.*injected failure"):
        await hand_over_to(two)
    await here.active(one)
    assert here.fenced() == []


@pytest.mark.row("8.1 testGracefulFailoverFailBecomingStandby")
async def test_row_8_1_graceful_failover_fail_becoming_standby(here: World) -> None:
    one, two = here.nodes
    one.namenode.fail_to_become_standby = True
    await hand_over_to(two)
    await here.active(two)
    assert here.fenced() == ["nn1"]
    one.namenode.fail_to_become_standby = False
    await here.standby(one)


@pytest.mark.row("8.1 testGracefulFailoverFailBecomingStandbyAndFailFence")
async def test_row_8_1_graceful_failover_fail_becoming_standby_and_fail_fence(
    here: World, tmp_path: Path
) -> None:
    one, two = here.nodes
    one.namenode.fail_to_become_standby = True
    (tmp_path / "broken").touch()
    with pytest.raises(ServiceFailed, match=r"Unable to fence .*nn1"):
        await hand_over_to(two)
    await here.active(one)
    assert transitions(here)[1] == 0


@pytest.mark.row("8.1 testOneOfEverything")
async def test_row_8_1_one_of_everything(tmp_path: Path) -> None:
    async with (
        own_server(tmp_path) as (server, supervisor),
        world(server.connect, tmp_path, "nn1", "nn2") as here,
    ):
        one, two = here.nodes
        await here.move_by_expiry(one, two)
        await here.move_by_expiry(two, one)
        server.process.kill()
        await here.until(
            lambda: all(n.zkfc.elector.state.role is Role.NEUTRAL for n in here.nodes),
            "both neutral",
        )
        await asyncio.to_thread(local_services.restart_zookeeper, supervisor, server)
        # The sessions may have ended in between: then either may win.
        first = await here.one_active()
        other = two if first is one else one
        first.namenode.healthy = False
        await here.active(other)
        first.namenode.healthy = True
        await here.standby(first)
        other.namenode.healthy = False
        await here.active(first)
        other.namenode.healthy = True
        await here.standby(other)
        await hand_over_to(other)
        await hand_over_to(first)
        assert await here.one_active() is first


@pytest.mark.row("8.1 testGracefulFailoverMultipleZKfcs")
async def test_row_8_1_graceful_failover_multiple_zkfcs(worlds: Worlds) -> None:
    async with worlds("nn1", "nn2", "nn3") as here:
        one, two, three = here.nodes
        for target in (two, three, one):
            await hand_over_to(target)
            await here.active(target)
            assert await holder(here) == target.name
            assert await here.one_active() is target
        assert here.fenced() == []
        assert transitions(here) == [2, 1, 1]


async def _another_than(here: World, dead: Node) -> None:
    rest = [node for node in here.nodes if node is not dead]
    await here.until(lambda: any(map(is_active, rest)), "one of the others is active")


async def test_three_nodes_fail_over_round_the_ring_by_themselves(worlds: Worlds) -> None:
    """Kill each in turn while the third one's controller is there; it comes back later."""
    async with worlds("nn1", "nn2", "nn3") as here:
        victims = []
        for _ in range(4):
            active = await here.one_active()
            victims.append(active.name)
            await active.namenode.die()
            await _another_than(here, active)
            await active.namenode.start()
        last = await here.one_active()
        # Each was fenced once for each death, and by its successor alone.
        assert here.fenced() == victims
        other = next(node for node in here.nodes if node is not last)
        await hand_over_to(other)
        assert await here.one_active() is other
        assert here.fenced() == victims

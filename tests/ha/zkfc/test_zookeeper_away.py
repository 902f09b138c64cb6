"""ZooKeeper away for longer than a session: nothing moves, and status says so."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deploy.local.cluster import zookeeper as cluster_zookeeper
from deploy.local.cluster.java import find_java
from deploy.local.cluster.ports import free_ports
from deploy.local.cluster.processes import Supervisor
from deploy.local.cluster.zookeeper import ZooKeeper
from ha.elector.model import Link
from ha.service.errors import NO_ZOOKEEPER_TO_ASK, ServiceFailed
from ha.service.model import ServiceState
from ha.zkfc.settings.settings import ZkfcSettings
from tests import local_services
from tests.ha.zkfc.test_rows_8_1 import hand_over_to
from tests.ha.zkfc.zkfc_world import Node, World, until, world

pytestmark = pytest.mark.zookeeper

SESSION_SECONDS = 4.0
WAIT_SECONDS = 40.0


@dataclass
class Server:
    """A ZooKeeper of our own, to be killed and started again."""

    supervisor: Supervisor
    zookeeper: ZooKeeper

    async def gone(self) -> None:
        await asyncio.to_thread(self.zookeeper.process.kill)

    async def back(self) -> None:
        self.zookeeper = await asyncio.to_thread(
            local_services.restart_zookeeper, self.supervisor, self.zookeeper
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    java = find_java(wrapper_directory=tmp_path)
    with Supervisor(tmp_path / "zookeeper") as supervisor:
        zookeeper = cluster_zookeeper.start_zookeeper(supervisor, java=java, port=free_ports(1)[0])
        cluster_zookeeper.wait_for_zookeeper(zookeeper)
        yield Server(supervisor, zookeeper)


def _status(node: Node) -> str:
    zkfc = node.zkfc
    page = zkfc.observer.status(
        zkfc.monitor.state,
        zkfc.elector.state,
        zkfc.candidacy,
        zkfc.elector.keeper,
        off_because=zkfc.absence.describe(),
    )
    return str(page["failover_off_because"])


async def _away(made: World) -> None:
    def noticed() -> bool:
        return all(node.zkfc.elector.state.link is not Link.CONNECTED for node in made.nodes)

    await until(noticed, "everybody misses ZooKeeper")


async def _one_active(made: World) -> Node:
    """Wait until everybody is in the election again, with one active."""

    def settled() -> bool:
        states = sorted(node.zkfc.believed for node in made.nodes)
        told = [node.zkfc.absence.describe() for node in made.nodes]
        return states == [ServiceState.ACTIVE, ServiceState.STANDBY] and not any(told)

    await until(settled, made.story(), seconds=WAIT_SECONDS)
    return next(node for node in made.nodes if node.zkfc.believed is ServiceState.ACTIVE)


@pytest.mark.row("W20")
async def test_w20_nothing_moves_however_long_zookeeper_is_away(
    server: Server, tmp_path: Path
) -> None:
    async with world(
        server.zookeeper.connect, tmp_path, "nn1", "nn2", session_timeout_seconds=SESSION_SECONDS
    ) as made:
        first, second = made.nodes
        assert _status(first) == "None"
        await server.gone()
        await _away(made)
        # What ends Hadoop's ZKFC: it wants to leave and join again while no server answers.
        second.namenode.healthy = False
        await until(lambda: not second.zkfc.elector.state.wanted, "left")
        second.namenode.healthy = True
        await until(lambda: second.zkfc.elector.state.wanted, "joined again")
        with pytest.raises(ServiceFailed, match=f"^{NO_ZOOKEEPER_TO_ASK}"):
            await hand_over_to(second)
        assert second.zkfc.elector.state.wanted
        await asyncio.sleep(SESSION_SECONDS + 1)  # the length of the absence is what is tested
        assert first.namenode.state is ServiceState.ACTIVE
        assert second.namenode.active_transitions == 0
        assert all(node.task is not None and not node.task.done() for node in made.nodes)
        for node in made.nodes:
            assert "failover is off" in _status(node)
            assert "failover is off" in str(node.zkfc.failover_obstacle())
        await server.back()
        await _one_active(made)
        assert made.fenced() == []
        assert first.namenode.state is ServiceState.ACTIVE
        assert first.namenode.active_transitions == 1
        assert [_status(node) for node in made.nodes] == ["None", "None"]


def _stepping_down(settings: ZkfcSettings) -> ZkfcSettings:
    return replace(settings, step_down_after_seconds=1.0)


@pytest.mark.row("W20")
async def test_w20_an_active_steps_down_after_the_time_that_the_operator_has_set(
    server: Server, tmp_path: Path
) -> None:
    async with world(
        server.zookeeper.connect, tmp_path, "nn1", "nn2",
        session_timeout_seconds=SESSION_SECONDS, settings_hook=_stepping_down,
    ) as made:  # fmt: skip
        first, second = made.nodes
        loop = asyncio.get_running_loop()
        await server.gone()
        await _away(made)
        began = loop.time()
        assert "made standby" in _status(first)
        await until(lambda: first.namenode.state is ServiceState.STANDBY, "stepped down")
        assert loop.time() - began > 0.7
        # The NameNode is standby a moment before its controller has the answer.
        why = "no ZooKeeper has answered"
        await until(lambda: why in first.zkfc.candidacy.out_because, "it says why")
        await until(lambda: first.zkfc.elector.state.wanted, "a candidate again")
        await server.back()
        owner = await _one_active(made)
        assert owner.namenode.state is ServiceState.ACTIVE
        other = second if owner is first else first
        assert other.namenode.state is ServiceState.STANDBY


@pytest.mark.row("W20")
async def test_w20_a_zookeeper_that_is_back_in_time_makes_nobody_step_down(
    server: Server, tmp_path: Path
) -> None:
    async with world(
        server.zookeeper.connect, tmp_path, "nn1", "nn2",
        session_timeout_seconds=8.0,
        settings_hook=lambda settings: replace(settings, step_down_after_seconds=30.0),
    ) as made:  # fmt: skip
        first, _ = made.nodes
        await server.gone()
        await _away(made)
        await server.back()
        assert await _one_active(made) is first
        assert first.zkfc.absence._timer is None
        assert not any(word.startswith("standby") for word in first.namenode.seen)

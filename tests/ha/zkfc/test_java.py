"""Hadoop's own clients, of which its ``haadmin`` is made, drive our controllers and NameNode."""

import asyncio
import getpass
from collections.abc import Iterator

import pytest
from py4j.protocol import Py4JJavaError

from ha.rpc.java_names import ACCESS_CONTROL, HEALTH_CHECK_FAILED, SERVICE_FAILED
from ha.rpc.server import RpcServer
from ha.service.ha_service import ha_service_protocol
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.ha_service import NameNodeHaService
from namenode_sim.term.gate import Gate
from namenode_sim.term.namenode import NameNode
from tests.ha.rpc.java_peer import JavaObject, JavaPeer, java_fault, java_peer
from tests.ha.zkfc.zkfc_world import World, until
from tests.namenode_sim.term.memory_journal import MemoryJournal

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def peer() -> Iterator[JavaPeer]:
    with java_peer() as started:
        yield started


@pytest.mark.zookeeper
async def test_java_hands_over_and_cedes_by_our_controllers(here: World, peer: JavaPeer) -> None:
    first, second = here.nodes
    client = peer.zkfc_client(second.zkfc.port)
    await asyncio.to_thread(client.gracefulFailover)
    await here.active(second)
    await here.standby(first)
    assert here.fenced() == []
    # To the one that is active already: done at once.
    await asyncio.to_thread(client.gracefulFailover)
    await asyncio.to_thread(client.cedeActive, 60_000)
    await here.active(first)
    await asyncio.to_thread(client.cedeActive, -1)
    await here.standby(second)
    second.namenode.healthy = False
    await until(lambda: second.zkfc.failover_obstacle(), "unhealthy")
    with pytest.raises(Py4JJavaError) as caught:
        await asyncio.to_thread(client.gracefulFailover)
    kind, text = java_fault(caught.value)
    assert kind == SERVICE_FAILED
    assert "the toy is switched to unhealthy" in text
    await here.active(first)
    client.close()


async def test_java_drives_our_namenode(peer: JavaPeer) -> None:
    journal = MemoryJournal()
    disk: list[str] = []

    async def nobody_else() -> bool:
        return False

    node = NameNode(
        name="nn1",
        namespace=Namespace.empty("root"),
        journal=journal.access(),
        gate=Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0),
        tail_period_seconds=0.01,
    )
    node.start()
    face = NameNodeHaService(
        node,
        superuser=getpass.getuser(),
        automatic_failover=True,
        disk_trouble=lambda: disk[0] if disk else None,
    )
    server = RpcServer([ha_service_protocol(face)])
    port = await server.start("127.0.0.1", 0)
    try:
        await _drive(peer, peer.service_client(port), disk)
    finally:
        await server.stop()
        await node.stop()


async def _drive(peer: JavaPeer, client: JavaObject, disk: list[str]) -> None:
    def state() -> str:
        return str(client.getServiceStatus().getState().name())

    by_zkfc = peer.request_info("REQUEST_BY_ZKFC")
    assert await asyncio.to_thread(state) == "STANDBY"
    await asyncio.to_thread(client.monitorHealth)
    await asyncio.to_thread(client.transitionToActive, by_zkfc)
    assert await asyncio.to_thread(state) == "ACTIVE"
    await asyncio.to_thread(client.transitionToActive, by_zkfc)  # again: no change, no error
    with pytest.raises(Py4JJavaError) as by_hand:
        await asyncio.to_thread(client.transitionToStandby, peer.request_info("REQUEST_BY_USER"))
    assert java_fault(by_hand.value)[0] == ACCESS_CONTROL
    with pytest.raises(Py4JJavaError) as observer:
        await asyncio.to_thread(client.transitionToObserver, by_zkfc)
    assert java_fault(observer.value)[0] == SERVICE_FAILED
    disk.append("the disk is full")
    with pytest.raises(Py4JJavaError) as unwell:
        await asyncio.to_thread(client.monitorHealth)
    assert java_fault(unwell.value)[0] == HEALTH_CHECK_FAILED
    forced = peer.request_info("REQUEST_BY_USER_FORCED")
    await asyncio.to_thread(client.transitionToStandby, forced)
    assert await asyncio.to_thread(state) == "STANDBY"
    client.close()

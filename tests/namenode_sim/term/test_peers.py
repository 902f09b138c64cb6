"""The other NameNodes' states: one query for many callers, never older than the call."""

import asyncio

from ha.conf.topology import HostPort, NameNodeAddress
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.errors import HealthCheckFailed, ServiceFailed
from ha.service.ha_service import ha_service_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus
from namenode_sim.transfer.peers import Peers

HOST = "127.0.0.1"


class Slow:
    """A NameNode that computes its first answer at once, and sends it when asked to."""

    def __init__(self) -> None:
        self.state = ServiceState.ACTIVE
        self.send = asyncio.Event()
        self.asked = 0

    async def status(self) -> ServiceStatus:
        self.asked += 1
        answer = ServiceStatus(self.state, ready_to_become_active=True)
        if self.asked == 1:
            await self.send.wait()
        return answer

    async def monitor_health(self) -> None:
        raise HealthCheckFailed("not asked for here")

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        raise ServiceFailed("not asked for here")

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        raise ServiceFailed("not asked for here")


def address(port: int) -> NameNodeAddress:
    rpc, off = HostPort(HOST, port), HostPort(HOST, 0)
    return NameNodeAddress("ns1", "nn1", rpc, rpc, off, off, off, rpc)


async def test_an_answer_from_before_the_question_counts_for_nobody() -> None:
    """Spare its client a NameNode that was killed, and a back-off of a second."""
    namenode = Slow()
    server = RpcServer([ha_service_protocol(namenode)])
    peers = Peers([address(await server.start(HOST, 0))], deadline_seconds=10.0)
    first = asyncio.create_task(peers.any_active())
    async with asyncio.timeout(30):
        while not namenode.asked:
            await asyncio.sleep(0.001)
    namenode.state = ServiceState.STANDBY
    late = [asyncio.create_task(peers.any_active()) for _ in range(20)]
    await asyncio.sleep(0)
    namenode.send.set()
    assert await first
    assert not any(await asyncio.gather(*late))
    assert namenode.asked == 2  # once more, for all of them together
    await peers.close()
    await server.stop()


async def test_a_peer_whose_connection_was_lost_is_asked_over_another() -> None:
    namenode = Slow()
    namenode.send.set()
    server = RpcServer([ha_service_protocol(namenode)])
    peers = Peers([address(await server.start(HOST, 0))], deadline_seconds=10.0)
    assert await peers.any_active()
    assert server.abort_connections() == 1
    assert not await peers.any_active()
    assert await peers.any_active()
    await peers.close()
    await server.stop()

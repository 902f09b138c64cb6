"""A request to become active that was overtaken is refused (hadoop-ha 8.13, scenario 14)."""

import asyncio

import pytest

from ha.conf.topology import HostPort
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.client import ServiceClient
from ha.service.errors import ServiceFailed
from ha.service.face import ha_service_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus

HOST = "127.0.0.1"
SECONDS = 30.0


class Toy:
    """Becomes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = ["standby"]

    async def status(self) -> ServiceStatus:
        return ServiceStatus(ServiceState(self.told[-1]), True)

    async def monitor_health(self) -> None:
        return None

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone: bool = False
    ) -> None:
        self.told.append("active")

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        self.told.append("standby")


async def test_8_13_14_a_promotion_that_was_overtaken_is_refused() -> None:
    toy = Toy()
    server = RpcServer([ha_service_protocol(toy)])
    port = await server.start(HOST, 0)
    client = await ServiceClient.open(HostPort(HOST, port), deadline_seconds=SECONDS)

    async def promote(turn: int) -> None:
        await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=SECONDS, turn=turn)

    async def demote(turn: int) -> None:
        await client.transition_to_standby(RequestSource.ZKFC, deadline_seconds=SECONDS, turn=turn)

    try:
        async with asyncio.timeout(SECONDS):
            await promote(10)
            await demote(12)
            with pytest.raises(ServiceFailed, match="late"):
                await promote(10)
            assert toy.told[-1] == "standby"
            await demote(11)  # an older one takes nothing back
            with pytest.raises(ServiceFailed, match="late"):
                await promote(11)
            await promote(12)  # who fenced this NameNode under its lock may promote it
            assert toy.told[-1] == "active"
            await demote(0)
            await promote(0)  # by hand, or by a controller that does not number its requests
            assert toy.told[-1] == "active"
    finally:
        await client.close()
        await server.stop()

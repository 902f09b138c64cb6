"""A request to become active that was overtaken is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ha.conf.topology import HostPort
from ha.daemon.identity import clock
from ha.rpc.proto.ha_service_pb2 import HARequestSource, HAStateChangeRequestInfoProto
from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.client import ServiceClient
from ha.service.errors import ServiceFailed
from ha.service.ha_service import ha_service_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus

HOST = "127.0.0.1"
SECONDS = 30.0


class Toy:
    def __init__(self) -> None:
        self.told: list[str] = ["standby"]
        self.gone_until = -1.0

    async def status(self) -> ServiceStatus:
        return ServiceStatus(ServiceState(self.told[-1]), True)

    async def monitor_health(self) -> None:
        return None

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        self.told.append("active")
        self.gone_until = predecessor_gone_until

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        self.told.append("standby")


@asynccontextmanager
async def served(toy: Toy) -> AsyncIterator[ServiceClient]:
    server = RpcServer([ha_service_protocol(toy)])
    port = await server.start(HOST, 0)
    client = await ServiceClient.open(HostPort(HOST, port), deadline_seconds=SECONDS)
    try:
        async with asyncio.timeout(SECONDS):
            yield client
    finally:
        await client.close()
        await server.stop()


async def test_8_13_14_a_promotion_that_was_overtaken_is_refused() -> None:
    toy = Toy()
    async with served(toy) as client:

        async def promote(turn: int) -> None:
            await client.transition_to_active(
                RequestSource.ZKFC, deadline_seconds=SECONDS, turn=turn
            )

        async def demote(turn: int) -> None:
            await client.transition_to_standby(
                RequestSource.ZKFC, deadline_seconds=SECONDS, turn=turn
            )

        await promote(10)
        await demote(12)
        with pytest.raises(ServiceFailed, match="late"):
            await promote(10)
        assert toy.told[-1] == "standby"
        await demote(11)  # an older one takes nothing back
        with pytest.raises(ServiceFailed, match="late"):
            await promote(11)
        await promote(12)  # the controller that fenced this NameNode under its lock may promote it
        assert toy.told[-1] == "active"
        await demote(0)
        await promote(0)  # by hand, or by a controller that does not number its requests
        assert toy.told[-1] == "active"


async def test_a_claim_that_nobody_else_serves_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """End the claim: a stopped host reads it later, when another may have become active."""
    toy = Toy()
    until = asyncio.get_running_loop().time() + 5.0
    async with served(toy) as client:

        async def promote(until: float) -> float:
            await client.transition_to_active(
                RequestSource.ZKFC, deadline_seconds=SECONDS, predecessor_gone_until=until
            )
            return toy.gone_until

        assert await promote(0.0) == 0.0
        assert await promote(until) == pytest.approx(until, abs=1e-5)
        monkeypatch.setattr("ha.service.client.clock", lambda: "another boot")
        assert await promote(until) == 0.0, "its clock is not ours"


async def test_a_claim_without_an_end_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers of earlier versions make it."""
    toy = Toy()
    endless = HAStateChangeRequestInfoProto(
        reqSource=HARequestSource.REQUEST_BY_ZKFC, nnhaPredecessorGone=True, nnhaClock=clock()
    )
    monkeypatch.setattr("ha.service.client._info", lambda *_, **__: endless)
    async with served(toy) as client:
        await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=SECONDS)
    assert toy.gone_until == 0.0


async def test_a_promotion_is_late_that_was_asked_before_a_demotion_under_the_same_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bad schedule: asked, asked again and obeyed, demoted to give the lock up; then the first."""
    toy = Toy()
    early = HAStateChangeRequestInfoProto(
        reqSource=HARequestSource.REQUEST_BY_ZKFC,
        nnhaAskedMicros=int(asyncio.get_running_loop().time() * 1e6) - 1,
        nnhaClock=clock(),
    )
    foreign = HAStateChangeRequestInfoProto(
        reqSource=HARequestSource.REQUEST_BY_ZKFC, nnhaAskedMicros=1, nnhaClock="another boot"
    )
    async with served(toy) as client:

        async def promote() -> None:
            await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=SECONDS, turn=33)

        await promote()
        await client.transition_to_standby(RequestSource.ZKFC, deadline_seconds=SECONDS, turn=33)
        with monkeypatch.context() as patched:
            patched.setattr("ha.service.client._info", lambda *_, **__: early)
            with pytest.raises(ServiceFailed, match="late: this NameNode was told to be standby"):
                await promote()
            assert toy.told[-1] == "standby"
            patched.setattr("ha.service.client._info", lambda *_, **__: foreign)
            await promote()
            assert toy.told[-1] == "active", "another clock says nothing about ours"
        await client.transition_to_standby(RequestSource.ZKFC, deadline_seconds=SECONDS, turn=33)
        await promote()
        assert toy.told[-1] == "active", "asked since"

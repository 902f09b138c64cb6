"""A service's words cross the wire and come back: states, refusals, requesters, and -1."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from google.protobuf.message import Message

from ha.conf.topology import HostPort
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed, DeadlineExceeded
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, RETRIABLE, ZKFC_PROTOCOL
from ha.rpc.proto import ha_service_pb2
from ha.rpc.proto.ha_service_pb2 import GetServiceStatusRequestProto, GetServiceStatusResponseProto
from ha.rpc.proto.zkfc_pb2 import CedeActiveRequestProto, CedeActiveResponseProto
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer
from ha.service import errors
from ha.service.client import ServiceClient
from ha.service.faults import speaking_to
from ha.service.ha_service import ha_service_protocol, zkfc_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus
from ha.service.zkfc_client import ZkfcClient


class NameNode:
    """A service that remembers what it was asked, and refuses when the test wants that."""

    def __init__(self) -> None:
        self.says = ServiceStatus(ServiceState.STANDBY, ready_to_become_active=True)
        self.refusal: errors.ServiceRefused | None = None
        self.asked: list[tuple[str, object, str]] = []
        self.hang = asyncio.Event()
        self.hang.set()

    async def status(self) -> ServiceStatus:
        await self.hang.wait()
        return self.says

    async def monitor_health(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        await self._note("active", source, call)

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        await self._note("standby", source, call)

    async def cede_active(self, millis: int, call: Call) -> None:
        await self._note("cede", millis, call)

    async def graceful_failover(self, call: Call) -> None:
        await self._note("failover", None, call)

    async def _note(self, what: str, detail: object, call: Call) -> None:
        self.asked.append((what, detail, call.user))
        if self.refusal is not None:
            raise self.refusal


@asynccontextmanager
async def running(service: NameNode) -> AsyncIterator[HostPort]:
    server = RpcServer([ha_service_protocol(service), zkfc_protocol(service)])
    port = await server.start("127.0.0.1", 0)
    try:
        yield HostPort("127.0.0.1", port)
    finally:
        service.hang.set()
        await server.stop()


@asynccontextmanager
async def client_of(address: HostPort) -> AsyncIterator[ServiceClient]:
    client = await ServiceClient.open(address, deadline_seconds=5, user="hdfs")
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize("state", list(ServiceState))
@pytest.mark.parametrize("reason", ["", "The NameNode is in safemode"])
async def test_every_state_comes_back_with_its_readiness(state: ServiceState, reason: str) -> None:
    service = NameNode()
    service.says = ServiceStatus(state, not reason, reason)
    async with running(service) as address, client_of(address) as client:
        assert await client.status(deadline_seconds=5) == service.says


async def test_a_reason_in_no_utf8_is_still_a_text() -> None:
    # As bytes it could not be shown in ZooKeeper, and the controller would die of trying.
    broken = b"\x08\x01\x10\x00\x1a\x02\xff!"

    async def answer(_call: Call, _request: Message) -> Message:
        return GetServiceStatusResponseProto.FromString(broken)

    methods = {"getServiceStatus": Method(GetServiceStatusRequestProto, answer)}
    server = RpcServer([RpcProtocol(HA_SERVICE_PROTOCOL, methods)])
    port = await server.start("127.0.0.1", 0)
    try:
        async with client_of(HostPort("127.0.0.1", port)) as client:
            told = await client.status(deadline_seconds=5)
    finally:
        await server.stop()
    assert told == ServiceStatus(ServiceState.ACTIVE, False, "\ufffd!")


@pytest.mark.parametrize("state", list(ServiceState))
@pytest.mark.parametrize("ready", [True, False])
async def test_readiness_is_on_the_wire_in_every_state(state: ServiceState, ready: bool) -> None:
    service = NameNode()
    service.says = ServiceStatus(state, ready, "")
    async with running(service) as address:
        connection = await RpcConnection.open(
            address.host, address.port, protocol=HA_SERVICE_PROTOCOL, deadline_seconds=5
        )
        answer = await connection.call(
            "getServiceStatus",
            GetServiceStatusRequestProto(),
            GetServiceStatusResponseProto,
            deadline_seconds=5,
        )
        await connection.close()
    assert answer.HasField("readyToBecomeActive")
    assert answer.HasField("notReadyReason") is not ready


async def test_transitions_carry_who_asks() -> None:
    service = NameNode()
    async with running(service) as address, client_of(address) as client:
        for source in RequestSource:
            await client.transition_to_active(source, deadline_seconds=5)
            await client.transition_to_standby(source, deadline_seconds=5)
    assert service.asked == [
        (what, source, "hdfs") for source in RequestSource for what in ("active", "standby")
    ]


REFUSALS = [
    errors.ServiceFailed("Cannot: the journal is gone"),
    errors.AccessDenied("Request from ZK failover controller denied"),
    errors.HealthCheckFailed("The NameNode has no resources available"),
    errors.ServiceFaulted(RETRIABLE, "NameNode still not started"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: type(r).__name__)
async def test_a_refusal_keeps_its_kind_and_its_words(refusal: errors.ServiceRefused) -> None:
    service = NameNode()
    service.refusal = refusal
    async with running(service) as address, client_of(address) as client:
        with pytest.raises(type(refusal)) as from_health:
            await client.monitor_health(deadline_seconds=5)
        with pytest.raises(type(refusal)) as from_transition:
            await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=5)
        assert str(from_health.value) == str(from_transition.value) == str(refusal)
        service.refusal = None
        await client.monitor_health(deadline_seconds=5)


async def test_nobody_becomes_an_observer_here() -> None:
    source = ha_service_pb2.HARequestSource.ValueType(RequestSource.USER)
    request = ha_service_pb2.TransitionToObserverRequestProto(
        reqInfo=ha_service_pb2.HAStateChangeRequestInfoProto(reqSource=source)
    )
    async with running(NameNode()) as address:
        connection = await RpcConnection.open(
            address.host, address.port, protocol=HA_SERVICE_PROTOCOL, deadline_seconds=5
        )
        with (
            pytest.raises(errors.ServiceFailed, match="cannot become an observer"),
            speaking_to(str(address)),
        ):
            await connection.call(
                "transitionToObserver", request,
                ha_service_pb2.TransitionToObserverResponseProto, deadline_seconds=5,
            )  # fmt: skip
        await connection.close()


@pytest.mark.row("W17")
async def test_silence_says_whether_anything_was_sent() -> None:
    service = NameNode()
    service.hang.clear()
    async with running(service) as address, client_of(address) as client:
        with pytest.raises(errors.ServiceUnreachable, match=str(address)) as late:
            await client.status(deadline_seconds=0.05)
        assert late.value.sent
        assert isinstance(late.value.__cause__, DeadlineExceeded)
    with pytest.raises(errors.ServiceUnreachable) as refused:
        await ServiceClient.open(address, deadline_seconds=5)
    assert not refused.value.sent
    assert isinstance(refused.value.__cause__, ConnectFailed)


async def test_the_end_of_a_namenode_is_noticed() -> None:
    async with running(NameNode()) as address:
        client = await ServiceClient.open(address, deadline_seconds=5)
        watch = asyncio.create_task(client.wait_closed())
        await client.monitor_health(deadline_seconds=5)
        assert not watch.done()
    assert "closed by the peer" in str(await asyncio.wait_for(watch, 30))


@pytest.mark.parametrize(
    ("asked", "told"), [(10_000, 10_000), (0, 0), (-1, 0), (1 << 40, 0x7FFFFFFF)]
)
async def test_ceding_is_told_in_milliseconds(asked: int, told: int) -> None:
    service = NameNode()
    async with running(service) as address:
        client = await ZkfcClient.open(address, deadline_seconds=5, user="zkfc")
        await client.cede_active(asked, deadline_seconds=5)
        await client.graceful_failover(deadline_seconds=5)
        await client.close()
    assert service.asked == [("cede", told, "zkfc"), ("failover", None, "zkfc")]


async def test_javas_minus_one_is_understood() -> None:
    service = NameNode()
    request = CedeActiveRequestProto(millisToCede=4294967295)
    assert request.SerializeToString() == bytes.fromhex("08ffffffff0f")
    async with running(service) as address:
        connection = await RpcConnection.open(
            address.host, address.port, protocol=ZKFC_PROTOCOL, user="x", deadline_seconds=5
        )
        await connection.call("cedeActive", request, CedeActiveResponseProto, deadline_seconds=5)
        await connection.close()
    assert service.asked == [("cede", -1, "x")]


async def test_a_controller_says_why_it_cannot_take_over() -> None:
    service = NameNode()
    service.refusal = errors.ServiceFailed("nn1 is not currently healthy")
    async with running(service) as address:
        client = await ZkfcClient.open(address, deadline_seconds=5)
        with pytest.raises(errors.ServiceFailed, match="nn1 is not currently healthy"):
            await client.graceful_failover(deadline_seconds=5)
        await client.close()

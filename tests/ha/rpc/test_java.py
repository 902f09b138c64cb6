"""Hadoop 3.5.0's own client against our server, and ours against Hadoop's own server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import pytest
from py4j.protocol import Py4JJavaError

from ha.conf.topology import HostPort
from ha.rpc import java_names
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault
from ha.rpc.frames import frame_of
from ha.rpc.packets import PREAMBLE, CallKey, encode_call, encode_context
from ha.rpc.proto.ha_service_pb2 import MonitorHealthRequestProto, MonitorHealthResponseProto
from ha.rpc.server import Call, RpcServer
from ha.service.client import ServiceClient
from ha.service.errors import AccessDenied, HealthCheckFailed, ServiceFailed, ServiceRefused
from ha.service.ha_service import ha_service_protocol, zkfc_protocol
from ha.service.model import RequestSource, ServiceState, ServiceStatus
from ha.service.zkfc_client import ZkfcClient
from tests.ha.rpc import java_peer as rpc_java_peer
from tests.ha.rpc.wire import CLIENT, answers, header

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def peer() -> Iterator[rpc_java_peer.JavaPeer]:
    with rpc_java_peer.java_peer() as started:
        yield started


class Ours:
    def __init__(self) -> None:
        self.says = ServiceStatus(ServiceState.STANDBY, ready_to_become_active=True)
        self.refusal: ServiceRefused | None = None
        self.delay_seconds = 0.0
        self.asked: list[tuple[str, object, str]] = []

    async def status(self) -> ServiceStatus:
        await asyncio.sleep(self.delay_seconds)
        return self.says

    async def monitor_health(self) -> None:
        self._refuse()

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        self.asked.append(("active", source, call.user))
        self._refuse()

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        self.asked.append(("standby", source, call.user))
        self._refuse()

    async def cede_active(self, millis: int, call: Call) -> None:
        self.asked.append(("cede", millis, call.user))

    async def graceful_failover(self, _: Call) -> None:
        self._refuse()

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal


@asynccontextmanager
async def ours() -> AsyncIterator[tuple[Ours, int]]:
    service = Ours()
    server = RpcServer([ha_service_protocol(service), zkfc_protocol(service)])
    port = await server.start("127.0.0.1", 0)
    try:
        yield service, port
    finally:
        await server.stop()


# Java's client, our server.


@pytest.mark.parametrize("state", list(ServiceState))
@pytest.mark.parametrize("reason", ["", "The NameNode is in safemode"])
async def test_java_reads_our_status(
    peer: rpc_java_peer.JavaPeer, state: ServiceState, reason: str
) -> None:
    async with ours() as (service, port):
        service.says = ServiceStatus(state, not reason, reason)
        client = peer.service_client(port)
        status = await asyncio.to_thread(client.getServiceStatus)
        assert status.getState().toString() == state.value
        assert status.isReadyToBecomeActive() is not bool(reason)
        assert (status.getNotReadyReason() or "") == reason
        client.close()


async def test_java_transitions_us(peer: rpc_java_peer.JavaPeer) -> None:
    async with ours() as (service, port):
        client = peer.service_client(port)
        for name in ("REQUEST_BY_USER", "REQUEST_BY_USER_FORCED", "REQUEST_BY_ZKFC"):
            await asyncio.to_thread(client.transitionToActive, peer.request_info(name))
            await asyncio.to_thread(client.transitionToStandby, peer.request_info(name))
        client.close()
        assert [(what, source) for what, source, _ in service.asked] == [
            (what, source) for source in RequestSource for what in ("active", "standby")
        ]
        user = peer.hadoop.security.UserGroupInformation.getLoginUser().getShortUserName()
        assert {user for _, _, user in service.asked} == {user}


@pytest.mark.parametrize(
    ("refusal", "name"),
    [
        (HealthCheckFailed("disk full"), java_names.HEALTH_CHECK_FAILED),
        (ServiceFailed("journal lost"), java_names.SERVICE_FAILED),
        (AccessDenied("not you"), java_names.ACCESS_CONTROL),
    ],
)
async def test_java_gets_our_refusals_as_its_own_classes(
    peer: rpc_java_peer.JavaPeer, refusal: ServiceRefused, name: str
) -> None:
    async with ours() as (service, port):
        service.refusal = refusal
        client = peer.service_client(port)
        with pytest.raises(Py4JJavaError) as from_health:
            await asyncio.to_thread(client.monitorHealth)
        assert rpc_java_peer.java_fault(from_health.value) == (name, str(refusal))
        info = peer.request_info("REQUEST_BY_ZKFC")
        with pytest.raises(Py4JJavaError) as from_transition:
            await asyncio.to_thread(client.transitionToActive, info)
        assert rpc_java_peer.java_fault(from_transition.value) == (name, str(refusal))
        service.refusal = None
        await asyncio.to_thread(client.monitorHealth)
        client.close()


async def test_java_threads_share_one_connection(peer: rpc_java_peer.JavaPeer) -> None:
    async with ours() as (service, port):
        service.delay_seconds = 0.05
        client = peer.service_client(port)
        calls = [asyncio.to_thread(client.getServiceStatus) for _ in range(8)]
        states = {status.getState().toString() for status in await asyncio.gather(*calls)}
        assert states == {"standby"}
        client.close()


async def test_java_pings_while_it_waits(peer: rpc_java_peer.JavaPeer) -> None:
    async with ours() as (service, port):
        service.delay_seconds = 1.0
        client = peer.service_client(port, ipc_ping_interval="200", ipc_client_ping="true")
        status = await asyncio.to_thread(client.getServiceStatus)
        assert status.getState().toString() == "standby"
        client.close()


async def test_java_with_a_token_falls_back_to_simple(peer: rpc_java_peer.JavaPeer) -> None:
    async with ours() as (service, port):
        with peer.logged_in_with_a_token():
            client = peer.service_client(port)
            await asyncio.to_thread(
                client.transitionToStandby, peer.request_info("REQUEST_BY_USER")
            )
            client.close()
        assert service.asked == [("standby", RequestSource.USER, "alice")]


async def test_java_asks_our_controller(peer: rpc_java_peer.JavaPeer) -> None:
    async with ours() as (service, port):
        client = peer.zkfc_client(port)
        await asyncio.to_thread(client.cedeActive, 10_000)
        await asyncio.to_thread(client.cedeActive, -1)
        assert [millis for _, millis, _ in service.asked] == [10_000, -1]
        await asyncio.to_thread(client.gracefulFailover)
        service.refusal = ServiceFailed("nn1 is not currently healthy")
        with pytest.raises(Py4JJavaError) as caught:
            await asyncio.to_thread(client.gracefulFailover)
        assert rpc_java_peer.java_fault(caught.value) == (
            java_names.SERVICE_FAILED,
            "nn1 is not currently healthy",
        )
        client.close()


# Our client, Java's server.


def port_of(server: rpc_java_peer.JavaObject) -> int:
    port: int = server.getListenerAddress().getPort()
    return port


@pytest.mark.parametrize(
    ("state", "reason"), [("ACTIVE", ""), ("STANDBY", "The NameNode is in safemode")]
)
async def test_we_read_javas_status(peer: rpc_java_peer.JavaPeer, state: str, reason: str) -> None:
    implementation = rpc_java_peer.JavaService(peer, state=state, not_ready=reason)
    with peer.service_server(implementation) as server:
        client = await ServiceClient.open(
            HostPort("127.0.0.1", port_of(server)), deadline_seconds=5
        )
        assert await client.status(deadline_seconds=10) == ServiceStatus(
            ServiceState(state.lower()), not reason, reason
        )
        await client.close()


async def test_we_transition_java_and_understand_its_refusals(peer: rpc_java_peer.JavaPeer) -> None:
    implementation = rpc_java_peer.JavaService(peer)
    ha = peer.hadoop.ha
    with peer.service_server(implementation) as server:
        client = await ServiceClient.open(
            HostPort("127.0.0.1", port_of(server)), deadline_seconds=5
        )
        await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=10)
        await client.transition_to_standby(RequestSource.USER_FORCED, deadline_seconds=10)
        assert implementation.asked == [
            ("active", "REQUEST_BY_ZKFC"),
            ("standby", "REQUEST_BY_USER_FORCED"),
        ]
        await client.monitor_health(deadline_seconds=10)
        implementation.refusal = ha.HealthCheckFailedException("disk full")
        with pytest.raises(HealthCheckFailed, match=r"^disk full$"):
            await client.monitor_health(deadline_seconds=10)
        implementation.refusal = ha.ServiceFailedException("journal lost")
        with pytest.raises(ServiceFailed, match=r"^journal lost$"):
            await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=10)
        implementation.refusal = peer.hadoop.security.AccessControlException("not you")
        with pytest.raises(AccessDenied, match=r"^not you$"):
            await client.transition_to_active(RequestSource.ZKFC, deadline_seconds=10)
        await client.close()


async def test_we_ask_javas_controller(peer: rpc_java_peer.JavaPeer) -> None:
    implementation = rpc_java_peer.JavaZkfc()
    with peer.zkfc_server(implementation) as server:
        client = await ZkfcClient.open(HostPort("127.0.0.1", port_of(server)), deadline_seconds=5)
        await client.cede_active(10_000, deadline_seconds=10)
        await client.cede_active(-1, deadline_seconds=10)
        assert implementation.ceded == [10_000, 0]
        await client.graceful_failover(deadline_seconds=10)
        implementation.refusal = peer.hadoop.ha.ServiceFailedException("no")
        with pytest.raises(ServiceFailed, match=r"^no$"):
            await client.graceful_failover(deadline_seconds=10)
        await client.close()


async def test_we_notice_that_javas_server_stops(peer: rpc_java_peer.JavaPeer) -> None:
    with peer.service_server(rpc_java_peer.JavaService(peer)) as server:
        client = await ServiceClient.open(
            HostPort("127.0.0.1", port_of(server)), deadline_seconds=5
        )
        await client.monitor_health(deadline_seconds=10)
        watch = asyncio.create_task(client.wait_closed())
        await asyncio.to_thread(server.stop)
        await asyncio.wait_for(watch, 30)
        await client.close()


@pytest.mark.parametrize(
    ("protocol", "method", "name"),
    [
        (java_names.HA_SERVICE_PROTOCOL, "nope", java_names.NO_SUCH_METHOD),
        ("org.example.Nope", "monitorHealth", java_names.NO_SUCH_PROTOCOL),
    ],
)
async def test_java_does_not_serve_that(
    peer: rpc_java_peer.JavaPeer, protocol: str, method: str, name: str
) -> None:
    with peer.service_server(rpc_java_peer.JavaService(peer)) as server:
        connection = await RpcConnection.open(
            "127.0.0.1", port_of(server), protocol=protocol, deadline_seconds=5
        )
        with pytest.raises(RemoteFault) as caught:
            await connection.call(
                method, MonitorHealthRequestProto(), MonitorHealthResponseProto, deadline_seconds=10
            )
        assert caught.value.java_class == name
        await connection.close()


# The same bytes to both servers.

GREETING = PREAMBLE + encode_context(CLIENT, java_names.HA_SERVICE_PROTOCOL, "alice", None)
STATUS_CALL = encode_call(
    CallKey(CLIENT, 5, 2), java_names.HA_SERVICE_PROTOCOL, "getServiceStatus", b""
)
SASL_PREAMBLE = bytes.fromhex("68727063 09 00 df")
NEGOTIATE = bytes.fromhex("0000000e 0a 0802 1000 1841 2200 2801 02 1001")

SAME_BYTES = {
    "a call": GREETING + STATUS_CALL,
    "a ping first": PREAMBLE + frame_of(header(-4)) + GREETING[7:] + STATUS_CALL,
    "bytes after the request": GREETING
    + (len(STATUS_CALL) - 1).to_bytes(4, "big") + STATUS_CALL[4:] + b"abc",
    "version 10": b"hrpc\x0a\x00\x00" + GREETING[7:],
    "authentication 1": b"hrpc\x09\x00\x01",
    "a browser": b"GET / HTTP/1.1\r\n\r\n",
    "a call before the context": PREAMBLE + STATUS_CALL,
    "two contexts": GREETING + GREETING[7:],
    "an unknown call below zero": GREETING + frame_of(header(-9)),
    "negotiation": SASL_PREAMBLE + NEGOTIATE,
    "negotiation, then a call": SASL_PREAMBLE + NEGOTIATE + GREETING[7:] + STATUS_CALL,
    "negotiation twice": SASL_PREAMBLE + NEGOTIATE + NEGOTIATE,
    "uninvited negotiation": PREAMBLE + NEGOTIATE,
    "a context during negotiation": SASL_PREAMBLE + GREETING[7:],
    "a huge frame": GREETING + b"\x7f\xff\xff\xff",
    "a negative length": GREETING + b"\xff\xff\xff\xff",
}  # fmt: skip

SAME_MEANING = {
    "no operation": GREETING + frame_of(header(3, op=None)),
    "a continuation": GREETING + frame_of(header(3, op=1)),
    "no kind": GREETING + frame_of(header(3, kind=None)),
    "Writables": GREETING + frame_of(header(3, kind=1)),
    "an empty frame": GREETING + bytes(4),
    "a header cut short": GREETING + frame_of(b"\x08"),
    "a header without a call id": GREETING + frame_of(b"\x08\x02"),
    "a context that is none": PREAMBLE + frame_of(header(-3), b"\x08"),
    "no such method": GREETING
    + encode_call(CallKey(CLIENT, 1, 0), java_names.HA_SERVICE_PROTOCOL, "x", b""),
    "no such protocol": GREETING + encode_call(CallKey(CLIENT, 1, 0), "x.Y", "x", b""),
}


SILENCES: Final = (0.5, 4.0, 30.0)
"""Seconds after which a server is taken to have said all; a busy one needs more than a moment."""

Said = dict[str, tuple[bytes, bool]]


async def both_say(
    peer: rpc_java_peer.JavaPeer, cases: Mapping[str, bytes], meaning: Callable[[Said], object]
) -> tuple[object, object]:
    """Return what Hadoop's server and ours say to each case; ask again where it differs."""

    async def all_said(port: int, silence_seconds: float) -> object:
        heard = (said(port, data, silence_seconds) for data in cases.values())
        return meaning(dict(zip(cases, await asyncio.gather(*heard), strict=True)))

    theirs, mine = None, None
    with peer.service_server(rpc_java_peer.JavaService(peer)) as server:
        async with ours() as (_, port):
            for silence_seconds in SILENCES:
                theirs = await all_said(port_of(server), silence_seconds)
                mine = await all_said(port, silence_seconds)
                if theirs == mine:
                    break
    return theirs, mine


async def said(port: int, data: bytes, silence_seconds: float) -> tuple[bytes, bool]:
    """Return what a server says to these bytes before it falls silent, and whether it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    heard = b""
    try:
        while True:
            # A server that goes on listening never says so: silence has to do.
            piece = await asyncio.wait_for(reader.read(65536), silence_seconds)
            if not piece:
                return heard, True
            heard += piece
    except TimeoutError:
        return heard, False
    except ConnectionError:
        return heard, True
    finally:
        writer.transport.abort()


async def test_the_same_bytes_get_the_same_answers(peer: rpc_java_peer.JavaPeer) -> None:
    theirs, mine = await both_say(peer, SAME_BYTES, lambda heard: heard)
    assert mine == theirs


async def test_odd_bytes_get_answers_of_the_same_meaning(peer: rpc_java_peer.JavaPeer) -> None:
    def meaning(heard: Said) -> object:
        return {
            name: (closed, [(a.call_id, a.status, a.java_class, a.detail) for a in answers(said)])
            for name, (said, closed) in heard.items()
        }

    theirs, mine = await both_say(peer, SAME_MEANING, meaning)
    assert mine == theirs

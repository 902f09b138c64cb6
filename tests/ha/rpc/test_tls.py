"""One port for TLS and for plain bytes: which callers are let in, as whom, and until when."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from ha.conf.keys.security import Mode
from ha.daemon import peeking
from ha.daemon.door.door import DoorLimits
from ha.daemon.event_loop import fast_loop
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed, ConnectionLost, RemoteFault, RpcError
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, ZKFC_PROTOCOL
from ha.rpc.metrics import METERS
from ha.rpc.packets import PREAMBLE
from ha.rpc.proto import zkfc_pb2 as zkfc
from ha.rpc.server import Call, Method, RpcProtocol, RpcServer
from ha.security.access_control import AccessControl
from ha.security.audit_text import Entry
from ha.security.caller import Role
from ha.security.certificates import now
from ha.security.first_byte import TLS_FIRST_BYTE
from ha.security.tls_files import FINISH, TlsFiles
from tests.ha.rpc.wire import eventually
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import CHECK_SECONDS, Authority, revoke
from tests.log_lines import captured

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop] | None] = {
    "asyncio": None,
    "uvloop": fast_loop,
}
Scene = Callable[[], Coroutine[Any, Any, None]]
Play = Callable[[Scene], None]


class Unwritten:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Play:
    """Return a function that runs a scene on one of the loops."""

    def run(scene: Scene) -> None:
        async def with_deadline() -> None:
            async with asyncio.timeout(60):
                await scene()

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(with_deadline())

    return run


@asynccontextmanager
async def zkfc_server(
    tls: TlsFiles,
    mode: Mode = Mode.AUTO,
    *,
    answers: asyncio.Event | None = None,
    in_thread: Callable[[Message], Message] | None = None,
) -> AsyncIterator[tuple[RpcServer, int]]:
    """Serve cedeActive to no user of its own, and refuse what the table refuses.

    It answers when ``answers`` is set.
    """

    async def cede(_: Call, __: Message) -> Message:
        if answers is not None:
            await answers.wait()
        return zkfc.CedeActiveResponseProto()

    methods = {"cedeActive": Method(zkfc.CedeActiveRequestProto, cede, in_thread=in_thread)}
    access = AccessControl(
        Mode.AUTO, target="zkfc@test", audit=Unwritten(), own_uid=1, tls=tls, uid_of=lambda *_: 1234
    )
    protocols = [RpcProtocol(ZKFC_PROTOCOL, methods), RpcProtocol(HA_SERVICE_PROTOCOL, methods)]
    server = RpcServer(protocols, access=access)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.stop()
        tls.stop()


async def cede(port: int, protocol: str = ZKFC_PROTOCOL) -> str:
    try:
        connection = await RpcConnection.open(
            "127.0.0.1", port, protocol=protocol, deadline_seconds=10
        )
    except ConnectFailed as failure:
        return f"no connection: {failure}"
    try:
        await connection.call(
            "cedeActive",
            zkfc.CedeActiveRequestProto(millisToCede=1),
            zkfc.CedeActiveResponseProto,
            deadline_seconds=10,
        )
    except (RemoteFault, RpcError) as failure:
        return str(failure)
    finally:
        await connection.close()
    return "done"


def test_the_role_in_the_certificate_decides(authority: Authority, play: Play) -> None:
    own, peer = authority.holder(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")
    journal = authority.holder(Role.JOURNALNODE, "jn1")
    other = TlsFiles(authority.issue(Role.ZKFC, "nn3", cluster="c2"), 1)

    async def scene() -> None:
        async with zkfc_server(own) as (_, port):
            with acting_as(peer):
                assert await cede(port) == "done"
            with acting_as(journal):
                assert "cedeActive is for zkfc, admin; the caller is journalnode jn1" in await cede(
                    port
                )
            with acting_as(other):
                said = await cede(port)
                assert "its certificate" in said or "of cluster c1, not of c2" in said

    play(scene)


def test_no_thread_reads_what_only_the_loop_can_decipher(authority: Authority, play: Play) -> None:
    own, peer = authority.holder(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")
    threads: list[Message] = []

    def in_thread(request: Message) -> Message:
        threads.append(request)
        return zkfc.CedeActiveResponseProto()

    async def scene() -> None:
        async with zkfc_server(own, in_thread=in_thread) as (_, port):
            with acting_as(peer):
                assert await cede(port) == "done"
            assert not threads

    play(scene)


def test_a_certificate_of_another_cluster_is_told_so(authority: Authority, play: Play) -> None:
    own = authority.holder(Role.ZKFC, "nn1")
    other = TlsFiles(authority.issue(Role.ADMIN, "x", cluster="c2"), 1)

    async def scene() -> None:
        async with zkfc_server(own) as (_, port):
            # Not by our client, which would refuse the server before.
            context = other.material.client
            context.sslobject_class = ssl.SSLObject
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(_greeting())
            assert b"this certificate is of cluster c2, not of c1" in await reader.read()
            writer.close()

    play(scene)


def _greeting() -> bytes:
    from ha.rpc.packets import encode_context

    return PREAMBLE + encode_context(bytes(16), ZKFC_PROTOCOL, "root", None)


def test_plain_bytes_come_in_by_the_same_port(authority: Authority, play: Play) -> None:
    own = authority.holder(Role.ZKFC, "nn1")

    async def scene() -> None:
        async with zkfc_server(own) as (_, port):
            assert "the caller is uid 1234" in await cede(port), "the kernel told who calls"

    play(scene)


def test_a_server_of_another_role_is_not_spoken_to(authority: Authority, play: Play) -> None:
    own, caller = authority.holder(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")

    async def scene() -> None:
        async with zkfc_server(own) as (server, port):
            with acting_as(caller):
                said = await cede(port, HA_SERVICE_PROTOCOL)
            assert "its certificate is that of zkfc nn1, and a namenode was called" in said
            await eventually(lambda: server.connection_count == 0)

    play(scene)


def test_a_server_without_tls_is_called_in_plain_in_permissive_alone(
    authority: Authority, play: Play
) -> None:
    caller = authority.holder(Role.ZKFC, "nn2")

    async def scene() -> None:
        async def done(_: Call, __: Message) -> Message:
            return zkfc.CedeActiveResponseProto()

        methods = {"cedeActive": Method(zkfc.CedeActiveRequestProto, done)}
        server = RpcServer([RpcProtocol(ZKFC_PROTOCOL, methods)])
        port = await server.start("127.0.0.1", 0)
        try:
            with acting_as(caller, Mode.PERMISSIVE):
                assert await cede(port) == "done"
            with acting_as(caller, Mode.STRICT):
                assert (await cede(port)).startswith("no connection")
        finally:
            await server.stop()

    play(scene)


def test_who_is_revoked_loses_its_open_connections(
    authority: Authority, play: Play, tmp_path: Path
) -> None:
    own, peer = authority.holder(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")
    other = authority.holder(Role.ZKFC, "nn3")

    async def scene() -> None:
        async with zkfc_server(own) as (server, port):
            with acting_as(other):
                kept = await _opened(port)
            with acting_as(peer):
                lost = await _opened(port)
                await eventually(lambda: server.connection_count == 2)
                await eventually(lambda: len(own.connections) == 2)
                revoke(tmp_path / "zkfc-nn1", "nnha://c1/zkfc/nn2")
                assert isinstance(await lost.wait_closed(), ConnectionLost)
                assert "this certificate, of zkfc nn2, was revoked" in await cede(port)
            assert not kept.closed
            await kept.close()

    play(scene)


@pytest.mark.parametrize("in_time", [True, False])
def test_a_call_may_end_behind_its_callers_certificate_for_a_while(
    authority: Authority, play: Play, in_time: bool
) -> None:
    """End the connection then; a call that takes long is cut off."""
    present = [now()]
    folder = authority.issue(Role.ZKFC, "nn1")
    own = TlsFiles(folder, CHECK_SECONDS, clock=lambda: present[0])
    peer = authority.holder(Role.ZKFC, "nn2")
    end = peer.material.leaf.not_after

    async def scene() -> None:
        answers = asyncio.Event()
        async with zkfc_server(own, answers=answers) as (_, port):
            with acting_as(peer):
                connection = await _opened(port)
            request = zkfc.CedeActiveRequestProto(millisToCede=1)
            reply = zkfc.CedeActiveResponseProto
            asking = asyncio.create_task(
                connection.call("cedeActive", request, reply, deadline_seconds=50)
            )
            await eventually(lambda: METERS.of(ZKFC_PROTOCOL, "cedeActive").running == 1)
            present[0] = end
            own.look()
            assert not connection.closed
            if in_time:
                answers.set()
                assert isinstance(await asking, reply)
            else:
                present[0] = end + FINISH
                with pytest.raises(RpcError):
                    await asking
            assert isinstance(await connection.wait_closed(), ConnectionLost)
            answers.set()

    play(scene)


async def _opened(port: int) -> RpcConnection:
    return await RpcConnection.open("127.0.0.1", port, protocol=ZKFC_PROTOCOL, deadline_seconds=10)


def test_who_says_nothing_gives_way(
    authority: Authority, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = DoorLimits(most=3, unproven=3, unproven_of_origin=3, of_origin=3)
    monkeypatch.setattr(peeking, "OPENING", limits)
    own, peer = authority.holder(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")

    async def scene() -> None:
        async with zkfc_server(own) as (_, port):
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            with acting_as(peer):
                assert await cede(port) == "done"
            assert await silent[0][0].read() == b"", "the longest silent one was closed"
            for _, writer in silent:
                writer.close()

    play(scene)


def test_who_hangs_up_in_a_handshake_is_told_of_in_words(authority: Authority, play: Play) -> None:
    own = authority.holder(Role.ZKFC, "nn1")

    async def scene() -> None:
        async with zkfc_server(own) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bytes([TLS_FIRST_BYTE]))
            await writer.drain()
            writer.write_eof()
            with captured("tls.refused") as logs, suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
        (told,) = logs
        assert told["because"] == "it hung up before the handshake was done"

    play(scene)


def test_strict_makes_clients_of_local_users(authority: Authority, play: Play) -> None:
    own = authority.holder(Role.ZKFC, "nn1")

    async def scene() -> None:
        access = AccessControl(
            Mode.STRICT, target="t", audit=Unwritten(), own_uid=1, tls=own, uid_of=lambda *_: 1
        )
        methods = {"cedeActive": Method(zkfc.CedeActiveRequestProto, _never)}
        server = RpcServer([RpcProtocol(ZKFC_PROTOCOL, methods)], access=access)
        port = await server.start("127.0.0.1", 0)
        try:
            said = await cede(port)
            assert "cedeActive is for zkfc, admin" in said or "Call under your own name" in said
        finally:
            await server.stop()
            own.stop()

    play(scene)


async def _never(_: Call, __: Message) -> Message:
    raise AssertionError("it was carried out")

"""Pages over TLS, their client and their listener, with a fault at each await and in each call."""

import asyncio
import errno
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from ha.conf.keys.security import Mode
from ha.conf.topology import HostPort
from ha.daemon.http.http_get import http_get
from ha.daemon.listening import begin_serving
from ha.daemon.peeking import PeekingListener
from ha.security.caller import Role
from ha.security.tls_files import TlsFiles
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.wire import eventually
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.stand_in import HOST, stand_in

SECONDS = 30.0
PAGE = b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nhere"


class Page(asyncio.Protocol):
    """Answers whatever comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(PAGE)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def listening(
    files: TlsFiles, backlog: int = 10
) -> AsyncIterator[tuple[PeekingListener, int]]:
    listener = PeekingListener(Page, files, demanding=True)
    port = await listener.start(HOST, 0, backlog)
    try:
        yield listener, port
    finally:
        await listener.stop()
        files.stop()


async def get(port: int, seconds: float = SECONDS) -> bytes:
    at = HostPort(HOST, port)
    return (await http_get(at, "/", most_bytes=100, deadline_seconds=seconds)).body


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.BREAK])
@pytest.mark.parametrize("secure", [True, False], ids=["tls", "plain"])
async def test_a_page_that_is_cut_short_leaves_no_connection(
    authority: Authority, fault: Fault, *, secure: bool
) -> None:
    files = authority.holder(Role.JOURNALNODE, "jn1")
    caller = authority.holder(Role.NAMENODE, "nn1")

    async def life() -> None:
        async with listening(files) as (_, port):
            if secure:
                with acting_as(caller):
                    assert await get(port) == b"here"
            else:
                assert await get(port) == b"here"

    async def after(_: int) -> None:
        pass

    kept = frozenset({"open_connections"})  # until the certificates are looked at again
    cuts = Cuts(life, fault, typed=(OSError, ValueError), fails=("test_",), kept=kept)
    assert await awaits.cut_at_each_await(cuts, after) > 2


async def test_a_server_without_tls_is_asked_in_plain_in_permissive_alone(
    authority: Authority,
) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readexactly(1) == b"G":
            writer.write(PAGE)
        writer.close()

    caller = authority.holder(Role.NAMENODE, "nn1")
    async with stand_in(speak) as port:
        with acting_as(caller, Mode.AUTO), pytest.raises(ConnectionError):
            await get(port)
        with acting_as(caller, Mode.PERMISSIVE):
            assert await get(port) == b"here"


async def test_an_address_that_is_taken_is_named_and_the_others_are_let_go(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = authority.holder(Role.JOURNALNODE, "jn1")
    listener = PeekingListener(Page, files, demanding=True)
    loop = asyncio.get_running_loop()
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]

        async def both(*_: object, **__: object) -> list[tuple[int, int, int, str, object]]:
            kind = socket.AF_INET, socket.SOCK_STREAM, 6, ""
            return [(*kind, ("127.0.0.2", port)), (*kind, (HOST, port))]

        monkeypatch.setattr(loop, "getaddrinfo", both)
        with pytest.raises(OSError, match=rf"Address already in use \({HOST}:{port}\)"):
            await listener.start("", port, 10)
        assert listener.sockets == []
    with socket.create_server(("127.0.0.2", port)):
        pass


def client_hello() -> bytes:
    """Return the first bytes of a handshake."""
    out = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(
            ssl.MemoryBIO(), out, server_hostname="there"
        ).do_handshake()
    return out.read()


@pytest.mark.parametrize("stopped", [False, True], ids=["goes on", "stops"])
async def test_without_a_free_descriptor_it_rests_and_takes_who_waits_afterwards(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, *, stopped: bool
) -> None:
    files = authority.holder(Role.JOURNALNODE, "jn1")
    loop = asyncio.get_running_loop()
    tried = 0

    def accept(_: socket.socket) -> None:
        nonlocal tried
        tried += 1
        raise OSError(errno.EMFILE, "Too many open files")

    async with listening(files) as (listener, port):
        with socket.socket() as client:
            client.setblocking(False)
            with monkeypatch.context() as full:
                full.setattr(socket.socket, "accept", accept)
                await loop.sock_connect(client, (HOST, port))
                await eventually(lambda: tried > 0)
                for _ in range(20):
                    await asyncio.sleep(0)
            assert tried == 1, "it looks again after a rest"
            if stopped:
                await listener.stop()
                assert listener.sockets == []
                return
            await loop.sock_sendall(client, b"GET")
            assert await asyncio.wait_for(loop.sock_recv(client, 100), SECONDS) == PAGE


async def test_a_rest_that_ends_while_it_is_being_stopped_opens_no_port_again(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bad schedule: a stop waits for a handshake, and the rest is over in the meantime."""
    files = authority.holder(Role.JOURNALNODE, "jn1")
    loop = asyncio.get_running_loop()
    tried = 0

    def accept(_: socket.socket) -> None:
        nonlocal tried
        tried += 1
        raise OSError(errno.EMFILE, "Too many open files")

    def in_handshake() -> bool:
        return any(one.get_name() == "open a connection" for one in asyncio.all_tasks())

    async with listening(files) as (listener, port):
        numbers = [one.fileno() for one in listener.sockets]
        with socket.create_connection((HOST, port)) as slow, socket.socket() as client:
            slow.sendall(client_hello())
            await eventually(in_handshake)
            client.setblocking(False)
            monkeypatch.setattr("ha.daemon.peeking._REST_SECONDS", 0.0)
            monkeypatch.setattr(socket.socket, "accept", accept)
            await loop.sock_connect(client, (HOST, port))
            while not tried:
                await asyncio.sleep(0)
            await listener.stop()
            assert not any(loop.remove_reader(number) for number in numbers)


async def test_who_says_nothing_or_has_gone_is_hung_up_on(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = authority.holder(Role.JOURNALNODE, "jn1")
    with monkeypatch.context() as quick:
        quick.setattr("ha.daemon.peeking.HANDSHAKE_SECONDS", 0.05)
        async with listening(files) as (_, port):
            reader, writer = await asyncio.open_connection(HOST, port)
            assert await asyncio.wait_for(reader.read(), SECONDS) == b""
            writer.close()
    async with listening(files) as (_, port):
        with socket.create_connection((HOST, port)) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert await get(port) == b"here", "the next one is taken"


async def test_a_server_whose_start_is_cancelled_keeps_no_port() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Page, HOST, 0, start_serving=False)
    beginning = asyncio.create_task(begin_serving(server))
    await asyncio.sleep(0)
    beginning.cancel()
    await asyncio.gather(beginning, return_exceptions=True)
    if not beginning.cancelled():  # uvloop takes no turn for it
        server.close()
    assert not server.sockets

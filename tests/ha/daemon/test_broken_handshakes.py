"""Handshakes that break off: what is left of them once the connection is gone."""

import asyncio
import gc
import socket
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ha.daemon.event_loop import PlainLoop, fast_loop
from ha.daemon.peeking import PeekingListener
from ha.rpc.client import RpcConnection
from ha.rpc.errors import ConnectFailed
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.security.caller import Role
from ha.security.tls_files import TlsFiles
from tests.ha.rpc.wire import eventually
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import CHECK_SECONDS, Authority

Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = pytest.mark.parametrize("loop", [PlainLoop, fast_loop], ids=["asyncio", "uvloop"])
BROKEN = 16
RESET_AT_ONCE = b"\1\0\0\0\0\0\0\0"
"""SO_LINGER's on and 0 s."""


def client_hello() -> bytes:
    """Return the first record of a client, whole."""
    sent, context = ssl.MemoryBIO(), ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Look for no cycles, as a daemon, whose collections are rare."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def kept() -> list[str]:
    names = (type(one).__name__ for one in gc.get_objects())
    return [name for name in names if "SSLProtocol" in name or name == "traceback"]


@pytest.mark.usefixtures("no_collections")
@LOOPS
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_nothing_is_left_of_a_broken_handshake(tmp_path: Path, loop: Loop, *, reset: bool) -> None:
    """Asyncio has 256 KiB for each: a flood of them once took a controller from 57 to 160 MB."""
    files = TlsFiles(Authority(tmp_path).issue(Role.ZKFC, "nn1"), CHECK_SECONDS)
    hello = client_hello()

    def failed() -> float:
        return REGISTRY.get_sample_value("nnha_tls_handshakes_total", {"result": "failed"}) or 0.0

    def at_least(due: float) -> bool:
        return failed() >= due

    async def scene() -> None:
        listener = PeekingListener(asyncio.Protocol, files, demanding=False)
        port = await listener.start("127.0.0.1", 0, BROKEN)
        before = failed()
        for nth in range(BROKEN):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            if reset:
                linger = writer.get_extra_info("socket")
                linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
            writer.write(hello)
            writer.close()
            await eventually(partial(at_least, before + nth + 1))
        await listener.stop()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scene())
    assert kept() == []


@pytest.mark.usefixtures("no_collections")
@LOOPS
def test_nothing_is_left_of_a_server_that_hangs_up(tmp_path: Path, loop: Loop) -> None:
    """A controller may ask such a server each second, for days."""
    own = TlsFiles(Authority(tmp_path).issue(Role.ZKFC, "nn1"), CHECK_SECONDS)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()

    async def scene() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            for _ in range(BROKEN):
                with pytest.raises(ConnectFailed, match=r":\d+: [^ ]"):
                    await RpcConnection.open(
                        "127.0.0.1", port, protocol=HA_SERVICE_PROTOCOL, deadline_seconds=10.0
                    )

    with acting_as(own), asyncio.Runner(loop_factory=loop) as runner:
        runner.run(scene())
    assert kept() == []

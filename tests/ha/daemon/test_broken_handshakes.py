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

from ha.daemon.event_loop import fast_loop
from ha.daemon.peeking import PeekingListener
from ha.security.caller import Role
from ha.security.tls_files import TlsFiles
from tests.ha.rpc.wire import eventually
from tests.ha.security.authority import CHECK_SECONDS, Authority

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


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, fast_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_nothing_is_left_of_a_broken_handshake(
    tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop], *, reset: bool
) -> None:
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
    kept = [type(one).__name__ for one in gc.get_objects()]
    assert [name for name in kept if "SSLProtocol" in name or name == "traceback"] == []

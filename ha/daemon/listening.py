"""Listens for a protocol, and ends so that each connection belongs to its protocol."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ha.security.page_store import PageStore
    from ha.security.tls_files import TlsFiles

BACKLOG: Final = 100
"""As asyncio's."""


class Listener(Protocol):
    """A port that is open."""

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """What it listens on."""

    async def stop(self) -> None:
        """Accept no more; afterwards every protocol knows its connection, and can drop it."""

    async def wait_closed(self) -> None:
        """Wait for the loop's own clean-up, once all connections are closed."""


async def listen(
    factory: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    *,
    tls: "TlsFiles | PageStore | None",
    backlog: int = BACKLOG,
    demanding: bool = True,
    plain: bool = True,
) -> tuple[Listener, int]:
    """Serve a protocol on an address; return the port (a free one if 0 was asked for).

    With certificates the port takes TLS and, if ``plain``, plain bytes; if ``demanding``, TLS only
    of callers with a certificate.  With a Java store no caller is asked for one.

    Raises:
        OSError: the address cannot be had.
    """
    if tls is not None:
        # Loaded here: certificates take 13 MB, and most daemons have none.
        from ha.daemon.peeking import PeekingListener

        peeking = PeekingListener(factory, tls, demanding=demanding, plain=plain)
        return peeking, await peeking.start(host, port, backlog)
    server = await listen_plainly(factory, host, port, backlog)
    return _Plain(server), int(server.sockets[0].getsockname()[1])


async def listen_plainly(
    factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, backlog: int
) -> asyncio.Server:
    """Return the loop's own server for a protocol; a caller that is cancelled leaves no port open.

    Raises:
        OSError: the address cannot be had.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, host, port, backlog=backlog, start_serving=False)
    await begin_serving(server)
    return server


async def begin_serving(server: asyncio.Server) -> None:
    """Begin to accept; close the server's port where the caller is cancelled in the meantime."""
    try:
        await server.start_serving()  # asyncio takes a turn of the loop for that
    except BaseException:
        server.close()
        raise


class _Plain:
    """The loop's own server."""

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    @property
    def sockets(self) -> Sequence[socket.socket]:
        return self._server.sockets

    async def stop(self) -> None:
        await stop_listening(self._server)

    async def wait_closed(self) -> None:
        await self._server.wait_closed()


async def stop_listening(server: asyncio.Server) -> None:
    """Accept no more; afterwards every protocol knows its connection, and can drop it.

    asyncio makes the transport of an accepted connection one turn of the loop later.  If the server
    is closed in between, that fails in silence, and the socket stays open until the garbage
    collector comes: the peer waits for an answer that never comes (python/cpython issue 109564).
    So there must be none in between.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    try:
        await asyncio.sleep(0)  # the transports are made
    finally:
        server.close()
    await asyncio.sleep(0)  # and their protocols are notified

"""One port for TLS and for plain bytes: the first byte of a connection distinguishes them.

So no client needs to know of a second port, and a cluster goes over to certificates daemon by
daemon.  The listener accepts by itself and looks at the byte with MSG_PEEK, which leaves it where
it is; the connection is handed to the loop afterwards.  Neither asyncio's server nor uvloop's can
do that: both read a connection as soon as they have accepted it, a transport cannot give back what
it has read, and ``start_tls`` takes none of it.  An own reader of the listening socket works on
both loops; it costs 13 microseconds for a plain connection on uvloop and 40 on asyncio, next to 2
ms for a handshake.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast

import structlog
from prometheus_client import Counter

from ha.security.certificates import Leaf
from ha.security.first_byte import TLS_FIRST_BYTE
from ha.security.tls_files import TlsFiles

log = structlog.get_logger()

HANDSHAKE_SECONDS: Final = 10.0
"""From a connection to its first byte, and again to the end of the handshake."""
MOST_UNKNOWN: Final = 256
"""Connections of which nothing is proven yet; the longest silent one gives way."""
_AT_ONCE: Final = 64
_REST_SECONDS: Final = 1.0
HANDSHAKES: Final = Counter(
    "nnha_tls_handshakes", "TLS connections that came in, by what became of the handshake",
    ["result"],
)  # fmt: skip


class PeekingListener:
    """Accepts connections for ``factory``, whose protocols see no difference."""

    def __init__(
        self, factory: Callable[[], asyncio.BaseProtocol], tls: TlsFiles, *, demanding: bool
    ) -> None:
        """Refuse handshakes without a certificate if ``demanding``."""
        self._factory = factory
        self._tls = tls
        self._demanding = demanding
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int, backlog: int) -> int:
        """Listen on all addresses of a host; return the port.  Raises OSError."""
        found = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self._sockets.append(_bound(family, address, backlog))
        except OSError:
            self._close_sockets()
            raise
        self._tls.start()
        self._accept_again()
        bound: int = self._sockets[0].getsockname()[1]
        return bound

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """What it listens on."""
        return self._sockets

    async def stop(self) -> None:
        """Accept no more; each connection that lives on belongs to its protocol afterwards."""
        if self._resting is not None:
            self._resting.cancel()
        for listener in self._sockets:
            self._loop.remove_reader(listener.fileno())
        for connection in tuple(self._silent):
            self._drop(connection)
        opening = tuple(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        self._close_sockets()

    async def wait_closed(self) -> None:
        """See ``Listener``; there is nothing to wait for."""

    def _close_sockets(self) -> None:
        for listener in self._sockets:
            listener.close()
        self._sockets.clear()

    def _accept_again(self) -> None:
        self._resting = None
        for listener in self._sockets:
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as failure:
                # Too many open files: what waits is taken once some are closed.
                log.warning("listener.not_accepted", because=str(failure))
                for each in self._sockets:
                    self._loop.remove_reader(each.fileno())
                self._resting = self._loop.call_later(_REST_SECONDS, self._accept_again)
                return
            self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        connection.setblocking(False)  # noqa: FBT003 - socket's own
        if len(self._silent) + len(self._opening) >= MOST_UNKNOWN and not self._make_room():
            connection.close()
            return
        if not self._peeked(connection):
            self._silent[connection] = self._loop.call_later(
                HANDSHAKE_SECONDS, self._drop, connection
            )
            self._loop.add_reader(connection.fileno(), self._said, connection)

    def _make_room(self) -> bool:
        for longest in self._silent:
            self._drop(longest)
            return True
        return False

    def _said(self, connection: socket.socket) -> None:
        self._loop.remove_reader(connection.fileno())
        self._silent.pop(connection).cancel()
        if not self._peeked(connection):
            connection.close()

    def _drop(self, connection: socket.socket) -> None:
        self._loop.remove_reader(connection.fileno())
        self._silent.pop(connection).cancel()
        connection.close()

    def _peeked(self, connection: socket.socket) -> bool:
        """Return whether it has sent something, or has ended: then it needs nothing more."""
        try:
            first = connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            first = b""
        if not first:
            connection.close()
            return True
        opening = self._open(connection, secure=first[0] == TLS_FIRST_BYTE)
        task = self._loop.create_task(opening, name="open a connection")
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return True

    async def _open(self, connection: socket.socket, *, secure: bool) -> None:
        peer: Any = None
        try:
            peer = connection.getpeername()
            if not secure:
                await self._loop.connect_accepted_socket(self._factory, connection)
                return
            context = self._tls.server if self._demanding else self._tls.lenient_server
            transport, _ = await self._loop.connect_accepted_socket(
                self._factory, connection,
                ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )  # fmt: skip
        except OSError as failure:
            connection.close()
            HANDSHAKES.labels("failed").inc()
            because = str(failure) or "it hung up before the handshake was done"
            log.info("tls.refused", peer=peer and peer[0], because=because)
            return
        except asyncio.CancelledError:
            connection.close()
            raise
        HANDSHAKES.labels("done").inc()
        self._watch(transport)

    def _watch(self, transport: asyncio.BaseTransport) -> None:
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        leaf = self._tls.leaf(shown or b"")
        if isinstance(leaf, Leaf):
            watch(self._tls, leaf, transport, self._loop)


def watch(
    tls: TlsFiles, leaf: Leaf, transport: asyncio.BaseTransport, loop: asyncio.AbstractEventLoop
) -> None:
    """Have a connection end when the certificate of its other end counts no more."""
    ends = cast("asyncio.Transport", transport)

    def busy() -> bool:
        # Hadoop RPC's protocol reports when no answer is owed; of other protocols it is unknown.
        return not getattr(ends.get_protocol(), "idle", False)

    def close(_reason: str) -> None:
        with suppress(RuntimeError):  # the loop has ended, and the connection with it
            loop.call_soon_threadsafe(ends.abort)

    tls.connections.add(leaf, close, ends.is_closing, busy)


def _bound(family: int, address: Any, backlog: int) -> socket.socket:  # noqa: ANN401 - its own shape
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(backlog)
    except OSError as failure:
        listener.close()
        raise OSError(failure.errno, f"{failure.strerror} ({address[0]}:{address[1]})") from failure
    return listener

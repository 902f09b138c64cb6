"""One port for TLS and for plain bytes: the first byte of a connection distinguishes them.

A handshake is begun only once its first record is whole: what a stranger leaves half done costs a
descriptor and an entry in a table.  A connection without a proof has a place at the door, and the
oldest of its origin gives way to the next.

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

from ha.daemon.door.door import Door, DoorLimits
from ha.daemon.door.origin import Origin, origin_of_socket
from ha.daemon.door.pace import Pace
from ha.daemon.door.places import Standing
from ha.record import dataclass
from ha.security.certificates import Leaf
from ha.security.first_byte import TLS_FIRST_BYTE
from ha.security.page_store import PageStore
from ha.security.tls_files import TlsFiles

log = structlog.get_logger()

HANDSHAKE_SECONDS: Final = 10.0
"""From a connection to its first byte, and again to the end of the handshake."""
OPENING: Final = DoorLimits(most=256, unproven=224, unproven_of_origin=64, of_origin=64)
"""Connections that have not proved anything yet."""
HANDSHAKES_A_SECOND: Final = 16.0
"""Of one origin that is not trusted, and twice as many at once: each costs some 0.4 ms."""
_RECORD_HEAD: Final = 5
_MOST_IN_RECORD: Final = 16 * 1024
_AT_ONCE: Final = 64
_REST_SECONDS: Final = 1.0
HANDSHAKES: Final = Counter(
    "nnha_tls_handshakes", "TLS connections that came in, by what became of the handshake",
    ["result"],
)  # fmt: skip


@dataclass(slots=True)
class _Opening:
    """What waits for a connection's first record, until it is whole, and then opens it."""

    origin: Origin
    deadline: asyncio.TimerHandle
    wanted: int = 1
    """Bytes that must be there before it is looked at again."""
    task: "asyncio.Task[None] | None" = None


class PeekingListener:
    """Accepts connections for ``factory``, whose protocols see no difference."""

    def __init__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        tls: TlsFiles | PageStore,
        *,
        demanding: bool,
        plain: bool = True,
    ) -> None:
        """Refuse handshakes without a certificate if ``demanding``; take no plain bytes if not
        ``plain``.
        """
        self._factory = factory
        self._files: TlsFiles | None = None
        if isinstance(tls, PageStore):
            self._context = tls.context
        else:
            self._files, self._context = tls, tls.server if demanding else tls.lenient_server
        self._plain = plain
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._door: Door[socket.socket] = Door("opening", self._turned_away)
        self._opening: dict[socket.socket, _Opening] = {}
        self._pace = Pace(HANDSHAKES_A_SECOND, burst_seconds=2.0)

    async def start(self, host: str, port: int, backlog: int) -> int:
        """Listen on all addresses of a host; return the port.  Raises OSError."""
        found = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self._sockets.append(_bind(family, address, backlog))
        except OSError:
            self._close_sockets()
            raise
        if self._files is not None:
            self._files.start()
        self._accept_again()
        bound: int = self._sockets[0].getsockname()[1]
        return bound

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """What it listens on."""
        return self._sockets

    async def stop(self) -> None:
        """Accept no more; each connection that lives on belongs to its protocol afterwards."""
        for listener in self._sockets:
            self._loop.remove_reader(listener.fileno())
        self._close_sockets()  # first: a rest may end while the tasks do, and finds none
        tasks = [one.task for one in self._opening.values() if one.task is not None]
        for connection in tuple(self._opening):
            self._drop(connection)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_closed(self) -> None:
        """See ``Listener``; there is nothing to wait for."""

    def _close_sockets(self) -> None:
        for listener in self._sockets:
            listener.close()
        self._sockets.clear()

    def _accept_again(self) -> None:
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
                self._loop.call_later(_REST_SECONDS, self._accept_again)
                return
            self._take(connection)

    def _take(self, connection: socket.socket) -> None:
        connection.setblocking(False)  # noqa: FBT003 - socket's own
        try:
            origin = origin_of_socket(connection)
        except OSError:
            connection.close()
            return
        if not self._door.take(connection, OPENING.seat(origin, Standing.UNPROVEN)):
            connection.close()
            return
        self._opening[connection] = _Opening(
            origin, self._loop.call_later(HANDSHAKE_SECONDS, self._drop, connection)
        )
        self._loop.add_reader(connection.fileno(), self._said, connection)
        self._said(connection)

    def _said(self, connection: socket.socket) -> None:
        """Open a connection if it has said enough; close it if it has ended."""
        try:
            missing, secure = _peek(connection)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(connection)
            return
        opening = self._opening[connection]
        # Called with fewer bytes than it waits for: there come no more, and TLS says so.
        whole = not missing or opening.wanted == missing
        opening.wanted = 1 if whole else missing
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, opening.wanted)
        if not whole:
            return
        self._loop.remove_reader(connection.fileno())
        self._begin(connection, opening, secure=secure)

    def _begin(self, connection: socket.socket, opening: _Opening, *, secure: bool) -> None:
        """Open a connection, if need be once its origin may have the next handshake."""
        if self._opening.get(connection) is not opening:
            return  # it has given way
        if secure and not opening.origin.trusted:
            wait = self._pace.wait(opening.origin.name, self._loop.time())
            if wait:
                self._loop.call_later(wait, lambda: self._begin(connection, opening, secure=secure))
                return
        opening.deadline.cancel()
        opening.task = self._loop.create_task(
            self._open(connection, secure=secure), name="open a connection"
        )
        opening.task.add_done_callback(lambda task: self._ended(connection, task))

    def _ended(self, connection: socket.socket, task: "asyncio.Task[None]") -> None:
        self._forget(connection)
        if task.cancelled():  # perhaps before its first step, in which it could have closed it
            connection.close()

    def _turned_away(self, connection: socket.socket, _limit: str) -> None:
        self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        opening = self._forget(connection)
        if opening is None:
            return
        if opening.task is None:
            self._loop.remove_reader(connection.fileno())
            connection.close()
        else:
            opening.task.cancel()

    def _forget(self, connection: socket.socket) -> _Opening | None:
        """Free the place of a connection."""
        self._door.leave(connection)
        opening = self._opening.pop(connection, None)
        if opening is not None:
            opening.deadline.cancel()
        return opening

    async def _open(self, connection: socket.socket, *, secure: bool) -> None:
        try:
            if not secure and not self._plain:
                raise ConnectionError("it speaks no TLS, and this port takes nothing else")
            if not secure:
                await self._loop.connect_accepted_socket(self._factory, connection)
                return
            transport, _ = await self._loop.connect_accepted_socket(
                self._factory, connection,
                ssl=self._context, ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )  # fmt: skip
        except OSError as failure:
            self._refused(connection, str(failure))
            connection.close()
            return
        HANDSHAKES.labels("done").inc()
        if self._files is not None:
            self._watch(self._files, transport)

    def _refused(self, connection: socket.socket, why: str) -> None:
        peer: Any = None
        with suppress(OSError):
            peer = connection.getpeername()
        HANDSHAKES.labels("failed").inc()
        because = why or "it hung up before the handshake was done"
        log.info("tls.refused", peer=peer and peer[0], because=because)

    def _watch(self, files: TlsFiles, transport: asyncio.BaseTransport) -> None:
        shown = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        leaf = files.leaf(shown or b"")
        if isinstance(leaf, Leaf):
            watch(files, leaf, transport, self._loop)


def _peek(connection: socket.socket) -> tuple[int, bool]:
    """Return how many bytes it must have before it can be opened, 0 if it can; and if it is TLS.

    Raises:
        OSError: it says nothing yet, or has hung up.
    """
    head = connection.recv(_RECORD_HEAD, socket.MSG_PEEK)
    if not head:
        raise ConnectionResetError("")
    if head[0] != TLS_FIRST_BYTE:
        return 0, False
    if len(head) < _RECORD_HEAD:
        return _RECORD_HEAD, True
    whole = _RECORD_HEAD + min(int.from_bytes(head[3:]), _MOST_IN_RECORD)
    have = len(connection.recv(whole, socket.MSG_PEEK))
    return (0 if have >= whole else whole), True


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


def _bind(family: int, address: Any, backlog: int) -> socket.socket:  # noqa: ANN401 - its own shape
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

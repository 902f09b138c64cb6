"""Serves write lanes: listens, and runs a thread for each connection.

The thread reads a message, carries it out with the journal's owner, and sends the answer, without
the event loop or another thread.  A disk that hangs blocks only the lanes of its own journal.
"""

import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import structlog

from ha.daemon.door.door import Door, DoorLimits
from ha.daemon.door.origin import origin_of_socket
from ha.daemon.door.places import Standing
from ha.security.access_control import AccessControl
from ha.security.first_byte import TLS_FIRST_BYTE
from ha.security.rights import JOURNALNODE
from journal import lane
from journal.errors import JournalError
from journal.node import metrics
from journal.node.faces.lane_codec import LaneFace, face_of, most_bytes
from journal.node.lanes.lane_budget import TOTAL_BYTES, LaneBudget
from journal.node.node import JournalNode

log = structlog.get_logger()

MAX_LANES: Final = 64
MUTE: Final = DoorLimits(most=48, unproven=32, unproven_of_origin=8, of_origin=8)
"""Limits of the connections that have not sent a valid hello; they do not count as lanes."""
HELLO_SECONDS: Final = 5.0
MESSAGE_SECONDS: Final = 60.0
"""The longest time from a message's first byte to its last."""
_REST_SECONDS: Final = 0.1
_READ_BYTES: Final = 64 * 1024
"""The size of one read; for a larger buffer the C library would map new pages each time."""
_KEEPALIVE: Final = (
    (socket.SO_KEEPALIVE, socket.SOL_SOCKET, 1),
    (socket.TCP_KEEPIDLE, socket.IPPROTO_TCP, 30),
    (socket.TCP_KEEPINTVL, socket.IPPROTO_TCP, 10),
    (socket.TCP_KEEPCNT, socket.IPPROTO_TCP, 3),
)
"""Closes the lane of a machine that has crashed, which would else count as open for ever."""


class Lanes:
    """Accepts and serves the lanes of one node process, from ``start`` to ``stop``."""

    def __init__(self, node: JournalNode, access: AccessControl | None = None) -> None:
        self._node = node
        self._access = access
        self._lock = threading.Lock()
        self._threads: dict[socket.socket, threading.Thread] = {}
        self._mute: Door[threading.Thread] = Door("lane", self._turned_away)
        self._budget = LaneBudget(max(TOTAL_BYTES, 2 * most_bytes(node)))
        self._open: Counter[str] = Counter()
        self._listener: socket.socket | None = None
        self._stopping = threading.Event()
        self._accepting: threading.Thread | None = None
        self._offer = lane.Offer(0, secrets.token_bytes(lane.KEY_BYTES))

    @property
    def offer(self) -> lane.Offer:
        """The port and the key that writers get in the answer to NewEpoch."""
        return self._offer

    def open_to(self, journal_id: str) -> int:
        """Return the number of open lanes to a journal."""
        with self._lock:
            return self._open[journal_id]

    def start(self, host: str, port: int) -> int:
        """Listen, and return the port.

        Raises:
            OSError: the address cannot be bound.
        """
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=MAX_LANES)
        bound: int = listener.getsockname()[1]
        self._listener, self._offer = listener, lane.Offer(bound, self._offer.key)
        self._accepting = threading.Thread(
            target=self._accept, args=(listener,), name="write lanes", daemon=True
        )
        self._accepting.start()
        return bound

    def stop(self) -> None:
        """Close the listener and all lanes, and wait for the messages that are carried out."""
        listener = self._listener
        if listener is None or self._accepting is None:
            return
        self._stopping.set()
        _shut(listener)
        self._accepting.join()
        listener.close()
        with self._lock:
            threads = dict(self._threads)
        for connection in threads:
            _shut(connection)
        for thread in threads.values():
            thread.join()

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                connection, peer = listener.accept()
            except OSError as failure:
                # Too many open files, or the peer has closed: the next accept may succeed.
                if not self._stopping.wait(_REST_SECONDS):
                    log.warning("journal.lane_not_accepted", because=str(failure))
                continue
            thread = threading.Thread(
                target=self._serve, args=(connection, peer), name="write lane", daemon=True
            )
            if not self._take(connection, thread):
                connection.close()
                continue
            try:
                thread.start()
            except RuntimeError as full:  # the system gives no more threads
                log.warning("journal.lane_not_accepted", because=str(full))
                self._leave(thread)
                connection.close()

    def _take(self, connection: socket.socket, thread: threading.Thread) -> bool:
        """Register a new connection until its hello; return False if the limits are reached."""
        try:
            seat = MUTE.seat(origin_of_socket(connection), Standing.UNPROVEN)
        except OSError:
            return False  # the peer has closed the connection
        with self._lock:
            taken = self._mute.take(thread, seat)
            if taken:
                self._threads[connection] = thread
        return taken

    def _turned_away(self, thread: threading.Thread, _limit: str) -> None:
        """Shut down the connection that a thread serves; the caller holds ``_lock``."""
        for connection, its in self._threads.items():
            if its is thread:
                _shut(connection)

    def _spoken(self, journal: str) -> None:
        """Count the calling thread's connection, after its hello, as an open lane to a journal.

        Raises:
            NoLane: ``MAX_LANES`` are open.
        """
        with self._lock:
            self._mute.leave(threading.current_thread())
            full = self._open.total() >= MAX_LANES
            self._open[journal] += not full
        if full:
            metrics.LANE_LIMITS.labels("lanes").inc()
            raise lane.NoLane(f"{MAX_LANES} are open")

    def _serve(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        """Serve a connection until it ends, and log its error; other lanes go on."""
        try:
            with self._secure(connection) as ready, self._watched(ready):
                self._check(ready)
                self._converse(ready, peer)
        except (lane.NoLane, JournalError) as no:
            log.warning("journal.lane_refused", peer=peer[0], because=str(no))
        except OSError as gone:
            log.info("journal.lane_lost", peer=peer[0], because=str(gone))
        except Exception:
            log.exception("journal.lane_crashed", peer=peer[0])
        finally:
            self._leave(threading.current_thread())
            connection.close()

    def _leave(self, thread: threading.Thread) -> None:
        """Remove the connection of a thread that has ended, or could not be started."""
        with self._lock:
            for known, its in tuple(self._threads.items()):
                if its is thread:
                    del self._threads[known]
            self._mute.leave(thread)

    def _secure(self, connection: socket.socket) -> socket.socket:
        """Return the connection, with TLS if its first byte begins a handshake.

        Raises:
            NoLane: no byte comes within ``HELLO_SECONDS``, or the handshake fails.
        """
        tls = None if self._access is None else self._access.tls
        if tls is None:
            return connection
        connection.settimeout(HELLO_SECONDS)
        try:
            first = connection.recv(1, socket.MSG_PEEK)
            if first != bytes([TLS_FIRST_BYTE]):
                return connection
            with self._lock:
                # Wrapping detaches the old socket object; stop() must find the new one.
                thread = self._threads.pop(connection)
                wrapped = tls.server.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
                self._threads[wrapped] = thread
            try:
                wrapped.do_handshake()
            except OSError:
                wrapped.close()
                raise
        except TimeoutError:
            raise lane.NoLane(f"it has not said who it is within {HELLO_SECONDS:g} s") from None
        except ssl.SSLError as failure:
            raise lane.NoLane(f"no TLS: {failure}") from None
        return wrapped

    @contextmanager
    def _watched(self, connection: socket.socket) -> Iterator[None]:
        """Close the lane when its client certificate expires or is not accepted any more."""
        tls = None if self._access is None else self._access.tls
        if tls is None or not isinstance(connection, ssl.SSLSocket):
            yield
            return
        leaf = tls.leaf(connection.getpeercert(binary_form=True) or b"")
        if isinstance(leaf, str):
            raise lane.NoLane(leaf)
        opened = tls.connections.add(leaf, lambda _reason: _shut(connection))
        try:
            yield
        finally:
            tls.connections.remove(opened)

    def _converse(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, level, value in _KEEPALIVE:
            connection.setsockopt(level, option, value)
        face = self._greet(connection)
        journal = face.owner.journal_id
        incoming = Incoming(connection, most_bytes(self._node), self._budget)
        self._spoken(journal)
        try:
            log.info("journal.lane_opened", journal=journal, peer=peer[0])
            connection.sendall(lane.WELCOME)
            while (message := incoming.next()) is not None:
                connection.sendall(face.answered(*message))
        finally:
            incoming.close()
            with self._lock:
                self._open[journal] -= 1
        log.info("journal.lane_closed", journal=journal, peer=peer[0])

    def _check(self, connection: socket.socket) -> None:
        """Raise NoLane unless the caller has the right to write.

        NewEpoch needs that right, too, but the key in its answer may have been stolen.
        """
        if self._access is None:
            return
        caller = self._access.caller(
            connection.getpeername(), connection.getsockname(), connection, connection
        )
        denied = self._access.refusal(caller, "lane", JOURNALNODE, "Write")
        if denied is not None:
            raise lane.NoLane(denied.reason)

    def _greet(self, connection: socket.socket) -> LaneFace:
        ends = time.monotonic() + HELLO_SECONDS
        head = _exactly(connection, lane.HELLO_BYTES, ends)
        rest = _exactly(connection, lane.rest_of_hello(head), ends)
        connection.settimeout(None)
        return face_of(self._node, self._offer, lane.hello_of(head, rest))


class Incoming:
    """Reads the messages of one connection."""

    def __init__(
        self,
        connection: socket.socket,
        most: int,
        budget: LaneBudget,
        seconds: float = MESSAGE_SECONDS,
    ) -> None:
        self._connection = connection
        self._most = most
        self._budget = budget
        self._seconds = seconds
        self._held = 0
        self._timed = False
        self._rest = b""

    def close(self) -> None:
        """Return the bytes of the last message to the budget."""
        self._budget.give(self._held)
        self._held = 0

    def next(self) -> tuple[bytes, bytes] | None:
        """Return the next message's header and records; None when the writer has closed the lane.

        Raises:
            NoLane: the length is not valid, the time is up, or the budget has no room.
        """
        self.close()
        rest = self._rest
        ends = time.monotonic() + self._seconds
        while len(rest) < lane.HEADER_BYTES:
            if rest:
                self._wait_until(ends)
            data = self._connection.recv(_READ_BYTES)
            if not data:
                return None
            if not rest:
                ends = time.monotonic() + self._seconds
            rest = rest + data if rest else data
        length = int.from_bytes(rest[: lane.LENGTH_BYTES])
        if not lane.LEAST_LENGTH <= length <= self._most:
            raise lane.NoLane(f"a message of {length} bytes; at most {self._most} are read")
        head, end = rest[: lane.HEADER_BYTES], lane.LENGTH_BYTES + length
        if len(rest) >= end:
            self._rest = rest[end:]
            self._wait_for_ever()
            return head, rest[lane.HEADER_BYTES : end]
        self._rest = b""
        try:
            self._held = self._budget.take(end, ends - time.monotonic())
        except lane.NoLane:
            metrics.LANE_LIMITS.labels("buffered").inc()
            raise
        records = bytearray(end - lane.HEADER_BYTES)
        have = len(rest) - lane.HEADER_BYTES
        records[:have] = rest[lane.HEADER_BYTES :]
        missing = memoryview(records)[have:]
        while missing:
            self._wait_until(ends)
            got = self._connection.recv_into(missing)
            if not got:
                return None
            missing = missing[got:]
        self._wait_for_ever()
        return head, bytes(records)

    def _wait_until(self, ends: float) -> None:
        """Limit a message's reads with a TimeoutError, an OSError; raise NoLane after ``ends``."""
        left = ends - time.monotonic()
        if left <= 0:
            metrics.LANE_LIMITS.labels("message_seconds").inc()
            raise lane.NoLane(f"a message was not whole after {self._seconds:g} s")
        if not self._timed:  # once for each message, as it is a system call
            self._timed = True
            self._connection.settimeout(left)

    def _wait_for_ever(self) -> None:
        """Remove the time limit before the next message, as a writer may be idle."""
        if self._timed:
            self._timed = False
            self._connection.settimeout(None)


def _exactly(connection: socket.socket, size: int, ends: float) -> bytes:
    """Read ``size`` bytes; raise NoLane if they have not come by ``ends`` (monotonic clock)."""
    data = b""
    while len(data) < size:
        left = ends - time.monotonic()
        if left <= 0:
            raise lane.NoLane(f"it has not said who it is within {HELLO_SECONDS:g} s")
        connection.settimeout(left)
        try:
            more = connection.recv(size - len(data))
        except TimeoutError:
            continue
        if not more:
            raise lane.NoLane("it was gone before it had said who it is")
        data += more
    return data


def _shut(connection: socket.socket) -> None:
    """Shut the connection down, which wakes a thread that blocks in a call on it."""
    with suppress(OSError):  # the peer has closed it already
        # SSLSocket.shutdown would remove the TLS of a connection that another thread reads.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)

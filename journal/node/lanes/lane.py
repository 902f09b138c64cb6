"""Where a node takes write lanes: a listener, and a thread for each connection.

A thread waits for a message, has the journal's owner carry it out on the spot, and answers.  So a
batch meets no event loop, no task and no other thread; one disk that hangs stops its own lanes and
nothing else.
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
"""Lanes that have not said yet whose they are; they are none of ``MAX_LANES``."""
HELLO_SECONDS: Final = 5.0
MESSAGE_SECONDS: Final = 60.0
"""From a message's first bytes to its last."""
_REST_SECONDS: Final = 0.1
_READ_BYTES: Final = 64 * 1024
"""The size of one read: for more the C library maps fresh pages each time."""
_KEEPALIVE: Final = (
    (socket.SO_KEEPALIVE, socket.SOL_SOCKET, 1),
    (socket.TCP_KEEPIDLE, socket.IPPROTO_TCP, 30),
    (socket.TCP_KEEPINTVL, socket.IPPROTO_TCP, 10),
    (socket.TCP_KEEPCNT, socket.IPPROTO_TCP, 3),
)
"""A writer whose machine is gone says nothing more, and must not keep its place for ever."""


class Lanes:
    """Takes lanes for one node process, from ``start`` to ``stop``."""

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
        """What writers are offered: the port and the key."""
        return self._offer

    def open_to(self, journal_id: str) -> int:
        """Return how many lanes a journal has."""
        with self._lock:
            return self._open[journal_id]

    def start(self, host: str, port: int) -> int:
        """Listen; which port it is.

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
        """Close the listener and every lane; what is under way is carried out and ends first."""
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
                # Too many open files, or a peer that has gone: the next one may do better.
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
        """Return whether a newcomer has a place until it has said whose it is."""
        try:
            seat = MUTE.seat(origin_of_socket(connection), Standing.UNPROVEN)
        except OSError:
            return False  # it has gone
        with self._lock:
            taken = self._mute.take(thread, seat)
            if taken:
                self._threads[connection] = thread
        return taken

    def _turned_away(self, thread: threading.Thread, _limit: str) -> None:
        """Shut the connection that a thread serves; the lock is held."""
        for connection, its in self._threads.items():
            if its is thread:
                _shut(connection)

    def _spoken(self, journal: str) -> None:
        """Give the lane of this thread one of the places for those that write, in a journal.

        Raises:
            NoLane: they are taken.
        """
        with self._lock:
            self._mute.leave(threading.current_thread())
            full = self._open.total() >= MAX_LANES
            self._open[journal] += not full
        if full:
            metrics.LANE_LIMITS.labels("lanes").inc()
            raise lane.NoLane(f"{MAX_LANES} are open")

    def _serve(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        """Serve a lane from its first byte to its end; no error in it ends another lane."""
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
        """Forget a lane that has ended, or was not begun."""
        with self._lock:
            for known, its in tuple(self._threads.items()):
                if its is thread:
                    del self._threads[known]
            self._mute.leave(thread)

    def _secure(self, connection: socket.socket) -> socket.socket:
        """Return the same connection, over TLS where its first byte says so.

        Raises:
            NoLane: it says nothing, or its certificate is none of ours.
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
                # To wrap takes the socket out of its object, and stop() must find it.
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
        """End a lane when the certificate that has opened it counts no more."""
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
        """Raise NoLane unless its other end may write.

        The key that it must show came in an answer to NewEpoch, whose caller was held to the same
        right; but a key may be stolen.
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
    """The messages of one connection, whole."""

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
        """Give back what the last message took."""
        self._budget.give(self._held)
        self._held = 0

    def next(self) -> tuple[bytes, bytes] | None:
        """Return the next message, as its header and its records; None when the writer has gone.

        Raises:
            NoLane: its length is none that a message has, or it does not end in time.
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
        """Let no reading wait much longer; a TimeoutError, which is an OSError, ends it."""
        left = ends - time.monotonic()
        if left <= 0:
            metrics.LANE_LIMITS.labels("message_seconds").inc()
            raise lane.NoLane(f"a message was not whole after {self._seconds:g} s")
        if not self._timed:  # once for a message: it is a system call
            self._timed = True
            self._connection.settimeout(left)

    def _wait_for_ever(self) -> None:
        """Wait without limit for the next message: an idle writer is no fault."""
        if self._timed:
            self._timed = False
            self._connection.settimeout(None)


def _exactly(connection: socket.socket, size: int, ends: float) -> bytes:
    """Read ``size`` bytes before the instant ``ends`` of the monotonic clock; raises NoLane."""
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
    """Wake whoever waits in a call on it."""
    with suppress(OSError):  # the other end has gone already
        # Not SSLSocket's, which takes TLS off a connection that another thread is reading.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)

"""Limits gRPC's connections by origin, though gRPC does not report them.

gRPC accepts connections itself, and takes none that another listener has accepted.  A relay would
cost each call 10 to 20 % (60 to 80 µs).  So a thread lists the sockets of this process ten times a
second, counts those of gRPC's port at a Door, and shuts down a connection that exceeds a limit;
gRPC sees that as a disconnect of the client.  In between only gRPC's own limit holds, which is one
for all origins.
"""

import os
import socket
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import structlog

from ha.daemon.door.door import Door, DoorLimits
from ha.daemon.door.origin import Origin, origin_of_ends
from ha.daemon.door.places import Standing
from ha.security.caller import Caller
from ha.security.peer_uid import end_of

log = structlog.get_logger()

CONNECTIONS: Final = DoorLimits(most=512, unproven=256, unproven_of_origin=32, of_origin=64)
MOST_ACCEPTED: Final = 1024
"""gRPC's own limit of connections."""
LOOK_SECONDS: Final = 0.1
AGAIN_SECONDS: Final = 0.02
"""The interval after a look that found too many connections, as more are likely to come."""


def own_sockets() -> Iterator[tuple[int, int]]:
    """Yield inode and descriptor of each socket of this process."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - ten times a second
        with suppress(OSError):
            found = os.fstat(int(name))
            if stat.S_ISSOCK(found.st_mode):
                yield found.st_ino, int(name)


class GrpcWatch:
    """Limits the connections of one port, in a thread from ``start`` to ``stop``."""

    def __init__(
        self,
        port: Callable[[], int],
        limits: DoorLimits = CONNECTIONS,
        sockets: Callable[[], Iterable[tuple[int, int]]] = own_sockets,
    ) -> None:
        self._port, self._sockets = port, sockets
        self._limits = limits
        self._door: Door[int] = Door("grpc", self._shut)
        self._found: dict[int, tuple[int, str, Origin]] = {}
        """By inode: the connection's descriptor, peer address and origin."""
        self._others: set[int] = set()
        self._admitted: dict[str, Standing] = {}
        self._too_many = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gRPC connections", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def admitted(self, caller: Caller) -> None:
        """Note a caller whose call was allowed; may be called from any thread, for each call."""
        if caller.address not in self._admitted:
            standing = Standing.KEPT if caller.proven else Standing.PROVEN
            self._admitted[caller.address] = standing

    def look(self) -> None:
        """List the port's connections, count the new ones, and shut down those above a limit."""
        admitted = dict(self._admitted)  # before the sockets: each of its callers is among those
        sockets = dict(self._sockets())
        for inode in self._found.keys() - sockets.keys():
            del self._found[inode]
            self._door.leave(inode)
        self._others &= sockets.keys()
        # Callers that were admitted come first: a new connection must not displace theirs.
        for inode, (_, address, _) in self._found.items():
            if address in admitted and inode in self._door:
                self._place(inode, admitted[address])
        for inode in sorted(sockets.keys() - self._found.keys() - self._others):
            self._take(inode, sockets[inode], admitted)
        for address in admitted.keys() - {address for _, address, _ in self._found.values()}:
            del self._admitted[address]

    def _run(self) -> None:
        while not self._stopping.wait(AGAIN_SECONDS if self._too_many else LOOK_SECONDS):
            self._too_many = False
            try:
                self.look()
            except Exception:
                log.warning("journal.grpc_not_watched", exc_info=True)

    def _take(self, inode: int, number: int, admitted: Mapping[str, Standing]) -> None:
        with suppress(OSError, ValueError), _borrowed(number) as one:
            own, peer = one.getsockname(), one.getpeername()
            if end_of(own) is not None and own[1] == self._port():
                address = str(end_of(peer))
                self._found[inode] = number, address, origin_of_ends(peer, own)
                self._place(inode, admitted.get(address, Standing.UNPROVEN))
                return
        self._others.add(inode)

    def _place(self, inode: int, standing: Standing) -> None:
        seat = self._limits.seat(self._found[inode][2], standing)
        if not self._door.take(inode, seat):
            self._shut(inode, "")

    def _shut(self, inode: int, _limit: str) -> None:
        self._too_many = True
        with suppress(OSError):
            held = os.dup(self._found[inode][0])
            with socket.socket(fileno=held) as one:
                if os.fstat(held).st_ino == inode:  # else gRPC has closed it: the fd is reused
                    one.shutdown(socket.SHUT_RDWR)


@contextmanager
def _borrowed(number: int) -> Iterator[Any]:
    """Yield a socket object of gRPC's descriptor, and do not close the descriptor."""
    one = socket.socket(fileno=number)
    try:
        yield one
    finally:
        one.detach()

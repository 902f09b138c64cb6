"""The owner of the socket at the other end of a local TCP connection, as the kernel reports it.

The kernel is asked for one exact pair of addresses over netlink, which takes some 20 µs; where a
sandbox forbids that, /proc/net/tcp is read.

A socket that its process has closed has no owner.  The kernel shows such a one with uid 0 and
without an inode: that distinguishes an end without an owner from root's.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ha.record import dataclass

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_NLMSG_ERROR: Final = 2
_HEADER: Final = struct.Struct("=IHHII")
_ASKED: Final = struct.Struct("=BBBxI")
_PORTS: Final = struct.Struct(">HH")
_OWNER: Final = struct.Struct("=II")
_ID_BYTES: Final = 48
_ANY_COOKIE: Final = b"\xff" * 8
_MAPPED: Final = b"\0" * 10 + b"\xff\xff"
_ALL_STATES: Final = 0xFFFFFFFF

_CONNECTED: Final = frozenset({1, 4, 5, 8, 9, 11})
"""ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING; with an inode, a process has it
open.  Not LISTEN: where there is no such connection the kernel finds whoever listens there."""
_OURS: Final = frozenset({1, 8})


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection: an address, not a name, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def end_of(name: object) -> End | None:
    """Return the end that a socket's own or peer's name shows; None if it is none of TCP's."""
    match name:
        case (str() as host, int() as port, *_):
            return End(host.partition("%")[0].removeprefix("::ffff:"), port)
        case _:
            return None


def is_here(peer: End, own: End) -> bool:
    """Return whether both ends are on this machine, where alone the kernel knows the other one."""
    try:
        return peer.host == own.host or ipaddress.ip_address(peer.host).is_loopback
    except ValueError:
        return False


def still_open(connection: object) -> bool:
    """Return whether our own socket is connected.

    It is asked after the other end: once our end has been reset, another process may have the same
    pair of addresses, and the kernel would return that one's owner.
    """
    ask: Callable[[int, int, int], bytes] | None = getattr(connection, "getsockopt", None)
    if ask is None:
        return False
    with suppress(OSError, ValueError):
        return ask(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _OURS
    return False


def uid_of(peer: End, own: End) -> int | None:
    """Return the owner of the socket ``peer`` of the connection to ``own``; None if unknown."""
    try:
        return asked_of_netlink(peer, own)
    except OSError:
        return asked_of_proc(peer, own)


def is_told() -> bool:
    """Return whether the kernel reports it here, tried with a connection of our own."""
    with (
        suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as ours,
    ):
        peer, own = end_of(ours.getsockname()), end_of(ours.getpeername())
        assert peer is not None
        assert own is not None
        return uid_of(peer, own) == os.geteuid()
    return False


def asked_of_netlink(peer: End, own: End) -> int | None:
    """Ask netlink for the owner of the socket ``peer``; raise OSError where that cannot be had."""
    family = socket.AF_INET6 if ":" in peer.host else socket.AF_INET
    try:
        source = socket.inet_pton(family, peer.host).ljust(16, b"\0")
        target = socket.inet_pton(family, own.host).ljust(16, b"\0")
    except OSError:
        return None  # the ends are of two families: no connection has these
    wanted = _PORTS.pack(peer.port, own.port) + source + target
    body = _ASKED.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES) + wanted + bytes(4) + _ANY_COOKIE
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    with socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG) as kernel:
        kernel.send(head + body)
        answer = kernel.recv(4096)  # it is there: the kernel answers inside of send
    _, sort, _, _, _ = _HEADER.unpack_from(answer)
    if sort == _NLMSG_ERROR:
        (number,) = struct.unpack_from("=i", answer, _HEADER.size)
        if -number in (1, 13, 95):
            raise PermissionError(-number, os.strerror(-number))
        return None
    found = answer[_HEADER.size :]
    state, ends = found[1], found[4 : 4 + len(wanted)]
    # A socket of IPv6 that speaks IPv4, as Java's and gRPC's, is shown with mapped addresses.
    mapped = wanted[:4] + _MAPPED + source[:4] + _MAPPED + target[:4]
    uid, inode = _OWNER.unpack_from(found, 4 + _ID_BYTES + 12)
    return uid if inode and state in _CONNECTED and ends in (wanted, mapped) else None


def asked_of_proc(peer: End, own: End, proc: Path = Path("/proc/net")) -> int | None:
    """Find the owner of the socket ``peer`` in the kernel's list of all connections."""
    source, target = ipaddress.ip_address(peer.host), ipaddress.ip_address(own.host)
    for name, shown in _table_entries(source, target):
        wanted = (f"{shown[0]}:{peer.port:04X}", f"{shown[1]}:{own.port:04X}")
        with suppress(OSError), (proc / name).open() as lines:
            for line in lines:
                one = line.split()
                if (one[1], one[2]) == wanted and int(one[3], 16) in _CONNECTED and one[9] != "0":
                    return int(one[7])
    return None


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _table_entries(source: _Address, target: _Address) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the lists in which such a connection can stand, and its addresses in their form."""
    if source.version == 4 and target.version == 4:
        yield "tcp", (_words(source.packed), _words(target.packed))
        yield "tcp6", (_words(_MAPPED + source.packed), _words(_MAPPED + target.packed))
    elif source.version == 6 and target.version == 6:
        yield "tcp6", (_words(source.packed), _words(target.packed))


def _words(packed: bytes) -> str:
    """Return hexadecimal words of four bytes, each in the machine's order."""
    count = len(packed) // 4
    return "".join(f"{word:08X}" for word in struct.unpack(f"={count}I", packed))

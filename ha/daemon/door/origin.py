"""Where a connection comes from, for the share that it has with others from there."""

import os
import socket
from contextlib import suppress
from enum import Enum, auto
from ipaddress import ip_address
from typing import Any

from ha.record import dataclass
from ha.security.caller import Caller, network_of
from ha.security.peer_uid import End, end_of, is_here, uid_of


class Share(Enum):
    """How much those from one origin may have together."""

    OF_ADDRESS = auto()
    OF_USER = auto()
    UNLIMITED = auto()
    """As much as there is: it may be anybody on this machine."""


@dataclass(frozen=True, slots=True)
class Origin:
    """An address, of IPv6 a network, or on this machine a uid: it distinguishes callers here.

    ``trusted``: it is root's or the daemon's own user's, which could end the daemon anyway.
    """

    name: str
    share: Share
    trusted: bool = False


def origin_of(host: str, caller: Caller | None) -> Origin:
    """Return the origin of a connection from this address; ``caller`` as far as it is known."""
    return _origin(host, None if caller is None else caller.uid)


def origin_of_socket(connection: socket.socket) -> Origin:
    """Return the origin of an accepted connection; the kernel is asked for its uid, if it is here.

    Raises:
        OSError: it is closed already.
    """
    return origin_of_ends(connection.getpeername(), connection.getsockname())


def origin_of_ends(peer: Any, own: Any) -> Origin:  # noqa: ANN401 - a socket's names
    """Return the origin of a connection with these two ends, as sockets name them."""
    there, here = end_of(peer), end_of(own)
    if there is None or here is None:
        return Origin("", Share.OF_ADDRESS)
    return _origin(there.host, _uid(there, here) if is_here(there, here) else None)


def _uid(there: End, here: End) -> int | None:
    try:
        return uid_of(there, here)
    except OSError:
        return None  # no descriptor to ask with


def _origin(host: str, uid: int | None) -> Origin:
    if uid is not None:
        return Origin(f"uid {uid}", Share.OF_USER, trusted=uid in (0, os.geteuid()))
    network, loopback = network_of(host), False
    with suppress(ValueError):  # no address of a network
        loopback = ip_address(network if "." in network else host.partition("%")[0]).is_loopback
    return Origin(network, Share.UNLIMITED if loopback else Share.OF_ADDRESS)

"""Why an address cannot be listened on: the key, what the system says, and what to do."""

import errno
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ha.conf.listening import Door
from ha.conf.topology import HostPort
from ha.daemon.end_code import end_code
from ha.daemon.process import ExitWith

_REMEDIES: Final = {
    errno.EADDRINUSE: "Stop what listens there (ss -ltnp shows it), or give {key} another port.",
    errno.EADDRNOTAVAIL: "No interface of this host has that address: correct {key}.",
    errno.EACCES: "Ports below 1024 are for root: give {key} another port.",
}
_UNKNOWN_NAME: Final = "The name does not resolve here: correct {key}, or /etc/hosts, or DNS."


def cannot_listen(key: str, host: str, port: int, failure: Exception) -> str:
    """Return the failure to listen on an address in words, with the remedy."""
    reason, remedy = str(failure), "Correct {key}."
    if isinstance(failure, socket.gaierror):
        reason, remedy = failure.strerror or reason, _UNKNOWN_NAME
    elif isinstance(failure, OSError) and failure.errno is not None:
        reason, remedy = os.strerror(failure.errno), _REMEDIES.get(failure.errno, remedy)
    return (
        f"{key}: cannot listen on {HostPort(host, port)}: {reason}. Nothing was changed. "
        f"{remedy.format(key=key)}"
    )


@contextmanager
def binding(key: str, host: str, port: int) -> Iterator[None]:
    """Raise ExitWith where what is inside cannot listen on the address that this key gives."""
    try:
        yield
    except (OSError, ValueError, OverflowError) as failure:
        raise ExitWith(end_code(failure), cannot_listen(key, host, port, failure)) from failure


async def listen_at(door: Door, start: Callable[[str, int], Awaitable[int]]) -> int:
    """Start a server at a door, and return its port.  Raises ExitWith where it cannot be had."""
    with binding(door.key, door.host, door.port):
        return await start(door.host, door.port)

"""Finds unused TCP ports on loopback, by binding them."""

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from collections import deque
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from deploy.local.cluster.errors import LocalClusterError

HOST = "127.0.0.1"
CLAIMS = Path(tempfile.gettempdir()) / f"nnha-ports-{os.getuid()}"
"""A byte for each port, locked by the process that it was given to."""

# Below Linux's usual range for outgoing connections (32768 and up): a port found there could be
# taken by any client's connection before our daemon binds it.
_LOWEST = 20_000
_HIGHEST = 32_000
_KEPT = 1_000

# Ports are not given again soon: a client that still keeps a connection to what listened there
# before (Hadoop's do for 10 s, and do not see that it was closed) would fail its next call.
_given: deque[int] = deque()


def free_ports(count: int, among: Sequence[int] = range(_LOWEST, _HIGHEST)) -> tuple[int, ...]:
    """Return that many different ports that could all be bound at the same time.

    No other process on this machine that asks here is given them, as long as this one lives: a
    daemon may bind its port many seconds later.
    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.sample(among, len(among)):
            if len(found) == count:
                break
            if port in _given or (bound := _bind(port)) is None:
                continue
            held.enter_context(bound)
            if _claim(port):
                found.append(port)
    if len(found) < count:
        raise LocalClusterError(
            f"Looked for {count} free ports between {among[0]} and {among[-1]} on {HOST}; found "
            f"{len(found)}. Stop what uses them, or give a base port"
        )
    _given.extend(found)
    while len(_given) > _KEPT:
        fcntl.lockf(_claims(), fcntl.LOCK_UN, 1, _given.popleft())
    return tuple(found)


def ports_from(base: int, count: int) -> tuple[int, ...]:
    """Return the ports from ``base`` on.  Raises LocalClusterError naming those that are taken."""
    wanted = tuple(range(base, base + count))
    ensure_free(wanted)
    return wanted


def ensure_free(ports: tuple[int, ...]) -> None:
    """Raise LocalClusterError naming the ports that are taken."""
    taken = []
    for port in ports:
        bound = _bind(port)
        if bound is None:
            taken.append(port)
        else:
            bound.close()
    if taken:
        raise LocalClusterError(
            f"Tried to bind the cluster's ports on {HOST}; taken: {', '.join(map(str, taken))}. "
            f"Stop what listens there, or choose another base port"
        )


def _claim(port: int) -> bool:
    """Lock the port's byte of a file that all processes share; return whether that succeeded."""
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _claims() -> int:
    """Open ``CLAIMS``; to close the descriptor would end all claims of this process."""
    return os.open(CLAIMS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _bind(port: int) -> socket.socket | None:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((HOST, port))
        bound.listen(1)  # until somebody listens, SO_REUSEADDR lets others bind the same port
    except OSError:
        bound.close()
        return None
    return bound

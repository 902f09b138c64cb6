"""Finds TCP ports on loopback that nobody uses, by binding them."""

import contextlib
import random
import socket
from collections import deque
from collections.abc import Iterator

from deploy.local.errors import LocalClusterError

HOST = "127.0.0.1"

# Below Linux's usual range for outgoing connections (32768 and up): a port found there could be
# taken by any client's connection before our daemon binds it.
_LOWEST = 20_000
_HIGHEST = 32_000
_ATTEMPTS = 2_000
_KEPT = 1_000

# Ports are not given again soon: a client that still keeps a connection to what listened there
# before (Hadoop's do for 10 s, and do not see that it was closed) would fail its next call.
_given: deque[int] = deque(maxlen=_KEPT)


def free_ports(count: int) -> tuple[int, ...]:
    """That many different ports that could all be bound at the same time."""
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in _candidates():
            if len(found) == count:
                break
            if port not in _given and (bound := _bind(port)) is not None:
                held.enter_context(bound)
                found.append(port)
    if len(found) < count:
        raise LocalClusterError(
            f"Looked for {count} free ports between {_LOWEST} and {_HIGHEST} on {HOST}; found "
            f"{len(found)}. Stop what uses them, or give a base port"
        )
    _given.extend(found)
    return tuple(found)


def ports_from(base: int, count: int) -> tuple[int, ...]:
    """The ports from ``base`` on.  Raises LocalClusterError naming those that are taken."""
    wanted = tuple(range(base, base + count))
    ensure_free(wanted)
    return wanted


def ensure_free(ports: tuple[int, ...]) -> None:
    """Raises LocalClusterError naming the ports that are taken."""
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


def _candidates() -> Iterator[int]:
    # Random, so that two clusters being built at the same moment rarely want the same port.
    yield from random.sample(range(_LOWEST, _HIGHEST), _ATTEMPTS)


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

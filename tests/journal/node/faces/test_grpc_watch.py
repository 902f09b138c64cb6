"""gRPC's connections have places, although gRPC counts none: real sockets, small limits."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prometheus_client import REGISTRY

from ha.daemon.door.door import DoorLimits
from ha.security.caller import local_caller
from journal.node.faces.grpc_watch import GrpcWatch, own_sockets
from tests.needs import OTHER_USER, STRANGER
from tests.security.strangers import stranger

SECONDS = 30.0
LIMITS = DoorLimits(most=5, unproven=4, unproven_of_origin=2, of_origin=2)


def places() -> float:
    return REGISTRY.get_sample_value("nnha_door_places", {"door": "grpc"}) or 0.0


@contextmanager
def listening() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener, listener.getsockname()[1]


def pair(
    stack: ExitStack, listener: socket.socket, port: int
) -> tuple[socket.socket, socket.socket]:
    """Return both ends of one more connection: the caller's, and the one that was accepted."""
    near = stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
    far, _ = listener.accept()
    far.settimeout(SECONDS)
    return near, stack.enter_context(far)


def is_shut(near: socket.socket) -> bool:
    """Return whether its other end has been shut; nothing is ever sent here."""
    near.setblocking(False)
    try:
        return near.recv(1) == b""
    except BlockingIOError:
        return False


def test_the_oldest_beyond_the_limit_are_shut_and_no_other_socket_of_the_process() -> None:
    with ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        other, other_port = stack.enter_context(listening())
        watch = GrpcWatch(lambda: port, LIMITS)
        ends = [pair(stack, listener, port) for _ in range(LIMITS.most)]
        others = [pair(stack, other, other_port) for _ in range(LIMITS.most + 1)]
        watch.look()
        assert not any(is_shut(near) for near, _ in ends)
        ends += [pair(stack, listener, port) for _ in range(2)]
        watch.look()
        assert [is_shut(near) for near, _ in ends] == [True] * 2 + [False] * LIMITS.most
        assert not any(is_shut(near) for near, _ in others)
        ends[2][1].close()
        ends.append(pair(stack, listener, port))  # it may get the same descriptor
        watch.look()
        assert not any(is_shut(near) for near, _ in ends[3:]), "a place was free"


@OTHER_USER.mark
def test_a_stranger_has_its_share_and_the_admitted_stay() -> None:
    with ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        behind = stack.enter_context(stranger(port))
        watch = GrpcWatch(lambda: port, LIMITS)
        own = pair(stack, listener, port)
        first = pair(stack, listener, behind)
        watch.look()
        host, number = first[1].getpeername()
        watch.admitted(local_caller(STRANGER, 1, f"{host}:{number}"))
        watch.look()
        crowd = [pair(stack, listener, behind) for _ in range(6)]
        watch.look()
        assert [is_shut(far) for _, far in (own, first)] == [False, False]
        assert [is_shut_here(far) for _, far in crowd] == [True] * 4 + [False] * 2


def is_shut_here(far: socket.socket) -> bool:
    """Return whether this end may send no more."""
    try:
        far.send(b"x")
    except BrokenPipeError:
        return True
    return False


def test_what_closes_while_it_looks_hides_no_other() -> None:
    """A descriptor of gRPC closes between the look at it and the question where it leads."""
    closed = (0, 1 << 20)
    with ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        before = places()
        watch = GrpcWatch(lambda: port, LIMITS, lambda: [closed, *own_sockets()])
        pair(stack, listener, port)
        watch.look()
        assert places() == before + 1


def test_a_closed_connection_leaves_its_place() -> None:
    with ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        watch, before = GrpcWatch(lambda: port, LIMITS), places()
        near, far = pair(stack, listener, port)
        host, number = near.getsockname()
        watch.admitted(local_caller(STRANGER, 1, f"{host}:{number}"))
        watch.look()
        assert places() == before + 1
        near.close()
        far.close()
        watch.look()
        assert places() == before

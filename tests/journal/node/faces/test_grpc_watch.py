"""gRPC's connections have places, although gRPC counts none: real sockets, small limits."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from prometheus_client import REGISTRY

from ha.conf.keys.security import Mode
from ha.daemon.door.door import DoorLimits
from ha.security.access_control import AccessControl
from ha.security.caller import local_caller
from journal.node.faces.grpc_watch import CONNECTIONS, GrpcWatch, own_sockets
from journal.node.process.daemon import JournalNodeDaemon
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from tests.ha.security.test_unproven import Lines
from tests.journal.node.process import NodeClient, until
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
        shut = [is_shut(near) for near, _ in ends]
        assert (sum(shut[: LIMITS.most]), sum(shut[LIMITS.most :])) == (2, 0), "of the older ones"
        assert not any(is_shut(near) for near, _ in others)
        ends[shut.index(False)][1].close()
        ends.append(pair(stack, listener, port))  # it may get the same descriptor
        watch.look()
        assert sum(is_shut_here(far) for _, far in ends if far.fileno() >= 0) == 2, "one was free"


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
        assert sum(is_shut_here(far) for _, far in crowd) == 4


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


@OTHER_USER.mark
def test_who_is_admitted_while_it_looks_is_so_at_the_next_look() -> None:
    """A connection comes, and is let call, just behind the list of sockets; it calls no more."""
    late: list[socket.socket] = []

    def sockets() -> list[tuple[int, int]]:
        found = [*own_sockets()]
        if not late:
            late.append(pair(stack, listener, behind)[1])
            host, number = late[0].getpeername()
            watch.admitted(local_caller(STRANGER, 1, f"{host}:{number}"))
        return found

    with ExitStack() as stack:
        listener, port = stack.enter_context(listening())
        behind = stack.enter_context(stranger(port))
        watch = GrpcWatch(lambda: port, LIMITS, sockets)
        watch.look()
        watch.look()
        crowd = [pair(stack, listener, behind)[1] for _ in range(LIMITS.unproven_of_origin + 1)]
        watch.look()
        assert not is_shut_here(late[0])
        assert sum(map(is_shut_here, crowd)) == 1


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


@OTHER_USER.mark
async def test_a_stream_that_was_admitted_outlives_a_flood_from_where_it_comes(
    tmp_path: Path,
) -> None:
    """The kernel names a stranger at the door; for the calls it is one that may make them."""
    access = AccessControl(
        Mode.AUTO, target="t", audit=Lines(), own_uid=0, uid_of=lambda *_: 0
    )  # fmt: skip
    settings = NodeSettings(folder=tmp_path / "node")
    async with JournalNodeDaemon(settings, access) as daemon:
        with ExitStack() as stack:
            port = await asyncio.to_thread(stack.enter_context, stranger(daemon.rpc_port))
            client = NodeClient(port)
            before = gave_way()
            stream = client.stub.Write()
            await stream.write(pb.WriteRequest())
            assert (await stream.read()).HasField("refusal"), "it is served"
            for _ in range(CONNECTIONS.unproven_of_origin + 8):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), SECONDS))
            await until(lambda: gave_way() >= before + 8, "strangers that give way")
            await stream.write(pb.WriteRequest())
            assert (await stream.read()).HasField("refusal"), "over the same connection"
            await client.close()


def gave_way() -> float:
    labels = {"door": "grpc", "limit": "unproven_of_origin"}
    return REGISTRY.get_sample_value("nnha_door_gave_way_total", labels) or 0.0

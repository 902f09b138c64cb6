"""The relays before gRPC, in permissive, have places as all other connections have."""

import asyncio
import socket
from pathlib import Path

import grpc.aio
import pytest

from ha.conf.keys.security import Mode
from ha.daemon.door.door import DoorLimits
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from journal.node.faces import grpc_door
from journal.node.faces.grpc_watch import own_sockets
from tests import awaits
from tests.ha.security.authority import Authority
from tests.ha.security.test_unproven import Lines
from tests.journal.node.process import until

SECONDS = 30.0
MUCH = bytes(32 * 1024 * 1024)
"""More than the kernel holds for one connection."""


async def test_relays_have_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = DoorLimits(most=2, unproven=2, unproven_of_origin=2, of_origin=2)
    monkeypatch.setattr(grpc_door, "CONNECTIONS", few)
    files = Authority(tmp_path).holder(Role.JOURNALNODE, "jn1")
    access = AccessControl(Mode.PERMISSIVE, target="t", audit=Lines(), tls=files)
    server = grpc.aio.server()
    door = grpc_door.GrpcDoor(server, files, access)
    port = await door.start("127.0.0.1", 0)
    await server.start()
    opened = []
    try:
        async with asyncio.timeout(SECONDS):
            for _ in range(3):
                opened.append(await asyncio.open_connection("127.0.0.1", port))
            assert await opened[0][0].read() == b"", "the oldest gives way"
            opened[1][1].write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5))
            assert await opened[1][0].read(1), "gRPC answers the others"
    finally:
        for _, writer in opened:
            writer.close()
        await server.stop(0)
        await door.stop()


class Generous:
    """Stands for gRPC's server: it answers whatever is said with more than is taken."""

    def __init__(self) -> None:
        self.plain = ""
        self.answering: list[asyncio.StreamWriter] = []

    def add_secure_port(self, _address: str, _credentials: object) -> None:
        pass

    def add_insecure_port(self, address: str) -> None:
        self.plain = address.removeprefix("unix:")

    def answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MUCH)
        self.answering.append(writer)


def accepted(near: socket.socket) -> bool:
    """Return whether this process has a socket whose other end this one is."""
    for _, number in own_sockets():
        one = socket.socket(fileno=number)
        try:
            if one.family == near.family and one.getpeername() == near.getsockname():
                return True
        except OSError:
            continue
        finally:
            one.detach()
    return False


async def test_a_start_that_is_cut_short_leaves_no_port_open(tmp_path: Path) -> None:
    files = Authority(tmp_path).holder(Role.JOURNALNODE, "jn1")
    access = AccessControl(Mode.PERMISSIVE, target="t", audit=Lines(), tls=files)
    doors = []

    async def life() -> None:
        doors.append(grpc_door.GrpcDoor(Generous(), files, access))
        await doors[-1].start("127.0.0.1", 0)

    async def after(_: int) -> None:
        await doors.pop().stop()

    assert await awaits.cut_at_each_await(life, after) > 1


async def test_who_takes_nothing_and_gives_way_keeps_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = DoorLimits(most=1, unproven=1, unproven_of_origin=1, of_origin=1)
    monkeypatch.setattr(grpc_door, "CONNECTIONS", one)
    files = Authority(tmp_path).holder(Role.JOURNALNODE, "jn1")
    access = AccessControl(Mode.PERMISSIVE, target="t", audit=Lines(), tls=files)
    server = Generous()
    door = grpc_door.GrpcDoor(server, files, access)
    port = await door.start("127.0.0.1", 0)
    inner = await asyncio.start_unix_server(server.answer, server.plain)
    try:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as near:
            near.sendall(b"PRI")
            await until(lambda: server.answering and left(server) < len(MUCH), "an answer")
            before = len(MUCH)
            while left(server) < before:  # until a look finds nothing taken
                before = left(server)
                await asyncio.sleep(0.1)
            with socket.create_connection(("127.0.0.1", port), SECONDS):
                await until(lambda: not accepted(near), "the end of its socket")
    finally:
        await door.stop()
        inner.close()
        for writer in server.answering:
            writer.transport.abort()


def left(server: Generous) -> int:
    return server.answering[0].transport.get_write_buffer_size()

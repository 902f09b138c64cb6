"""The relays before gRPC, in permissive, have places as all other connections have."""

import asyncio
from pathlib import Path

import grpc.aio
import pytest

from ha.conf.keys.security import Mode
from ha.daemon.door.door import DoorLimits
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from journal.node.faces import grpc_door
from tests.ha.security.authority import Authority
from tests.ha.security.test_unproven import Lines

SECONDS = 30.0


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

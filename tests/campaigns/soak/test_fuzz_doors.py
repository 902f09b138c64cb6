"""A little of what ``./run soak fuzz`` does to real servers, and what it would see."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc._cython import cygrpc

from tests.campaigns.soak import fuzz_door
from tests.campaigns.soak.fuzz import DOORS
from tests.campaigns.soak.fuzz_door import HOST, Door, Misbehaved, Opened, Play, over_tcp
from tests.in_turn import in_turn

SESSIONS = 240
PLANTED_SESSIONS = 800


class OtherError(Exception):
    """No code raises it."""


def _careless(_state: object, claimed: str | None) -> None:
    assert claimed is not None
    claimed.split(":")[3].index("m")


PLANTED: dict[str, tuple[str, Any]] = {
    "namenode-rpc": ("ha.rpc.packets.DecodeError", OtherError),
    "pages": ("ha.daemon.logs._blaming", lambda _record: None),
    "datanode": ("hadoop.wire.packets.DecodeError", OtherError),
    "datanode-protocol": ("namenode_sim.datanode_protocol.service.BadMessage", OtherError),
    "image-put": ("namenode_sim.checkpoint.image_receive.ImageDamaged", OtherError),
    "journal-grpc": ("journal.node.faces.grpc_guard.DecodeError", OtherError),
    "journal-http2": ("journal.node.faces.grpc_guard._AnsweringServer", cygrpc.AioServer),
    "journal-java": ("journal.node.peers.Unresolved", OtherError),
    "journal-lane": ("journal.lane.UnicodeDecodeError", OtherError),
    "journal-pages": ("journal.node.faces.transfer._check_storage_info", _careless),
}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
async def test_hostile_sessions_end_and_nobody_else_notices(door: Door, tmp_path: Path) -> None:
    play = Play(door, 2, tmp_path)
    assert await play.run(SESSIONS, 0) == []
    assert play.cases == SESSIONS


@pytest.mark.parametrize("door", in_turn(DOORS))
async def test_a_planted_bug_is_found(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, bug = PLANTED[door.name]
    monkeypatch.setattr(place, bug, raising=False)
    # A server that has ended leaves tasks that are not awaited: that is the bug, not the test's.
    findings = await Play(door, 3, tmp_path).run(PLANTED_SESSIONS, 0)
    assert findings
    assert all(Path(finding.path).exists() for finding in findings)


@asynccontextmanager
async def _silent(_: Path) -> AsyncIterator[Opened]:
    """Run a server that never closes, and has no good caller either."""
    ended = asyncio.Event()

    async def keep(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(keep, HOST, 0)
    served = 0

    async def good() -> Sequence[bytes]:
        nonlocal served
        served += 1
        if served > 1:
            raise Misbehaved("nobody answers")
        return [b"hello"]

    async with server:
        yield Opened(over_tcp(server.sockets[0].getsockname()[1]), good)
        ended.set()
        await asyncio.sleep(0)


async def test_who_is_not_hung_up_on_not_served_or_grows_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_door, "CLOSES_SECONDS", 0.1)
    monkeypatch.setattr(fuzz_door, "MOST_GROWTH_BYTES", -(1 << 40))
    findings = await Play(Door("silent", _silent), 1, tmp_path).run(8, 0)
    assert [finding.kind for finding in findings] == ["misbehaved", "a good caller", "memory"]


def test_every_door_has_a_planted_bug() -> None:
    assert set(PLANTED) == {door.name for door in DOORS}

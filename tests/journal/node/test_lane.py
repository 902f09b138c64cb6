"""Write lanes: the same judge as over gRPC, and what a connection of its own must not do."""

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from ha.conf.keys.security import Mode
from ha.daemon.door.door import DoorLimits
from ha.security.access_control import AccessControl
from journal.core.requests import Heartbeat, Journal
from journal.errors import StorageFailed
from journal.lane import KEY_BYTES, MAGIC, Hello, Offer, hello_bytes
from journal.node.faces.lane_codec import LaneFace
from journal.node.lanes import lane as node_lane
from journal.node.owner.owner import JournalOwner
from journal.node.process.daemon import JournalNodeDaemon
from journal.proto import journal_pb2 as pb
from tests.ha.security.test_unproven import Lines
from tests.journal.core.requests_of import Writer, records
from tests.journal.node.lane_client import RawLane, hello, message, of_no_writer
from tests.journal.node.process import (
    DEADLINE_SECONDS,
    JID,
    NodeClient,
    Refused,
    node_and_client,
    until,
)

HOST = "127.0.0.1"
KIND = pb.Refusal


class Stage:
    """A node with an open segment that begins at 1, and its writer."""

    def __init__(self, daemon: JournalNodeDaemon, client: NodeClient, offer: Offer) -> None:
        self.daemon = daemon
        self.client = client
        self.offer = offer
        self.writer = Writer(1)
        self._lanes: list[RawLane] = []

    @property
    def owner(self) -> JournalOwner:
        return self.daemon.node.owner_of(JID)

    async def lane(self, said: Hello | None = None) -> RawLane:
        said = said or hello(self.offer.key)
        lane = await asyncio.to_thread(RawLane.begun, self.offer.port, said)
        self._lanes.append(lane)
        return lane

    async def begun(self, data: bytes) -> RawLane:
        lane = await asyncio.to_thread(RawLane, self.offer.port, data)
        self._lanes.append(lane)
        return lane

    async def refused(self, data: bytes) -> bool:
        lane = await self.begun(data)
        return await asyncio.to_thread(lambda: lane.refused)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Stage]:  # noqa: ANN401
    async with node_and_client(folder, lane_host=HOST, **settings) as (daemon, client):
        await client.format()
        won = await client.new_epoch(1)
        stage = Stage(daemon, client, Offer(won.lane_port, won.lane_key))
        await client.start(stage.writer, 1)
        try:
            yield stage
        finally:
            stage.close()


async def ask(lane: RawLane, request: Journal | Heartbeat) -> pb.Refusal | None:
    return await asyncio.to_thread(lane.ask, request)


async def test_batches_and_heartbeats_go_over_a_lane(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        lane = await stage.lane()
        assert await ask(lane, stage.writer.batch(1, 1, 3)) is None
        assert await ask(lane, Heartbeat(stage.writer.stamp())) is None
        assert await ask(lane, stage.writer.batch(1, 4, 4)) is None
        status = await stage.client.status()
        assert (status.last_written_txid, status.write_lanes) == (4, 1)
        # The next call may come any other way.
        await stage.client.finalize(stage.writer, 1, 4)
    found = tmp_path / JID / "current" / "edits_0000000000000000001-0000000000000000004"
    assert found.read_bytes().endswith(records(1, 4))


async def test_a_lane_for_which_the_system_has_no_thread_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, refusals = threading.Thread.start, ["can't start new thread"]

    def start_later(thread: threading.Thread) -> None:
        if thread.name == "write lane" and refusals:
            raise RuntimeError(refusals.pop())
        start(thread)

    async with opened(tmp_path) as stage:
        monkeypatch.setattr(threading.Thread, "start", start_later)
        assert await stage.refused(hello_bytes(hello(stage.offer.key)))
        assert not refusals
        assert await ask(await stage.lane(), stage.writer.batch(1, 1, 3)) is None


async def test_a_node_that_takes_no_lanes_offers_none(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        won = await client.new_epoch(1)
        assert (won.lane_port, won.lane_key) == (0, b"")


async def test_a_batch_in_many_pieces_and_two_in_one_are_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        lane = await stage.lane()
        large = stage.writer.batch(1, 1, 20_000)
        data = message(large)
        for start in range(0, len(data), 100_001):
            await asyncio.to_thread(lane.send, data[start : start + 100_001])
        assert await asyncio.to_thread(lane.answer) == (large.stamp.serial, None)
        two = stage.writer.batch(1, 20_001, 20_001), stage.writer.batch(1, 20_002, 20_003)
        await asyncio.to_thread(lane.send, b"".join(map(message, two)))
        for each in two:
            assert await asyncio.to_thread(lane.answer) == (each.stamp.serial, None)
        assert (await stage.client.status()).last_written_txid == 20_003


Change = Callable[[Journal], Journal | Heartbeat]

REFUSED: dict[str, tuple[Change, int]] = {
    "a new epoch": (lambda b: of_no_writer(b, epoch=2), KIND.OUT_OF_SYNC),
    "no epoch": (lambda b: of_no_writer(b, epoch=0), KIND.BAD_REQUEST),
    "a serial again": (lambda b: of_no_writer(b, serial=0), KIND.OUT_OF_SYNC),
    "a negative serial": (lambda b: of_no_writer(b, serial=-5), KIND.BAD_REQUEST),
    "an endless lease": (lambda b: of_no_writer(b, read_lease_micros=2**40), KIND.BAD_REQUEST),
    "a negative lease": (lambda b: of_no_writer(b, read_lease_micros=-1), KIND.BAD_REQUEST),
    "a wild claim": (lambda b: of_no_writer(b, committed=2**61), KIND.BAD_REQUEST),
    "a negative claim": (lambda b: of_no_writer(b, committed=-7), KIND.BAD_REQUEST),
    "a gap": (lambda b: replace(b, first=b.first + 1), KIND.OUT_OF_SYNC),  # type: ignore[arg-type]
    "no txid": (lambda b: replace(b, first=-3), KIND.BAD_REQUEST),  # type: ignore[arg-type]
    "another segment": (lambda b: replace(b, segment_first=9), KIND.OUT_OF_SYNC),  # type: ignore[arg-type]
    "another count": (lambda b: replace(b, count=7), KIND.BAD_REQUEST),
    "a heartbeat with edits": (lambda b: replace(b, count=0), KIND.BAD_REQUEST),
    "broken bytes": (lambda b: replace(b, records=b.records[:-1] + b"?"), KIND.BAD_REQUEST),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_grpc_refuses_a_lane_refuses(tmp_path: Path, what: str) -> None:
    change, kind = REFUSED[what]
    async with opened(tmp_path) as stage:
        lane = await stage.lane()
        refusal = await ask(lane, change(stage.writer.batch(1, 1, 2)))
        assert refusal is not None
        assert refusal.kind == kind, refusal
        assert (await stage.client.status()).last_written_txid == 0
        assert await ask(lane, Heartbeat(stage.writer.stamp())) is None, "the lane goes on"


async def test_a_fenced_writer_is_told_so_by_kind(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        lane = await stage.lane()
        await stage.client.new_epoch(2)
        refusal = await ask(lane, stage.writer.batch(1, 1, 1))
        assert refusal is not None
        assert (refusal.kind, refusal.promised_epoch) == (KIND.FENCED, 2)


async def test_a_lane_of_another_file_system_writes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        lane = await stage.lane(hello(stage.offer.key, namespace_id=4711))
        refusal = await ask(lane, stage.writer.batch(1, 1, 1))
        assert refusal is not None
        assert refusal.kind == KIND.WRONG_NAMESPACE


async def test_a_batch_that_is_too_large_is_refused_by_kind(tmp_path: Path) -> None:
    async with opened(tmp_path, max_message_bytes=1000) as stage:
        lane = await stage.lane()
        refusal = await ask(lane, stage.writer.batch(1, 1, 100))
        assert refusal is not None
        assert refusal.kind == KIND.BAD_REQUEST
        assert await ask(lane, stage.writer.batch(1, 1, 1)) is None


async def test_who_does_not_begin_as_a_lane_does_is_closed_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        right = hello_bytes(hello(stage.offer.key))
        assert await stage.refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(40))
        assert await stage.refused(MAGIC + b"\x02" + right[9:]), "another version"
        assert await stage.refused(hello_bytes(hello(bytes(KEY_BYTES)))), "another process's key"
        assert await stage.refused(hello_bytes(hello(stage.offer.key, "no-such-journal")))
        assert await stage.refused(hello_bytes(hello(stage.offer.key, namespace_id=2**40)))
        assert not await stage.refused(right)


@pytest.mark.parametrize("length", [0, 51, 2**31, 2**32 - 1])
async def test_a_length_that_no_message_has_ends_the_lane(tmp_path: Path, length: int) -> None:
    async with opened(tmp_path) as stage:
        lane = await stage.lane()
        await asyncio.to_thread(lane.send, struct.pack(">I", length) + bytes(60))
        assert await asyncio.to_thread(lambda: lane.refused)
        assert await ask(await stage.lane(), stage.writer.batch(1, 1, 1)) is None


async def test_who_does_not_say_who_it_is_loses_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_lane, "HELLO_SECONDS", 0.1)
    async with opened(tmp_path) as stage:
        assert await stage.refused(hello_bytes(hello(stage.offer.key))[:20])


async def test_so_many_lanes_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_lane, "MAX_LANES", 2)
    async with opened(tmp_path) as stage:
        first, _ = await stage.lane(), await stage.lane()
        right = hello_bytes(hello(stage.offer.key))
        assert await stage.refused(right)
        first.close()
        lanes = stage.daemon.node.lanes
        assert lanes is not None
        await until(lambda: lanes.open_to(JID) == 1, "a place that is free")
        await stage.lane()


async def test_who_gave_way_and_has_not_ended_yet_keeps_no_writer_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers' threads stand still behind the door, as in a process that has too much to do."""
    monkeypatch.setattr(node_lane, "MAX_LANES", 1)
    monkeypatch.setattr(
        node_lane, "MUTE", DoorLimits(most=1, unproven=1, unproven_of_origin=1, of_origin=1)
    )
    standing, go_on = list[object](), threading.Event()

    def uid_of(peer: object, _: object) -> int:
        if len(standing) < 3:
            standing.append(peer)
            go_on.wait(DEADLINE_SECONDS)
        return 0

    access = AccessControl(Mode.AUTO, target="t", audit=Lines(), own_uid=0, uid_of=uid_of)
    async with opened(tmp_path) as stage:
        lanes = node_lane.Lanes(stage.daemon.node, access)
        stage.offer = Offer(lanes.start(HOST, 0), lanes.offer.key)
        try:
            for number in range(3):
                await stage.begun(b"")
                await until(lambda number=number: len(standing) > number, "one more stranger")
            await stage.lane()
        finally:
            go_on.set()
            await asyncio.to_thread(lanes.stop)


async def test_a_key_of_an_older_process_opens_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        old = stage.offer
    async with opened_again(tmp_path, old.port) as stage:
        assert stage.offer.port == old.port
        assert stage.offer.key != old.key
        assert await stage.refused(hello_bytes(hello(old.key)))
        await stage.lane()


@asynccontextmanager
async def opened_again(folder: Path, port: int) -> AsyncIterator[Stage]:
    async with node_and_client(folder, lane_host=HOST, lane_port=port) as (daemon, client):
        won = await client.new_epoch(2)
        stage = Stage(daemon, client, Offer(won.lane_port, won.lane_key))
        try:
            yield stage
        finally:
            stage.close()


async def test_a_disk_that_fails_under_a_lane_stops_the_journal_for_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        lane, owner = await stage.lane(), stage.owner
        held = threading.Event()
        holding = asyncio.create_task(owner.in_thread(held.wait))
        waiting = asyncio.create_task(ask(lane, stage.writer.batch(1, 1, 1)))
        behind = owner.submit(stage.writer.batch(1, 1, 1))
        owner.disk._writing.file = cast(Any, _Full())  # type: ignore[union-attr]
        held.set()
        await holding
        refusal = await waiting
        assert refusal is not None
        assert refusal.kind == KIND.STORAGE_FAILED
        with pytest.raises(StorageFailed):
            await behind
        assert owner.failed_because is not None
        with pytest.raises(Refused):
            await stage.client.finalize(stage.writer, 1, 1)


class _Full:
    """A file on a full disk."""

    def append(self, _data: bytes) -> None:
        raise OSError("no space")

    def close(self) -> None: ...


async def test_a_lane_that_crashes_ends_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as stage:
        lane, other = await stage.lane(), await stage.lane()
        with monkeypatch.context() as broken:
            broken.setattr(LaneFace, "answered", lambda *_: 1 / 0)
            await asyncio.to_thread(lane.send, message(stage.writer.batch(1, 1, 1)))
            assert await asyncio.to_thread(lambda: lane.refused)
        assert await ask(other, stage.writer.batch(1, 1, 1)) is None


async def test_the_end_of_a_node_ends_its_lanes_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        lane, owner = await stage.lane(), stage.owner
        await ask(lane, stage.writer.batch(1, 1, 1))
        await stage.daemon.stop()
        assert await asyncio.to_thread(lambda: lane.refused)
        assert owner.failed_because is None

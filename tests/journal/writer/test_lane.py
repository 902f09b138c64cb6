"""A writer over write lanes: taken where they are offered, and given up without losing anything."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from journal.errors import Fenced, QuorumLost
from journal.lane import Offer
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.lane_client import Lane
from journal.links.link import LinkFactory
from journal.links.settings import WriterSettings
from journal.model import TxId
from journal.node.lanes.lane import Lanes
from journal.writer.writer import QuorumWriter
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import JOURNAL, QUICK, Nodes, edits, write_segment
from tests.log_lines import captured

HOST = "127.0.0.1"
IMPATIENT = WriterSettings(write_txns_timeout_seconds=0.5, heartbeat_interval_seconds=0.1)


@asynccontextmanager
async def nodes_with_lanes(folder: Path, link: LinkFactory = GrpcLink) -> AsyncIterator[Nodes]:
    nodes = Nodes(folder, link=link)
    nodes.extra["lane_host"] = HOST
    try:
        await nodes.start()
        await nodes.format()
        yield nodes
    finally:
        await nodes.stop()


@asynccontextmanager
async def writing(nodes: Nodes, settings: WriterSettings = QUICK) -> AsyncIterator[QuorumWriter]:
    writer = nodes.writer(settings)
    try:
        await writer.become_writer()
        await writer.start_segment(TxId(1))
        yield writer
    finally:
        await writer.close()


def carriers(writer: QuorumWriter) -> set[str]:
    return {status.via for status in writer.node_statuses()}


def lanes_of(nodes: Nodes, i: int) -> Lanes:
    daemon = nodes.daemons[i]
    assert daemon is not None
    lanes = daemon.node.lanes
    assert isinstance(lanes, Lanes)
    return lanes


def cut(nodes: Nodes, *which: int) -> None:
    for i in which:
        for connection in list(lanes_of(nodes, i)._threads):
            connection.shutdown(socket.SHUT_RDWR)


async def all_have(writer: QuorumWriter, last: int, via: str = "lane") -> None:
    await until(
        lambda: all(s.acked_txid >= last and s.in_sync for s in writer.node_statuses()),
        f"{last} on every node",
    )
    await until(lambda: carriers(writer) == {via}, f"all over a {via}")


@pytest.mark.parametrize("link", [GrpcLink, HadoopLink])
async def test_where_lanes_are_offered_batches_go_over_them(
    tmp_path: Path, link: LinkFactory
) -> None:
    async with nodes_with_lanes(tmp_path, link) as nodes:
        async with writing(nodes) as writer:
            assert carriers(writer) == {"none"}
            for txid in range(1, 40):
                await writer.write(TxId(txid), 1, edits(txid, txid))
            await all_have(writer, 39)
            assert [lanes_of(nodes, i).open_to(JOURNAL) for i in range(3)] == [1, 1, 1]
            await writer.finalize_segment(TxId(39))
            await write_segment(writer, 40, 60)
            await all_have(writer, 60)
            await writer.settle(timeout_seconds=5)
        assert await nodes.read_all() == edits(1, 60)


async def test_edits_that_wait_for_a_lane_go_together(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        await all_have(writer, 1)
        many = [writer.write(TxId(txid), 1, edits(txid, txid)) for txid in range(2, 402)]
        await asyncio.gather(*many)
        await all_have(writer, 401)
        await writer.finalize_segment(TxId(401))
        assert await nodes.read_all() == edits(1, 401)


async def test_a_batch_of_many_bytes_goes_over_a_lane(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        tag = "x" * 1000
        await writer.write(TxId(2), 5000, edits(2, 5001, tag))
        await all_have(writer, 5001)
        await writer.finalize_segment(TxId(5001))
        assert await nodes.read_all() == edits(1, 1) + edits(2, 5001, tag)


async def test_nodes_without_lanes_are_written_to_as_ever(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes:
        await nodes.stop(2)
        del nodes.extra["lane_host"]
        await nodes.start(2)
        async with writing(nodes) as writer:
            await writer.write(TxId(1), 2, edits(1, 2))
            await until(
                lambda: [s.via for s in writer.node_statuses()] == ["lane", "lane", "stream"],
                "two lanes and a stream",
            )


async def test_a_lane_that_cannot_be_reached_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind((HOST, 0))
        nobody = closed.getsockname()[1]
        monkeypatch.setattr(Lanes, "offer", Offer(nobody, b"k" * 16))
        async with nodes_with_lanes(tmp_path) as nodes:
            with captured("journal.lane_unavailable") as told:
                async with writing(nodes) as writer:
                    await writer.write(TxId(1), 1, edits(1, 1))
                    await writer.finalize_segment(TxId(1))
                    await write_segment(writer, 2, 5)
                    await all_have(writer, 5, via="stream")
            assert sorted(line["node"] for line in told) == sorted(nodes.name(i) for i in range(3))


async def test_who_listens_there_and_says_nothing_costs_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journal.links.lane_client.CONNECT_SECONDS", 0.05)
    with socket.create_server((HOST, 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setattr(Lanes, "offer", Offer(port, b"k" * 16))
        async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as writer:
            await writer.write(TxId(1), 1, edits(1, 1))
            await all_have(writer, 1, via="stream")


async def test_a_lost_lane_is_made_again_and_nothing_is_lost(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as writer:
        txid = 0
        for round_ in range(12):
            for _ in range(5):
                txid += 1
                await writer.write(TxId(txid), 1, edits(txid, txid))
            cut(nodes, round_ % 3)
            txid += 1
            await writer.write(TxId(txid), 1, edits(txid, txid))
            await all_have(writer, txid)
        await writer.finalize_segment(TxId(txid))
        assert await nodes.read_all() == edits(1, txid)


async def test_an_idle_writer_whose_lanes_are_all_cut_goes_on(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        await all_have(writer, 1)
        cut(nodes, 0, 1, 2)
        await until(lambda: carriers(writer) == {"none"}, "the end of the lanes")
        await writer.write(TxId(2), 1, edits(2, 2))
        await all_have(writer, 2)


async def test_a_node_that_restarts_is_written_to_over_its_new_lane(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        await all_have(writer, 1)
        await nodes.stop(1)
        await writer.write(TxId(2), 1, edits(2, 2))
        await nodes.start(1)
        await writer.write(TxId(3), 1, edits(3, 3))
        await all_have(writer, 3)


async def test_silence_on_a_lane_is_no_answer(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes, IMPATIENT) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        await all_have(writer, 1)
        owner = nodes.daemons[0].node.owner_of(JOURNAL)  # type: ignore[union-attr]
        begun, hangs = threading.Event(), threading.Event()

        def hang() -> None:
            begun.set()
            hangs.wait()

        hanging = asyncio.create_task(owner.in_thread(hang))
        try:
            await until(begun.is_set, "the disk to hang")
            await writer.write(TxId(2), 1, edits(2, 2))
            await until(
                lambda: "no answer within" in str(writer.node_statuses()[0].last_error),
                "the end of patience",
            )
        finally:
            hangs.set()
        await hanging
        await writer.write(TxId(3), 1, edits(3, 3))
        await all_have(writer, 3)
        await writer.finalize_segment(TxId(3))
        assert await nodes.read_all() == edits(1, 3)


async def test_a_newer_writer_fences_a_lane(tmp_path: Path) -> None:
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes) as old:
        await old.write(TxId(1), 1, edits(1, 1))
        await all_have(old, 1)
        assert (await nodes.recover())[1] == 1
        with pytest.raises(QuorumLost) as lost:
            await old.write(TxId(2), 1, edits(2, 2))
        assert lost.value.fenced_by == 2
        assert all(isinstance(why, Fenced) for why in lost.value.failures.values())


async def test_heartbeats_keep_the_read_lease_over_lanes(tmp_path: Path) -> None:
    settings = WriterSettings(read_lease_seconds=0.4)
    async with nodes_with_lanes(tmp_path) as nodes, writing(nodes, settings) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        await all_have(writer, 1)
        looks = [writer.read_lease.remaining_seconds()]

        def renewals() -> int:
            """Count renewals: between two looks the lease only runs down otherwise."""
            looks.append(writer.read_lease.remaining_seconds())
            return sum(later > earlier for earlier, later in pairwise(looks))

        await until(lambda: renewals() >= 4, "renewals")
        assert carriers(writer) == {"lane"}


class _Wire:
    """In place of a socket."""

    def __init__(self) -> None:
        self.aborted = False

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(
    "said",
    [b"\x02", b"\x01" + bytes(12), b"\x01" + b"\xff" * 12],
    ids=["no welcome", "an answer too short", "an endless answer"],
)
async def test_nonsense_ends_a_lane(said: bytes) -> None:
    lane, wire = Lane(1.0), _Wire()
    lane.connection_made(wire)  # type: ignore[arg-type]
    lane.data_received(said)
    assert lane.closed
    assert wire.aborted

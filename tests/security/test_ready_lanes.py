"""With certificates a lane is opened once the journal is recovered, before anything is sent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ha.security.own_tls import acting_as
from journal.lane import Offer
from journal.links.lane_client import Lane
from journal.links.remote_node import RemoteNode
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.ha.security.authority import Authority
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import edit
from tests.security.strangers import Daemon
from tests.security.test_certificates import cluster

OPENED, CLOSED = "journal.lane_opened", "journal.lane_closed"


@asynccontextmanager
async def claimed(folder: Path) -> AsyncIterator[tuple[QuorumWriter, list[Daemon]]]:
    """A writer that is about to start its first segment, and has lanes to a majority.

    The third node may not have answered yet; it gets its lane when it has the segment.
    """
    authority = Authority(folder / "certificates")
    async with cluster(authority, folder) as (made, processes):
        with acting_as(made.files):
            writer = made.writer()
            await writer.format()
            await writer.become_writer()
            await until(lambda: told(processes, OPENED) >= 2, "a lane to each node of a majority")
            try:
                yield writer, processes
            finally:
                await writer.close()


def told(processes: list[Daemon], event: str) -> int:
    """How often the nodes have written an event, all together."""
    return sum(process.log.read_text().count(f'"{event}"') for process in processes)


def carriers(writer: QuorumWriter) -> set[str]:
    return {status.via for status in writer.node_statuses()}


async def writes(writer: QuorumWriter) -> None:
    """Two edits that every node gets over a lane."""
    await writer.start_segment(TxId(1))
    for txid in (1, 2):
        await writer.write(TxId(txid), 1, edit(txid))
    await until(lambda: all(s.acked_txid == 2 for s in writer.node_statuses()), "2 everywhere")
    assert carriers(writer) == {"lane"}


async def test_the_first_segment_goes_over_lanes_that_were_ready(tmp_path: Path) -> None:
    async with claimed(tmp_path) as (writer, processes):
        assert "lane" not in carriers(writer), "heartbeats go over a stream until then"
        await writes(writer)
        assert told(processes, OPENED) == 3


async def test_one_that_has_ended_before_it_was_used_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes: list[Lane] = []
    open_lane = RemoteNode.open_lane

    async def noted(remote: RemoteNode, offer: Offer, deadline_seconds: float) -> Lane:
        lanes.append(await open_lane(remote, offer, deadline_seconds))
        return lanes[-1]

    monkeypatch.setattr(RemoteNode, "open_lane", noted)
    async with claimed(tmp_path) as (writer, processes):
        await until(lambda: len(lanes) >= 2, "the writer's ends of them")
        dropped = lanes[:2]
        for lane in dropped:
            lane.drop()
            await lane.wait_closed()
        await writes(writer)
        assert told(processes, OPENED) == 3 + len(dropped)


async def test_a_writer_that_starts_nothing_leaves_none_behind(tmp_path: Path) -> None:
    async with claimed(tmp_path) as (writer, processes):
        await writer.close()
        await until(lambda: told(processes, CLOSED) == told(processes, OPENED), "their end")

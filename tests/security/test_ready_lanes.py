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
from tests.security.test_certificates import cluster, logged


@asynccontextmanager
async def claimed(folder: Path) -> AsyncIterator[tuple[QuorumWriter, list[Daemon]]]:
    """A writer that is about to start its first segment, and has a lane to each node."""
    authority = Authority(folder / "certificates")
    async with cluster(authority, folder) as (made, processes):
        with acting_as(made.files):
            writer = made.writer()
            await writer.format()
            await writer.become_writer()
            await logged(processes, "journal.lane_opened", 1)
            try:
                yield writer, processes
            finally:
                await writer.close()


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
        assert carriers(writer) == {"none"}
        await writes(writer)
        assert [p.log.read_text().count('"journal.lane_opened"') for p in processes] == [1, 1, 1]


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
        await until(lambda: len(lanes) == 3, "a lane to each node")
        for lane in lanes:
            lane.drop()
            await lane.wait_closed()
        await writes(writer)
        await logged(processes, "journal.lane_opened", 2)


async def test_a_writer_that_starts_nothing_leaves_none_behind(tmp_path: Path) -> None:
    async with claimed(tmp_path) as (writer, processes):
        await writer.close()
        await logged(processes, "journal.lane_closed", 1)

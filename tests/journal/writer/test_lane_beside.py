"""Write lanes with certificates: opened next to a stream that carries the first edits."""

from pathlib import Path

import pytest

from ha.security.own_tls import OwnTls
from journal.lane import Offer
from journal.links.grpc_link import GrpcLink
from journal.links.hadoop_link import HadoopLink
from journal.links.lane_client import Lane
from journal.links.link import LinkFactory
from journal.links.remote_node import RemoteNode
from journal.model import TxId
from journal.writer import batch_stream
from tests.journal.node.process import until
from tests.journal.writer import test_lane
from tests.journal.writer.journal_cluster import JOURNAL, edits


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open lanes as with certificates; to make some would show no more."""
    monkeypatch.setattr(batch_stream, "own_tls", lambda: OwnTls)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Lane]:
    lanes: list[Lane] = []
    really = RemoteNode.open_lane

    async def open_lane(self: RemoteNode, offer: Offer, deadline_seconds: float) -> Lane:
        lanes.append(await really(self, offer, deadline_seconds))
        return lanes[-1]

    monkeypatch.setattr(RemoteNode, "open_lane", open_lane)
    return lanes


@pytest.mark.parametrize("link", [GrpcLink, HadoopLink])
async def test_the_first_edits_wait_for_no_lane_and_later_ones_go_over_it(
    tmp_path: Path, link: LinkFactory, opened: list[Lane]
) -> None:
    async with (
        test_lane.nodes_with_lanes(tmp_path, link) as nodes,
        test_lane.writing(nodes) as writer,
    ):
        await writer.write(TxId(1), 1, edits(1, 1))
        assert test_lane.carriers(writer) <= {"stream", "none"}
        assert not opened
        txid = 1
        while test_lane.carriers(writer) != {"lane"}:
            txid += 1
            await writer.write(TxId(txid), 1, edits(txid, txid))
        await test_lane.all_have(writer, txid)
        assert [test_lane.lanes_of(nodes, i).open_to(JOURNAL) for i in range(3)] == [1, 1, 1]
        assert len(opened) == 3, "each was opened once"
        await writer.finalize_segment(TxId(txid))
        assert await nodes.read_all() == edits(1, txid)


async def test_a_lane_that_ends_before_it_is_used_leaves_the_stream_as_it_is(
    tmp_path: Path, opened: list[Lane]
) -> None:
    async with test_lane.nodes_with_lanes(tmp_path) as nodes, test_lane.writing(nodes) as writer:
        await writer.write(TxId(1), 1, edits(1, 1))
        await test_lane.all_have(writer, 1, via="stream")
        await writer.write(TxId(2), 1, edits(2, 2))
        await until(lambda: len(opened) == 3, "the lanes")
        test_lane.cut(nodes, 0, 1, 2)
        await until(lambda: all(lane.closed for lane in opened), "their end")
        for txid in range(3, 8):
            await writer.write(TxId(txid), 1, edits(txid, txid))
        await test_lane.all_have(writer, 7, via="stream")
        assert len(opened) == 3, "none is tried twice for one offer"


async def test_a_lane_that_was_used_and_is_cut_is_made_again(tmp_path: Path) -> None:
    async with test_lane.nodes_with_lanes(tmp_path) as nodes, test_lane.writing(nodes) as writer:
        txid = 0
        for round_ in range(6):
            while test_lane.carriers(writer) != {"lane"}:
                txid += 1
                await writer.write(TxId(txid), 1, edits(txid, txid))
            test_lane.cut(nodes, round_ % 3)
            txid += 1
            await writer.write(TxId(txid), 1, edits(txid, txid))
        await writer.finalize_segment(TxId(txid))
        assert await nodes.read_all() == edits(1, txid)

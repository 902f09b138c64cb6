"""A writer makes a voter of a learner again, and never too early."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from journal.errors import OutOfSync, QuorumLost
from journal.model import TxId
from journal.proto import journal_pb2 as pb
from journal.writer.learner_admission import all_segments
from journal.writer.writer import QuorumWriter
from tests.journal.node.process import until
from tests.journal.writer import journal_cluster
from tests.journal.writer.test_learner import formatted_alone, version_copied

SETTINGS = replace(journal_cluster.QUICK, heartbeat_interval_seconds=0.1)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[journal_cluster.Nodes]:
    async with journal_cluster.formatted_nodes(tmp_path) as nodes:
        nodes.extra = {
            "peers": {journal_cluster.JOURNAL: nodes.addresses},
            "sync_interval_seconds": 0.1,
            "sync_quick_seconds": 0.05,
        }
        await nodes.stop()
        await nodes.start()
        yield nodes


class Pen:
    """Writes on and on."""

    def __init__(self, writer: QuorumWriter, last: int) -> None:
        self.writer = writer
        self.last = last

    async def write(self, count: int = 1) -> None:
        for _ in range(count):
            self.last += 1
            await self.writer.write(TxId(self.last), 1, journal_cluster.edits(self.last, self.last))

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(30):
                while not condition():
                    await self.write()
                    await asyncio.sleep(0.005)
        except TimeoutError:
            pytest.fail(f"{what}: {self.writer.node_statuses()}")


async def wiped(
    nodes: journal_cluster.Nodes, reborn: Callable[[journal_cluster.Nodes], Awaitable[None]]
) -> Pen:
    """Make a writer that writes the third segment when node 1 loses its disk."""
    writer = nodes.writer(SETTINGS)
    await writer.become_writer()
    await journal_cluster.write_segment(writer, 1, 3)
    await journal_cluster.write_segment(writer, 4, 6)
    await writer.start_segment(TxId(7))
    pen = Pen(writer, 6)
    await pen.write(5)
    await writer.settle(timeout_seconds=30)
    await nodes.stop(1)
    await reborn(nodes)
    return pen


@pytest.mark.parametrize("reborn", [formatted_alone, version_copied])
async def test_a_wiped_node_becomes_a_voter_while_the_writer_writes(
    nodes: journal_cluster.Nodes, reborn: Callable[[journal_cluster.Nodes], Awaitable[None]]
) -> None:
    pen = await wiped(nodes, reborn)
    await pen.until(lambda: pen.writer.node_statuses()[1].learner, "nobody sees the learner")
    await pen.until(lambda: pen.writer.node_statuses()[1].in_sync, "it is not admitted")
    assert not pen.writer.node_statuses()[1].learner
    assert nodes.finalized(1) == [(1, 3), (4, 6)]
    await nodes.stop(0)
    await pen.write(10)
    await pen.writer.finalize_segment(TxId(pen.last))
    await journal_cluster.write_segment(pen.writer, pen.last + 1, pen.last + 3)
    await pen.writer.settle(timeout_seconds=30)
    await pen.writer.close()
    assert await nodes.recover() == (2, pen.last + 3)
    await nodes.start(0)
    assert await nodes.read_all() == journal_cluster.edits(1, pen.last + 3)


async def test_a_learner_is_not_counted_while_it_lacks_a_segment(
    nodes: journal_cluster.Nodes,
) -> None:
    """Keep it a learner, as its peers give it nothing; a second loss ends the writer."""
    nodes.extra = {}
    pen = await wiped(nodes, formatted_alone)
    await pen.until(lambda: pen.writer.node_statuses()[1].learner, "nobody sees the learner")
    await pen.until(
        lambda: pen.writer.node_statuses()[1].acked_txid >= pen.last - 1, "it is not fed"
    )
    await asyncio.sleep(5 * SETTINGS.heartbeat_interval_seconds)
    status = pen.writer.node_statuses()[1]
    assert (status.learner, status.in_sync) == (True, False)
    await nodes.stop(0)
    with pytest.raises(QuorumLost, match="no vote"):
        await pen.write()
    await pen.writer.close()


async def test_a_learner_is_not_admitted_while_a_majority_of_others_cannot_confirm(
    nodes: journal_cluster.Nodes,
) -> None:
    """Let the third node hang between two of its answers: it alone could know of its promise."""
    pen = await wiped(nodes, formatted_alone)
    await nodes.stop(2)
    with pytest.raises(QuorumLost, match=r"writing transactions .* needs 2 of 3"):
        await pen.write(200)
    assert not pen.writer.node_statuses()[1].in_sync
    await pen.writer.close()
    with pytest.raises(QuorumLost, match=r"needs 2 of 3 .*no vote"):
        await nodes.recover()
    await nodes.start(2)
    _, last = await nodes.recover()
    assert last >= pen.last - 1


async def test_a_restarted_learner_is_still_one_and_is_admitted_in_the_next_segment(
    nodes: journal_cluster.Nodes,
) -> None:
    pen = await wiped(nodes, formatted_alone)
    await pen.writer.finalize_segment(TxId(pen.last))
    await nodes.stop(1)
    await pen.writer.start_segment(TxId(pen.last + 1))
    await nodes.start(1)
    await pen.until(lambda: pen.writer.node_statuses()[1].in_sync, "it is not admitted")
    await nodes.stop(2)
    await pen.write(5)
    await pen.writer.close()
    assert (await nodes.recover())[1] == pen.last


async def test_a_node_wiped_behind_an_idle_writer_renews_no_lease_and_is_fed_again(
    nodes: journal_cluster.Nodes,
) -> None:
    """Send only heartbeats there: the channel believes it in sync, and nothing is written."""
    lease = 0.4
    writer = nodes.writer(replace(SETTINGS, read_lease_seconds=lease))
    await writer.become_writer()
    await journal_cluster.write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await writer.write(TxId(4), 3, journal_cluster.edits(4, 6))
    await writer.settle(timeout_seconds=30)
    await nodes.stop(1, 2)
    await formatted_alone(nodes)
    await asyncio.sleep(2 * lease)
    assert not await writer.read_lease.wait_until_valid(2 * lease)
    await nodes.start(2)
    async with asyncio.timeout(30):
        while not writer.node_statuses()[1].in_sync:
            await asyncio.sleep(0.02)
        assert await writer.read_lease.wait_until_valid(5)
    await writer.close()


async def test_a_hole_in_what_was_let_go_of_keeps_no_learner_out(
    nodes: journal_cluster.Nodes,
) -> None:
    """Seed 119915 on real nodes: one voter missed a purge, and lacks some of what is before it."""
    writer = nodes.writer(SETTINGS)
    await writer.become_writer()
    for first in (1, 4, 7):
        await journal_cluster.write_segment(writer, first, first + 2)
    await writer.settle(timeout_seconds=30)
    await nodes.stop(2)
    writer.purge_logs(TxId(7))
    await until(lambda: nodes.finalized(0) == nodes.finalized(1) == [(7, 9)], "it is purged")
    (nodes.current(2) / f"edits_{4:019d}-{6:019d}").unlink()
    await nodes.start(2)
    await writer.start_segment(TxId(10))
    pen = Pen(writer, 9)
    await pen.until(lambda: writer.node_statuses()[2].in_sync, "it does not return")
    await nodes.stop(1)
    await formatted_alone(nodes)
    await pen.until(lambda: writer.node_statuses()[1].learner, "nobody sees the learner")
    await pen.until(lambda: writer.node_statuses()[1].in_sync, "it is not admitted")
    assert (nodes.finalized(1), nodes.finalized(2)) == ([(7, 9)], [(1, 3), (7, 9)])
    await writer.close()


def test_voters_that_disagree_admit_nobody() -> None:
    def manifest(last: int, digest: bytes) -> pb.GetEditLogManifestReply:
        segment = pb.SegmentState(first_txid=1, last_txid=last, digest=digest)
        return pb.GetEditLogManifestReply(segments=[segment])

    assert [s.last for s in all_segments([manifest(3, b"d" * 32), manifest(3, b"d" * 32)])] == [3]
    for other in (manifest(3, b"e" * 32), manifest(4, b"d" * 32), manifest(3, b"")):
        with pytest.raises(OutOfSync):
            all_segments([manifest(3, b"d" * 32), other])

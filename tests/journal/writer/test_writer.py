"""The quorum writer and reader against real JournalNodes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from journal.errors import BadRequest, InvariantBroken, NotFormatted, QuorumLost
from journal.links.remote_node import RemoteNode
from journal.links.settings import MIB
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.journal.writer.journal_cluster import Nodes, edits, formatted_nodes, write_segment
from tests.log_lines import captured


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with formatted_nodes(tmp_path) as nodes:
        yield nodes


@pytest.mark.row("8.4 testSingleWriter")
async def test_single_writer(nodes: Nodes) -> None:
    writer = nodes.writer()
    won = await writer.become_writer()
    assert (won.epoch, won.last_txid) == (1, 0)
    await write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await writer.write(TxId(4), 1, edits(4, 4))
    assert writer.committed == 4
    await writer.settle(timeout_seconds=30)
    assert [s.in_sync for s in writer.node_statuses()] == [True] * 3
    await writer.close()
    nodes.ensure_recovered(1, 3)
    assert await nodes.recover() == (2, 4)
    nodes.ensure_recovered(4, 4)
    assert await nodes.read_all() == edits(1, 4)


@pytest.mark.row("8.4 testFormat")
async def test_format_says_what_is_there(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    await nodes.start()
    writer = nodes.writer()
    assert set((await writer.formatted()).values()) == {False}
    with pytest.raises(QuorumLost, match="none agreed") as lost:
        await writer.become_writer()
    assert all(isinstance(f, NotFormatted) for f in lost.value.failures.values())
    await writer.format()
    assert set((await writer.formatted()).values()) == {True}
    with pytest.raises(BadRequest, match="already formatted on"):
        await writer.format()
    await writer.format(force=True)
    await nodes.stop(1)
    with pytest.raises(QuorumLost, match=rf"needs all 3.*{nodes.name(1)}"):
        await writer.format(force=True)
    answers = await writer.formatted()
    assert [answers[s.node] is True for s in writer.node_statuses()] == [True, False, True]
    await writer.close()
    await nodes.stop()


@pytest.mark.row("8.4 testReaderWhileAnotherWrites")
async def test_reader_while_another_writes(nodes: Nodes) -> None:
    writer, reader = nodes.writer(), nodes.reader()
    await writer.become_writer()
    assert await reader.last_finalized() == 0
    await write_segment(writer, 1, 3)
    assert await reader.last_finalized() == 3
    await writer.start_segment(TxId(4))
    await writer.write(TxId(4), 3, edits(4, 6))
    assert await nodes.read_all() == edits(1, 3)
    assert await nodes.read_all(4) == b""
    await writer.finalize_segment(TxId(6))
    assert await nodes.read_all() == edits(1, 6)
    assert await nodes.read_all(3) == edits(3, 6)
    assert await reader.last_finalized() == 6
    await reader.close()
    await writer.close()


@pytest.mark.row("8.4 testOneJNMissingSegments")
async def test_one_jn_missing_segments_is_no_loss(nodes: Nodes) -> None:
    """HDFS-3725: 4-6 lie on two nodes, then one of these dies."""
    writer = nodes.writer()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    await nodes.stop(0)
    await write_segment(writer, 4, 6)
    assert [s.in_sync for s in writer.node_statuses()] == [False, True, True]
    await nodes.start(0)
    await write_next_until_in_sync(writer, 7)
    assert (4, 6) not in nodes.finalized(0)
    await nodes.stop(1)
    assert (await nodes.read_all()).startswith(edits(1, 9))
    await writer.close()


async def write_next_until_in_sync(writer: QuorumWriter, first: int) -> None:
    async with asyncio.timeout(30):
        while True:
            await write_segment(writer, first, first + 2)
            first += 3
            if all(status.in_sync for status in writer.node_statuses()):
                return


@pytest.mark.row("8.4 testSelectInputStreamsMajorityDown")
async def test_select_input_streams_majority_down_is_named_at_once(nodes: Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await nodes.stop(0, 2)
    started = asyncio.get_running_loop().time()
    with pytest.raises(QuorumLost) as lost:
        await writer.write(TxId(4), 1, edits(4, 4))
    assert asyncio.get_running_loop().time() - started < 4.5
    assert set(lost.value.failures) == {nodes.name(0), nodes.name(2)}
    for i in (0, 2):
        assert f"{nodes.name(i)}: " in str(lost.value)
    with pytest.raises(QuorumLost, match="this writer has ended"):
        await writer.write(TxId(5), 1, edits(5, 5))
    await writer.close()
    with pytest.raises(QuorumLost, match="Connection refused"):
        await nodes.read_all()


@pytest.mark.row("8.4 testCrashAtBeginningOfSegment")
async def test_crash_at_beginning_of_segment(nodes: Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    await writer.start_segment(TxId(4))
    await writer.close()
    after = nodes.writer()
    assert (await after.become_writer()).last_txid == 3
    await write_segment(after, 4, 6)
    await after.close()
    nodes.ensure_recovered(1, 3)
    nodes.ensure_recovered(4, 6)


async def test_an_older_writer_is_told_who_fenced_it(nodes: Nodes) -> None:
    old, new = nodes.writer(), nodes.writer()
    await old.become_writer()
    await old.start_segment(TxId(1))
    await old.write(TxId(1), 2, edits(1, 2, "old"))
    won = await new.become_writer()
    assert (won.epoch, won.last_txid) == (2, 2)
    with pytest.raises(QuorumLost) as lost:
        await old.write(TxId(3), 1, edits(3, 3, "old"))
    assert lost.value.fenced_by == 2
    await write_segment(new, 3, 5, "new")
    await old.close()
    await new.close()
    assert await nodes.read_all() == edits(1, 2, "old") + edits(3, 5, "new")


async def test_contenders_end_with_one_writer(nodes: Nodes) -> None:
    writers = [nodes.writer() for _ in range(3)]
    results = await asyncio.gather(
        *(writer.become_writer() for writer in writers), return_exceptions=True
    )
    epochs = [r.epoch for r in results if not isinstance(r, BaseException)]
    assert len(epochs) == len(set(epochs))
    assert all(isinstance(r, QuorumLost) for r in results if isinstance(r, BaseException))
    alive = 0
    for writer in writers:
        try:
            await write_segment(writer, 1, 3)
            alive += 1
        except (QuorumLost, InvariantBroken):
            continue
    assert alive <= 1
    for writer in writers:
        await writer.close()
    epoch, _ = await nodes.recover()
    assert epoch > max(epochs, default=0)


async def test_a_node_restarted_in_a_segment_takes_part_in_it_again(nodes: Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.write(TxId(1), 3, edits(1, 3))
    await nodes.stop(2)
    await nodes.start(2)
    for txid in range(4, 10):
        await writer.write(TxId(txid), 1, edits(txid, txid))
    async with asyncio.timeout(30):
        while writer.node_statuses()[2].acked_txid != 9:  # in sync until its loss is noticed
            await asyncio.sleep(0.01)
    assert writer.node_statuses()[2].last_error is None
    await nodes.stop(0)
    for txid in range(10, 20):
        await writer.write(TxId(txid), 1, edits(txid, txid))
    await writer.finalize_segment(TxId(19))
    await writer.close()
    nodes.ensure_recovered(1, 19)
    await nodes.start(0)
    assert await nodes.read_all() == edits(1, 19)


@pytest.mark.row("8.6 testUnresolvableHostName")
async def test_unresolvable_host_name_stops_nobody(nodes: Nodes) -> None:
    addresses = [nodes.addresses[0], ("no-such-host.invalid", 8485), nodes.addresses[2]]
    writer = nodes.writer(addresses=addresses)
    started = asyncio.get_running_loop().time()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    assert asyncio.get_running_loop().time() - started < 4.5
    await writer.close()
    assert await nodes.read_all() == edits(1, 3)


async def test_writes_may_overlap_and_keep_their_order(nodes: Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await asyncio.gather(
        *(writer.write(TxId(txid), 1, edits(txid, txid)) for txid in range(1, 201))
    )
    await writer.finalize_segment(TxId(200))
    await writer.close()
    assert await nodes.read_all() == edits(1, 200)


async def test_a_writer_refuses_holes_before_anybody_is_asked(nodes: Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    with pytest.raises(InvariantBroken, match="no segment is open"):
        await writer.write(TxId(1), 1, edits(1, 1))
    await write_segment(writer, 1, 3)
    with pytest.raises(InvariantBroken, match="goes on with transaction 4"):
        await writer.start_segment(TxId(5))
    await writer.start_segment(TxId(4))
    with pytest.raises(InvariantBroken, match="4 is next"):
        await writer.write(TxId(5), 1, edits(5, 5))
    await writer.write(TxId(4), 1, edits(4, 4))
    with pytest.raises(InvariantBroken, match="ends at 4, not at 5"):
        await writer.finalize_segment(TxId(5))
    await writer.finalize_segment(TxId(4))
    await writer.close()


async def test_a_write_that_no_message_can_hold_is_refused_before_it_is_sent(nodes: Nodes) -> None:
    """Lose nothing by it: the writer goes on with the same transaction."""
    writer = nodes.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    with pytest.raises(BadRequest, match="more than the 67043328 that one write may have"):
        await writer.write(TxId(1), 1, bytes(64 * MIB))
    await writer.write(TxId(1), 3, edits(1, 3))
    await writer.finalize_segment(TxId(3))
    await writer.settle(timeout_seconds=30)
    assert all(status.in_sync for status in writer.node_statuses())
    await writer.close()
    assert await nodes.read_all() == edits(1, 3)


async def test_two_histories_end_the_writer_that_finds_them(tmp_path: Path) -> None:
    async with formatted_nodes(tmp_path, 2) as nodes:
        for address, words in zip(nodes.addresses, ("one", "other"), strict=True):
            alone = nodes.writer(addresses=[address])
            await alone.become_writer()
            await write_segment(alone, 1, 3, words)
            await alone.close()
        writer = nodes.writer()
        with pytest.raises(InvariantBroken, match="1-3"):
            await writer.become_writer()
        with pytest.raises(InvariantBroken, match=r"this writer has ended: .*1-3"):
            await writer.start_segment(TxId(4))
        await writer.close()


@pytest.mark.parametrize("asks", ["journal.channel_crashed", "reader.question_failed"])
async def test_a_bug_in_a_question_is_logged_and_no_caller_waits(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("planted")

    for question in ("status", "journal_state"):
        monkeypatch.setattr(RemoteNode, question, fail)
    writer, reader = nodes.writer(), nodes.reader()
    ask = writer.become_writer if asks == "journal.channel_crashed" else reader.writer_epoch
    with captured("journal.channel_crashed", "reader.question_failed") as lines:
        with pytest.raises(QuorumLost, match="planted"):
            await ask()
        await writer.close()
        await reader.close()
    assert {(line["event"], line["log_level"]) for line in lines} == {(asks, "error")}
    assert len(lines) >= 2

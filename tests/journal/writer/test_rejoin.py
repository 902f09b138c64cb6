"""Nodes that come back inside the open segment, against real JournalNodes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from journal.writer.writer import QuorumWriter, WriterSettings
from tests.journal.node.test_process import configuration, free_port, process
from tests.journal.writer.journal_cluster import JOURNAL, Nodes, edits, formatted_nodes
from tests.journal.writer.proxy import Fate, Proxy, behind_proxies

SMALL = WriterSettings(
    queued_edits_limit_bytes=64 * 1024,
    start_segment_timeout_seconds=5,
    write_txns_timeout_seconds=5,
    heartbeat_interval_seconds=0.2,
)
PATIENT = replace(SMALL, write_txns_timeout_seconds=60)
LONG = "x" * 2000


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with formatted_nodes(tmp_path) as nodes:
        yield nodes


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(what)


async def write(writer: QuorumWriter, first: int, last: int, tag: str = "") -> None:
    for txid in range(first, last + 1):
        await writer.write(TxId(txid), 1, edits(txid, txid, tag))


async def begun(writer: QuorumWriter) -> QuorumWriter:
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    return writer


def in_sync(writer: QuorumWriter, node: int) -> Callable[[], bool]:
    return lambda: writer.node_statuses()[node].in_sync


def has_acked(writer: QuorumWriter, node: int, txid: int) -> Callable[[], bool]:
    """Return a check that a node is back.

    It may pass for in sync until the writer notices that it was away.
    """
    return lambda: writer.node_statuses()[node].acked_txid == txid


def lost_contact(writer: QuorumWriter, node: int) -> Callable[[], bool]:
    return lambda: writer.node_statuses()[node].last_error is not None


def has_it_open(nodes: Nodes, node: int) -> Callable[[], bool]:
    def open_now() -> bool:
        daemon = nodes.daemons[node]
        journal = None if daemon is None else daemon.node.find(JOURNAL)
        return journal is not None and journal.state.open is not None

    return open_now


async def test_each_node_in_turn_may_restart_inside_one_segment(nodes: Nodes) -> None:
    """Go on after the second restart, which ends Hadoop's writer; no node lacks an edit."""
    writer = await begun(nodes.writer(SMALL))
    last = 0
    for node in (0, 1, 2, 0):
        await nodes.stop(node)
        await write(writer, last + 1, last + 10)
        await nodes.start(node)
        last += 10
        await until(has_acked(writer, node, last), f"node {node} does not take part again")
    await writer.finalize_segment(TxId(last))
    await writer.settle(timeout_seconds=30)
    await writer.close()
    assert [nodes.finalized(i) for i in range(3)] == [[(1, last)]] * 3


@pytest.mark.parametrize("seen", [True, False], ids=["heartbeats notice", "nobody notices"])
async def test_all_nodes_may_restart_in_turn_while_nothing_is_written(
    nodes: Nodes, *, seen: bool
) -> None:
    """Have each node close the segment as it stops; heartbeats do not show that it was there."""
    lease_seconds = 0.4 if seen else 0.0
    writer = await begun(nodes.writer(replace(SMALL, read_lease_seconds=lease_seconds)))
    await write(writer, 1, 5)
    await writer.settle(timeout_seconds=30)
    for node in range(3):
        await nodes.stop(node)
        if seen:
            await until(lost_contact(writer, node), "no heartbeat noticed it")
        await nodes.start(node)
        if seen:
            await until(has_it_open(nodes, node), "the segment is not opened before it is written")
    await write(writer, 6, 9)
    await writer.finalize_segment(TxId(9))
    await writer.settle(timeout_seconds=30)
    await writer.close()
    assert [nodes.finalized(i) for i in range(3)] == [[(1, 9)]] * 3


async def test_what_the_window_has_dropped_is_fetched_from_a_peer(nodes: Nodes) -> None:
    writer = await begun(nodes.writer(SMALL))
    await write(writer, 1, 3)
    await nodes.stop(1)
    await write(writer, 4, 200, LONG)
    await nodes.start(1)
    await until(in_sync(writer, 1), "it does not catch up")
    await nodes.stop(0)
    await write(writer, 201, 210)
    await writer.finalize_segment(TxId(210))
    await writer.close()
    assert nodes.finalized(1) == nodes.finalized(2) == [(1, 210)]
    whole = [nodes.current(i) / f"edits_{1:019d}-{210:019d}" for i in (1, 2)]
    assert whole[0].read_bytes() == whole[1].read_bytes()


async def test_a_node_that_missed_the_start_joins_in_the_middle(nodes: Nodes) -> None:
    writer = nodes.writer(SMALL)
    await writer.become_writer()
    await nodes.stop(2)
    await writer.start_segment(TxId(1))
    await write(writer, 1, 5)
    await nodes.start(2)
    await until(in_sync(writer, 2), "it does not join")
    await nodes.stop(0)
    await write(writer, 6, 9)
    await writer.finalize_segment(TxId(9))
    await writer.close()
    assert nodes.finalized(2) == [(1, 9)]


async def test_catching_up_delays_nobody(nodes: Nodes) -> None:
    writer = await begun(nodes.writer(SMALL))
    await nodes.stop(1)
    await write(writer, 1, 500, LONG)
    slowest, txid = 0.0, 501
    await nodes.start(1)
    loop = asyncio.get_running_loop()
    while not in_sync(writer, 1)():
        began = loop.time()
        await write(writer, txid, txid)
        slowest, txid = max(slowest, loop.time() - began), txid + 1
        assert txid < 20_000
    assert slowest < 1
    await writer.close()


@pytest.fixture
async def rig(nodes: Nodes) -> AsyncIterator[tuple[Nodes, list[Proxy]]]:
    async with behind_proxies(nodes.addresses) as proxies:
        yield nodes, proxies


@pytest.mark.row("8.5 IPCLoggerChannel.QueueLimiting")
async def test_queue_limiting(rig: tuple[Nodes, list[Proxy]]) -> None:
    """IPCLoggerChannel.QueueLimiting: what waits is bounded, and is not there any more later."""
    nodes, proxies = rig
    writer = await begun(nodes.writer(PATIENT, [proxy.address for proxy in proxies]))
    proxies[1].judge = lambda _n, m: Fate.HANG if m in ("Write", "ResumeSegment") else Fate.PASS
    most = 0
    for txid in range(1, 101):
        await write(writer, txid, txid, LONG)
        most = max(most, writer.node_statuses()[1].queued_bytes)
    assert 32 * 1024 < most <= SMALL.queued_edits_limit_bytes
    status = writer.node_statuses()[1]
    assert (status.in_sync, status.queued_bytes, status.lag_transactions) == (False, 0, 100)
    assert "too far behind" in (status.last_error or "")
    await writer.close()


@pytest.mark.row("8.5 IPCLoggerChannel.StopSendingEditsWhenOutOfSync")
async def test_stop_sending_edits_when_out_of_sync(rig: tuple[Nodes, list[Proxy]]) -> None:
    """IPCLoggerChannel.StopSendingEditsWhenOutOfSync; ours then brings the node back."""
    nodes, proxies = rig
    writer = await begun(nodes.writer(SMALL, [proxy.address for proxy in proxies]))
    lost = ("Write", "ResumeSegment")
    proxies[0].arm(lambda _n, m: Fate.LOSE_REQUEST if m in lost else Fate.PASS)
    await write(writer, 1, 1)
    await until(lambda: "ResumeSegment" in proxies[0].calls, "nobody asks it to come back")
    sent = proxies[0].calls.count("Write")
    await write(writer, 2, 20)
    assert proxies[0].calls.count("Write") == sent
    assert "the request was lost" in (writer.node_statuses()[0].last_error or "")
    proxies[0].arm(lambda _n, _m: Fate.PASS)
    await until(in_sync(writer, 0), "it does not come back")
    assert proxies[0].calls.count("Write") <= 2, "what it lacks is sent together"
    await writer.close()


async def test_the_next_segment_ends_an_attempt_to_come_back_into_the_one_before(
    rig: tuple[Nodes, list[Proxy]],
) -> None:
    """Else a node that answers no more would keep it from the next one, too, until a time-out."""
    nodes, proxies = rig
    patient = replace(PATIENT, start_segment_timeout_seconds=120)
    writer = await begun(nodes.writer(patient, addresses=[proxy.address for proxy in proxies]))
    await writer.settle(timeout_seconds=30)
    fates = {"Write": Fate.LOSE_REQUEST, "ResumeSegment": Fate.HOLD}
    proxies[0].arm(lambda _n, method: fates.get(method, Fate.PASS))
    await write(writer, 1, 2)
    await asyncio.wait_for(proxies[0].held.wait(), 30)
    await writer.finalize_segment(TxId(2))
    await writer.start_segment(TxId(3))
    await until(lambda: "StartLogSegment" in proxies[0].calls, "it is not in the next one")
    proxies[0].opened.set()
    await writer.close()


@pytest.mark.row("X15")
async def test_x15_an_answer_that_was_lost_takes_effect_once(
    rig: tuple[Nodes, list[Proxy]],
) -> None:
    """Write nothing twice when the node has the batch and the writer does not know it."""
    nodes, proxies = rig
    writer = await begun(nodes.writer(SMALL, [proxy.address for proxy in proxies]))
    for node in range(3):
        proxies[node].arm(lambda n, m: Fate.LOSE_ANSWER if n == 1 and m == "Write" else Fate.PASS)
        last = 5 * node
        await write(writer, last + 1, last + 5)
        await until(in_sync(writer, node), "it does not come back")
    await writer.finalize_segment(TxId(15))
    await writer.settle(timeout_seconds=30)
    await writer.close()
    assert [nodes.finalized(i) for i in range(3)] == [[(1, 15)]] * 3


@pytest.mark.row("X16")
async def test_x16_a_write_whose_caller_gives_up_is_written_all_the_same(nodes: Nodes) -> None:
    """Leave neither a hole nor half a batch behind a cancelled call."""
    writer = await begun(nodes.writer(SMALL))
    for txid in range(1, 30):
        call = asyncio.ensure_future(writer.write(TxId(txid), 1, edits(txid, txid)))
        for _ in range(txid % 4):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        if writer._window.next == txid:  # cancelled before it began
            await write(writer, txid, txid)
    await write(writer, 30, 30)
    await writer.finalize_segment(TxId(30))
    await writer.close()
    assert await nodes.read_all() == edits(1, 30)


@pytest.mark.row("X22")
async def test_x22_a_superseded_writer_is_told_by_any_node_that_comes_back(nodes: Nodes) -> None:
    """Neither its batches nor its attempts to rejoin are taken after newEpoch."""
    old = await begun(nodes.writer(SMALL))
    await write(old, 1, 3)
    await nodes.stop(2)
    await write(old, 4, 4)
    new = nodes.writer()
    await new.become_writer()
    await nodes.start(2)
    with pytest.raises(QuorumLost) as lost:
        await write(old, 5, 5)
    assert lost.value.fenced_by == 2
    await new.start_segment(TxId(5))
    await until(in_sync(new, 2), "no third node")
    await old.close()
    await new.write(TxId(5), 1, edits(5, 5, "new"))
    await new.finalize_segment(TxId(5))
    await new.close()
    assert await nodes.read_all() == edits(1, 4) + edits(5, 5, "new")


async def test_a_stopped_process_delays_nothing_and_catches_up(
    nodes: Nodes, tmp_path: Path
) -> None:
    """SIGSTOP, and SIGCONT later: its socket stays open all the time."""
    port, http = free_port(), free_port()
    conf = configuration(
        tmp_path / "conf",
        edits_dir=tmp_path / "process",
        rpc_address=f"127.0.0.1:{port}",
        http_address=f"127.0.0.1:{http}",
    )
    async with process(conf, port) as (pid, _):
        addresses = [*nodes.addresses[:2], ("127.0.0.1", port)]
        alone = nodes.writer(SMALL, addresses[2:])
        await alone.format()
        await alone.close()
        writer = await begun(nodes.writer(PATIENT, addresses))
        await write(writer, 1, 3)
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(30):  # waiting for it would take a minute
                await write(writer, 4, 200, LONG)
            assert not in_sync(writer, 2)()
        finally:
            os.kill(pid, signal.SIGCONT)
        await until(in_sync(writer, 2), "it does not catch up")
        await nodes.stop(0)
        await write(writer, 201, 203)
        await writer.finalize_segment(TxId(203))
        await writer.close()
    held = tmp_path / "process" / JOURNAL / "current" / f"edits_{1:019d}-{203:019d}"
    assert held.read_bytes()[8:] == edits(1, 3) + edits(4, 200, LONG) + edits(201, 203)

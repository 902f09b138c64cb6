"""Rows about parts of the client, on real nodes: Hadoop's have mocks of its channels there."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import pytest
from prometheus_client import REGISTRY

from journal.errors import QuorumLost
from journal.model import TxId
from journal.writer.writer import WriterSettings
from tests.journal.core.requests_of import records
from tests.journal.reader.test_tailing import Hands, hands_on, reader_of
from tests.journal.writer.journal_cluster import JOURNAL, edits, formatted_nodes
from tests.journal.writer.proxy import Fate, behind_proxies
from tests.journal.writer.test_scenarios import Rig, lose


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with formatted_nodes(tmp_path) as nodes, behind_proxies(nodes.addresses) as proxies:
        yield Rig(nodes, proxies)


def started(rig: Rig) -> list[bool]:
    found = []
    for daemon in rig.nodes.daemons:
        owner = daemon.node.find(JOURNAL) if daemon is not None else None
        found.append(owner is not None and owner.state.open is not None)
    return found


@pytest.mark.row("8.5 AllLoggersStartOk")
async def test_all_loggers_start_ok(rig: Rig) -> None:
    writer = rig.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.settle(timeout_seconds=30)
    assert started(rig) == [True] * 3
    await writer.close()


@pytest.mark.row("8.5 QuorumOfLoggersStartOk")
async def test_quorum_of_loggers_start_ok(rig: Rig) -> None:
    writer = rig.writer()
    await writer.become_writer()
    rig.proxies[2].arm(lose("StartLogSegment", "ResumeSegment"))
    await writer.start_segment(TxId(1))
    await writer.settle(timeout_seconds=30)
    assert started(rig) == [True, True, False]
    await writer.close()


@pytest.mark.row("8.5 QuorumOfLoggersFail")
async def test_quorum_of_loggers_fail(rig: Rig) -> None:
    writer = rig.writer()
    await writer.become_writer()
    rig.arm(*(lose("StartLogSegment"),) * 2, lambda _n, _m: Fate.PASS)
    with pytest.raises(QuorumLost, match=r"starting segment 1 .*the request was lost") as lost:
        await writer.start_segment(TxId(1))
    assert len(lost.value.failures) == 2
    await writer.close()


@pytest.mark.row("8.5 WriteEdits")
async def test_write_edits(rig: Rig) -> None:
    """1-2 are flushed while 3 is not handed over yet; what follows is only 3."""
    writer = rig.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    rig.arm(*[lambda _n, _m: Fate.PASS] * 3)
    await writer.write(TxId(1), 2, edits(1, 2))
    await writer.settle(timeout_seconds=30)
    assert writer.committed == 2
    assert _on_disk(rig) == [edits(1, 2)] * 3
    await writer.write(TxId(3), 1, edits(3, 3))
    await writer.settle(timeout_seconds=30)
    assert _on_disk(rig) == [edits(1, 3)] * 3
    await writer.close()


def _on_disk(rig: Rig) -> list[bytes]:
    paths = [rig.nodes.current(i) / f"edits_inprogress_{1:019d}" for i in range(3)]
    return [path.read_bytes()[8:].rstrip(b"\xff") for path in paths]


@pytest.mark.row("8.5 WriteEditsOneSlow")
async def test_write_edits_one_slow(rig: Rig) -> None:
    """Return from the write though the third never answers; the others hear what is committed."""
    writer = rig.writer()
    await writer.become_writer()
    await writer.start_segment(TxId(1))
    await writer.settle(timeout_seconds=30)
    rig.proxies[2].arm(lambda _n, method: Fate.HANG if method == "Write" else Fate.PASS)
    began = asyncio.get_running_loop().time()
    await writer.write(TxId(1), 1, edits(1, 1))
    assert asyncio.get_running_loop().time() - began < 4.5
    assert writer.committed == 1
    await writer.write(TxId(2), 1, edits(2, 2))
    known = []
    for daemon in rig.nodes.daemons[:2]:
        owner = daemon.node.find(JOURNAL) if daemon is not None else None
        assert owner is not None
        known.append(owner.state.committed)
    assert 1 in known
    await writer.close()


@pytest.mark.row("8.5 SetOutputBufferCapacityTooLarge")
def test_set_output_buffer_capacity_too_large() -> None:
    """Fit what goes out together into a message, and what the operator sets, too."""
    WriterSettings(merged_write_limit_bytes=32 * 1024 * 1024)
    with pytest.raises(ValueError, match="merged_write_limit_bytes must stay well below"):
        WriterSettings(merged_write_limit_bytes=64 * 1024 * 1024)


async def read_rpc(
    hands: Hands, lasts: Sequence[int], third: Fate = Fate.PASS, straggler_seconds: float = 2.0
) -> bytes:
    """Return what a reader gets from three nodes that have answered so."""
    await hands.written(lasts)
    async with behind_proxies(hands.nodes.addresses) as proxies:
        proxies[2].judge = lambda _number, _method: third
        reader = reader_of([p.address for p in proxies], straggler_seconds=straggler_seconds)
        try:
            return b"".join([chunk.records async for chunk in reader.durable_edits(TxId(1))])
        finally:
            await reader.close()


@pytest.fixture
async def hands(tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands_on(tmp_path) as hands:
        yield hands


@pytest.mark.row("8.5 ReadRpcInputStreams")
async def test_read_rpc_input_streams(hands: Hands) -> None:
    assert await read_rpc(hands, [3, 3, 3]) == records(1, 3)


@pytest.mark.row("8.5 ReadRpcInputStreamsMismatched")
async def test_read_rpc_input_streams_mismatched(hands: Hands) -> None:
    assert await read_rpc(hands, [1, 2, 3]) == records(1, 2)


@pytest.mark.row("8.5 ReadRpcInputStreamsOneSlow")
async def test_read_rpc_input_streams_one_slow(hands: Hands) -> None:
    assert await read_rpc(hands, [1, 2, 3], Fate.HANG, 0.1) == records(1, 1)


@pytest.mark.row("8.5 ReadRpcInputStreamsOneException")
async def test_read_rpc_input_streams_one_exception(hands: Hands) -> None:
    assert await read_rpc(hands, [1, 2, 3], Fate.LOSE_REQUEST) == records(1, 1)


@pytest.mark.row("8.5 ReadRpcInputStreamsNoNewEdits")
async def test_read_rpc_input_streams_no_new_edits(hands: Hands) -> None:
    assert await read_rpc(hands, [0, 0, 0]) == b""


@pytest.mark.row("8.5 IPCLoggerChannel.SimpleCall")
async def test_simple_call(tmp_path: Path) -> None:
    """IPCLoggerChannel.SimpleCall: what the writer says is what the node carries out."""
    async with formatted_nodes(tmp_path, 1) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await writer.start_segment(TxId(1), layout_version=-67)
        await writer.write(TxId(1), 3, edits(1, 3, "said"))
        daemon = nodes.daemons[0]
        assert daemon is not None
        owner = daemon.node.find(JOURNAL)
        assert owner is not None
        held = owner.state.open
        assert held is not None
        assert (held.as_segment().last, held.writer, held.layout_version) == (3, 1, -67)
        await writer.close()
        path = nodes.current(0) / f"edits_inprogress_{1:019d}"
        assert path.read_bytes()[8:].startswith(edits(1, 3, "said"))


@pytest.mark.row("8.5 IPCLoggerChannel.MetricsRemovedOnClose")
async def test_metrics_removed_on_close(rig: Rig) -> None:
    series = (
        "nnha_journal_writer_lag_transactions",
        "nnha_journal_node_in_sync",
        "nnha_journal_queued_bytes",
    )

    def shown() -> list[float | None]:
        node = f"127.0.0.1:{rig.proxies[0].port}"
        return [REGISTRY.get_sample_value(name, {"jn": node}) for name in series]

    assert shown() == [None] * 3
    writer, successor = rig.writer(), rig.writer()
    assert None not in shown()
    await writer.close()
    assert None not in shown(), "the later writer's are still wanted"
    await successor.close()
    assert shown() == [None] * 3


@pytest.mark.row("8.5 EpochsAreUnique")
async def test_epochs_are_unique(rig: Rig) -> None:
    """EpochsAreUnique: 1 to 5, then 20 rounds in which nodes fail by chance, each until it wins."""
    won = []
    for _ in range(5):
        writer = rig.writer()
        won.append((await writer.become_writer()).epoch)
        await writer.close()
    assert won == [1, 2, 3, 4, 5]
    chance = Random(18)
    likely = {"GetJournalState": 0.1, "NewEpoch": 0.4}
    rig.arm(*[
        lambda _n, method: (
            Fate.LOSE_REQUEST if chance.random() < likely.get(method, 0) else Fate.PASS
        )
    ] * 3)  # fmt: skip
    lost = 0
    while len(won) < 25:
        writer = rig.writer()
        try:
            won.append((await writer.become_writer()).epoch)
        except QuorumLost:
            lost += 1
        finally:
            await writer.close()
    assert won == sorted(set(won))
    assert lost > 0, "chance was too kind"

"""A reader follows the open segment: what it may see, and from where (Hadoop's testSelectViaRpc*).

Hadoop's testSelectViaRpcWithoutDurableTransactions does not apply: there is no such mode here.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from journal.proto import journal_pb2 as pb
from journal.reader.reader import JournalReader, ReaderSettings
from tests.journal.core.requests_of import Writer, records
from tests.journal.node.process import NodeClient
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, Nodes, formatted_nodes
from tests.journal.writer.proxy import Fate, Proxy

MIB = 1024 * 1024


@dataclass(slots=True)
class Hands:
    """One writer's hands on single nodes, so that each can be given something else."""

    nodes: Nodes
    clients: list[NodeClient]
    writers: list[Writer]

    async def epoch(self, number: int, *which: int) -> None:
        for i in which:
            self.writers[i] = Writer(number)
            await self.clients[i].new_epoch(number)

    async def start(self, first: int, *which: int) -> None:
        for i in which:
            await self.clients[i].start(self.writers[i], first)

    async def write(self, i: int, start: int, first: int, last: int, known: int = 0) -> None:
        """``known`` is the committed txid that the batch carries."""
        self.writers[i].committed = known or None
        batch = self.clients[i].batch(self.writers[i], start, first, last)
        (reply,) = await self.clients[i].write([batch])
        assert not reply.HasField("refusal"), reply

    async def written(self, lasts: Sequence[int]) -> None:
        """Epoch 1 writes the segment at 1, up to another edit on each node; 0 is nothing."""
        for i, last in enumerate(lasts):
            await self.epoch(1, i)
            await self.start(1, i)
            if last:
                await self.write(i, 1, 1, last)


@asynccontextmanager
async def hands_on(folder: Path, cache_bytes: int = MIB) -> AsyncIterator[Hands]:
    async with formatted_nodes(folder, edits_cache_bytes=cache_bytes) as nodes:
        clients = [NodeClient(port, JOURNAL) for _, port in nodes.addresses]
        try:
            yield Hands(nodes, clients, [Writer(1) for _ in clients])
        finally:
            for client in clients:
                await client.close()


@pytest.fixture
async def hands(tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands_on(tmp_path) as hands:
        yield hands


def reader_of(addresses: Sequence[tuple[str, int]], **settings: float) -> JournalReader:
    return JournalReader(
        addresses,
        journal_id=JOURNAL,
        nameservice_id="ns1",
        namespace=NAMESPACE,
        settings=ReaderSettings(select_input_streams_timeout_seconds=5, **settings),  # type: ignore[arg-type]
    )


async def tail(nodes: Nodes, first: int = 1, **settings: float) -> bytes:
    reader = reader_of(nodes.addresses, **settings)
    try:
        return b"".join([c.records async for c in reader.durable_edits(TxId(first))])
    finally:
        await reader.close()


@pytest.mark.row("8.4 testSelectViaRpcWithDurableTransactions")
async def test_select_via_rpc_with_durable_transactions(hands: Hands) -> None:
    await hands.written([5, 5, 6])
    for _ in range(4):  # whichever two nodes answer first
        assert await tail(hands.nodes) == records(1, 5)


async def test_select_via_rpc_lengths_differ(hands: Hands) -> None:
    """ReadRpcInputStreamsMismatched: the third answer is worth a little patience."""
    await hands.written([1, 2, 3])
    for _ in range(4):
        assert await tail(hands.nodes, straggler_seconds=2.0) == records(1, 2)


@pytest.mark.row("8.4 OneDeadJN")
async def test_select_via_rpc_one_dead_jn(hands: Hands) -> None:
    await hands.written([5, 5, 6])
    await hands.nodes.stop(0)
    assert await tail(hands.nodes) == records(1, 5)


@pytest.mark.row("8.4 TwoDeadJNs")
async def test_select_via_rpc_two_dead_jns(hands: Hands) -> None:
    await hands.written([5, 5, 6])
    await hands.nodes.stop(0, 1)
    with pytest.raises(QuorumLost, match=r"needs 2 of 3"):
        await tail(hands.nodes)


@pytest.mark.row("8.4 AfterJNRestart")
async def test_select_via_rpc_after_jn_restart_streams(hands: Hands) -> None:
    """Memory is empty after a restart, so the files of the open segment are compared."""
    for i in range(3):
        await hands.epoch(1, i)
        await hands.start(1, i)
        await hands.write(i, 1, 1, 5)
        await hands.write(i, 1, 6, 8, known=5)
    await hands.nodes.stop()
    await hands.nodes.start()
    assert await tail(hands.nodes) == records(1, 5)  # 6-8 are not known to be committed
    assert await tail(hands.nodes, 3) == records(3, 5)


@pytest.mark.row("8.4 TwoJNsError")
async def test_select_via_rpc_two_jns_error_streams(hands: Hands) -> None:
    await hands.written([5, 5, 5])
    for i in range(3):
        await hands.write(i, 1, 6, 8, known=5)
    await hands.nodes.stop(0, 1)
    await hands.nodes.start(0, 1)
    assert await tail(hands.nodes) == records(1, 5)


@pytest.mark.row("8.4 AfterJNJitter")
async def test_select_via_rpc_after_jn_jitter(hands: Hands) -> None:
    """HDFS-16659: a node that lags must not vote that there is nothing newer."""
    await hands.written([10, 40, 40])
    for _ in range(4):
        assert await tail(hands.nodes, 21, straggler_seconds=2.0) == records(21, 40)


@pytest.mark.row("8.4 testSelectInputStreamsNotOnBoundary")
async def test_select_input_streams_not_on_boundary(hands: Hands) -> None:
    await hands.written([0, 0, 0])
    for start in range(1, 51, 10):
        for i in range(3):
            await hands.write(i, 1, start, start + 9)
    assert await tail(hands.nodes, 25) == records(25, 50)
    assert await tail(hands.nodes, 25, rpc_max_txns=4) == records(25, 50)


@pytest.mark.row("8.4 testInProgressRecovery")
async def test_in_progress_recovery(hands: Hands) -> None:
    """HDFS-13145: recovered edits are read whole, though no node knows that all are committed."""
    for i in range(3):
        await hands.epoch(1, i)
        await hands.start(1, i)
        await hands.write(i, 1, 1, 5)
        await hands.write(i, 1, 6, 8, known=5)
    assert await hands.nodes.recover() == (2, 8)
    assert await tail(hands.nodes) == records(1, 8)


@pytest.mark.row("8.4 testSelectLatestEditsWithoutStreaming")
async def test_select_latest_edits_without_streaming(hands: Hands) -> None:
    await hands.written([10, 10, 10])
    async with proxies(hands.nodes) as (addresses, between):
        reader = reader_of(addresses)
        read = [c.records async for c in reader.durable_edits(TxId(1))]
        assert b"".join(read) == records(1, 10)
        assert [c async for c in reader.durable_edits(TxId(11))] == []
        calls = {call for proxy in between for call in proxy.calls}
        assert "GetJournaledEdits" in calls
        assert "GetEditLogManifest" not in calls
        await reader.close()


@pytest.mark.row("8.4 testSelectThreadCounts")
async def test_select_thread_counts(hands: Hands) -> None:
    """Ask a node that hangs not again and again; each question to it is taken back."""
    await hands.written([10, 10, 10])
    async with proxies(hands.nodes) as (addresses, between):
        between[0].judge = lambda _number, _method: Fate.HANG
        reader = reader_of(addresses)
        for _ in range(200):
            read = [c.records async for c in reader.durable_edits(TxId(1))]
            assert b"".join(read) == records(1, 10)
        assert len(reader._nodes._asking) <= 3
        await reader.close()


@pytest.mark.row("X4")
async def test_x4_only_the_newer_writer_s_edits_are_seen(hands: Hands) -> None:
    """Node 0 holds 4-6 of epoch 1; 4-6 of epoch 2 are acknowledged on the others."""
    await hands.written([3, 3, 3])
    for i in range(3):
        await hands.clients[i].finalize(hands.writers[i], 1, 3)
    await hands.start(4, 0)
    await hands.write(0, 4, 4, 6)
    await hands.epoch(2, 1, 2)
    await hands.start(4, 1, 2)
    for i in (1, 2):
        await hands.write(i, 4, 4, 6)
    wanted = records(1, 3) + records(4, 6, 2)
    for _ in range(4):
        assert await tail(hands.nodes, straggler_seconds=2.0) == wanted
    for i in (1, 2):  # and the same without the nodes' memory
        beat = pb.WriteRequest(info=info(hands, i, known=6), heartbeat=pb.Heartbeat())
        await hands.clients[i].write([beat])
    await hands.nodes.stop()
    await hands.nodes.start()
    for _ in range(4):
        assert await tail(hands.nodes) in (wanted, records(1, 3))
    await hands.nodes.stop(0)
    assert await tail(hands.nodes) == wanted
    await hands.nodes.start(0)
    await hands.nodes.stop(1)
    assert await tail(hands.nodes) == records(1, 3)  # one copy of 4-6 is no majority


def info(hands: Hands, i: int, *, known: int) -> pb.RequestInfo:
    hands.writers[i].committed = known
    return hands.clients[i].info(hands.writers[i])


@pytest.mark.row("8.7 TailWithoutCache")
async def test_tail_without_cache(tmp_path: Path) -> None:
    """StandbyInProgressTail.TailWithoutCache: memory for one byte."""
    async with hands_on(tmp_path, cache_bytes=1) as hands:
        await hands.written([5, 5, 5])
        for i in range(3):
            await hands.write(i, 1, 6, 9, known=5)
        assert await tail(hands.nodes) == records(1, 5)


async def test_one_file_of_an_edit_is_not_enough(tmp_path: Path) -> None:
    """Let one node know that 5 is committed, and have it; the others lost their last bytes."""
    async with hands_on(tmp_path, cache_bytes=1) as hands:
        await hands.written([3, 3, 3])
        await hands.write(0, 1, 4, 5)
        beat = pb.WriteRequest(info=info(hands, 0, known=5), heartbeat=pb.Heartbeat())
        await hands.clients[0].write([beat])
        async with asyncio.timeout(30):
            while (seen := await tail(hands.nodes)) != records(1, 3):
                assert seen == b"", "without the one that knows, nothing is certain"


@pytest.mark.row("8.7 CorruptJournalCache")
async def test_corrupt_journal_cache(hands: Hands) -> None:
    """StandbyInProgressTail.CorruptJournalCache: one node down, and one whose memory is bad."""
    await hands.written([5, 5, 5])
    for i in range(3):
        await hands.write(i, 1, 6, 8, known=5)
    await hands.nodes.stop(2)
    daemon = hands.nodes.daemons[1]
    assert daemon is not None
    owner = daemon.node.find(JOURNAL)
    assert owner is not None
    cache = owner.recent._cache
    assert cache is not None
    batch = cache._batches[0]
    bad = bytearray(batch.records)
    bad[20] ^= 1
    cache._batches[0] = type(batch)(
        batch.first, batch.last, batch.writer, batch.layout_version, bytes(bad)
    )
    assert await tail(hands.nodes) == records(1, 5)


async def test_an_idle_journal_has_nothing_new(hands: Hands) -> None:
    await hands.written([5, 5, 5])
    reader = reader_of(hands.nodes.addresses)
    assert [c.last async for c in reader.durable_edits(TxId(1))] == [5]
    assert [c.last async for c in reader.durable_edits(TxId(6))] == []
    for i in range(3):
        await hands.write(i, 1, 6, 7)
    assert [c.first async for c in reader.durable_edits(TxId(6))] == [6]
    await reader.close()


@asynccontextmanager
async def proxies(nodes: Nodes) -> AsyncIterator[tuple[list[tuple[str, int]], list[Proxy]]]:
    between: list[Proxy] = []
    try:
        for address in nodes.addresses:
            proxy = Proxy(address)
            await proxy.start()
            between.append(proxy)
        yield [("127.0.0.1", proxy.port) for proxy in between], between
    finally:
        for proxy in between:
            await proxy.stop()

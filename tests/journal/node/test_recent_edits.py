"""What a node gives readers from memory: durable edits, and none that a recovery may replace."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from journal.core.requests import Format
from journal.errors import StorageFailed
from journal.model import JournalId, TxId
from journal.node import metrics
from journal.node.owner import decision_log
from journal.node.owner.edits_cache import EditsCache
from journal.node.owner.owner import JournalOwner
from journal.proto import journal_pb2 as pb
from journal.storage.disk import Disk
from tests.journal.core import requests_of
from tests.journal.node.process import JID, NodeClient, Refused, node_and_client

MIB = 1024 * 1024


async def recent(client: NodeClient, since: int, most: int = 1000) -> pb.GetJournaledEditsReply:
    request = pb.GetJournaledEditsRequest(journal_id=JID, since_txid=since, max_txns=most)
    reply: pb.GetJournaledEditsReply = await client.call("GetJournaledEdits", request)
    return reply


async def refusal(client: NodeClient, since: int) -> int:
    with pytest.raises(Refused) as refused:
        await recent(client, since)
    assert refused.value.refusal is not None
    return refused.value.refusal.kind


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[NodeClient]:
    async with node_and_client(tmp_path, edits_cache_bytes=MIB) as (_, client):
        await client.format()
        yield client


async def write(
    client: NodeClient, writer: requests_of.Writer, start: int, first: int, last: int
) -> None:
    (reply,) = await client.write([client.batch(writer, start, first, last)])
    assert not reply.HasField("refusal"), reply


@pytest.mark.row("8.1 testReadFromCache")
async def test_read_from_cache(client: NodeClient) -> None:
    """TestJournal.testReadFromCache."""
    writer = requests_of.Writer(1)
    await client.new_epoch(1)
    await client.start(writer, 1)
    for first in (1, 6, 11):
        await write(client, writer, 1, first, first + 4)
    assert (await recent(client, 1, 7)).records == requests_of.records(1, 7)
    assert (await recent(client, 1, 30)).records == requests_of.records(1, 15)
    assert (await recent(client, 16)).count == 0
    await client.finalize(writer, 1, 15)
    start = pb.StartLogSegmentRequest(info=client.info(writer), first_txid=16, layout_version=-70)
    await client.call("StartLogSegment", start)
    await write(client, writer, 16, 16, 20)
    reply = await recent(client, 16, 10)
    assert (reply.count, reply.layout_version, reply.records) == (
        5,
        -70,
        requests_of.records(16, 20),
    )
    assert [(run.last_txid, run.writer_epoch) for run in reply.writers] == [(20, 1)]
    assert (await recent(client, 10, 100)).records == requests_of.records(10, 15)


async def test_a_node_that_lags_does_not_vote_that_there_is_nothing_newer(
    client: NodeClient,
) -> None:
    """HDFS-16659."""
    writer = requests_of.Writer(1)
    await client.new_epoch(1)
    assert (await recent(client, 1)).count == 0
    await client.written(writer, 1, 5)
    assert (await recent(client, 6)).count == 0
    assert await refusal(client, 7) == pb.Refusal.AHEAD_OF_NODE


async def test_what_is_asked_for_must_make_sense(client: NodeClient) -> None:
    await client.new_epoch(1)
    await client.written(requests_of.Writer(1), 1, 5)
    assert await refusal(client, 0) == pb.Refusal.CACHE_MISS
    with pytest.raises(Refused) as refused:
        await recent(client, 1, 0)
    assert refused.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert await refusal(client, 2**63) == pb.Refusal.BAD_REQUEST


async def test_without_the_key_nothing_is_kept(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(requests_of.Writer(1), 1, 5)
        assert await refusal(client, 1) == pb.Refusal.CACHE_MISS


async def test_after_a_restart_memory_is_empty(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, edits_cache_bytes=MIB) as (_, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(requests_of.Writer(1), 1, 5)
    async with node_and_client(tmp_path, edits_cache_bytes=MIB) as (_, client):
        assert await refusal(client, 1) == pb.Refusal.CACHE_MISS


@pytest.mark.row(
    "8.1 HDFS-17710", because="the row has a number for a name; the test names it in its docstring"
)
async def test_edits_whose_write_failed_are_never_served(tmp_path: Path) -> None:
    """HDFS-17710: Hadoop put them into the cache before it wrote them."""
    decision_log.debugging.cache_clear()  # an earlier test may have asked without debug logs
    files = requests_of.MemoryFiles()
    disk = Disk(tmp_path, files)
    owner = JournalOwner(JournalId(JID), disk, disk.load(), EditsCache(MIB))
    await owner.ask(Format(requests_of.NAMESPACE, incarnation=requests_of.LIFE))
    writer = requests_of.Writer(1)
    await owner.ask(writer.new_epoch())
    await owner.ask(writer.start(1))
    await owner.ask(writer.batch(1, 1, 5))
    files.fail_at, files.failure = files.operations + 1, OSError(5, "Input/output error")
    with pytest.raises(StorageFailed):
        await owner.ask(writer.batch(1, 6, 8))
    assert owner.recent.answer(owner.state, TxId(1), 100).records == requests_of.records(1, 5)
    with pytest.raises(StorageFailed):
        owner.journaled_edits(TxId(1), 100)
    files.fail_at = None
    await owner.stop()


async def test_a_new_epoch_takes_back_what_its_recovery_may_replace(client: NodeClient) -> None:
    """See docs/reference/quorum-journal.md#durable-reads."""
    old = requests_of.Writer(1)
    await client.new_epoch(1)
    await client.written(old, 1, 5)
    await client.finalize(old, 1, 5)
    await client.written(old, 6, 8)
    await client.new_epoch(2)
    assert await refusal(client, 6) == pb.Refusal.CACHE_MISS
    assert (await recent(client, 1)).records == requests_of.records(1, 5)  # final


async def test_a_writer_that_was_not_announced_takes_it_back_as_well(client: NodeClient) -> None:
    """Let the node miss newEpoch: it learns of the new writer from that one's first call."""
    old = requests_of.Writer(1)
    await client.new_epoch(1)
    await client.written(old, 1, 5)
    new = requests_of.Writer(2)
    (reply,) = await client.write([client.batch(old, 1, 6, 8)])
    assert not reply.HasField("refusal")
    await client.prepare(new, 1)
    assert await refusal(client, 6) == pb.Refusal.CACHE_MISS
    assert await refusal(client, 1) == pb.Refusal.CACHE_MISS


async def test_an_accepted_recovery_is_not_contradicted_by_memory(
    client: NodeClient, tmp_path: Path
) -> None:
    old = requests_of.Writer(1)
    await client.new_epoch(1)
    await client.written(old, 1, 5)
    await client.new_epoch(2)
    new = requests_of.Writer(2)
    await client.prepare(new, 1)
    await client.accept(new, requests_of.segment(1, 5), [])
    assert await refusal(client, 1) == pb.Refusal.CACHE_MISS
    await client.finalize(new, 1, 5, 1)
    await client.start(new, 6)
    await write(client, new, 6, 6, 9)
    assert (await recent(client, 6)).records == requests_of.records(6, 9, 2)
    assert requests_of.digest(6, 9, 2) != requests_of.digest(6, 9, 1)


async def test_memory_is_bounded(tmp_path: Path) -> None:
    async with node_and_client(tmp_path, edits_cache_bytes=2000) as (_, client):
        await client.format()
        writer = requests_of.Writer(1)
        await client.new_epoch(1)
        await client.start(writer, 1)
        for first in range(1, 200, 10):
            await write(client, writer, 1, first, first + 9)
        assert await refusal(client, 1) == pb.Refusal.CACHE_MISS
        reply = await recent(client, 195)
        assert reply.records == requests_of.records(195, 200)
        gauge = metrics.CACHE_BYTES.labels(JID)
        assert 0 < next(iter(gauge.collect())).samples[0].value <= 2000

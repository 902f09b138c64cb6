"""The reader goes on elsewhere when a node fails in the middle of a segment."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from journal.core.requests import ReportDamage
from journal.errors import GapFound, QuorumLost
from journal.model import TxId
from journal.reader.reader import Chunk, JournalReader, ReaderSettings
from tests.journal.node.process import until
from tests.journal.writer import journal_cluster
from tests.journal.writer.proxy import Fate, behind_proxies

WHOLE = journal_cluster.edits(1, 500, "first") + journal_cluster.edits(501, 900, "second")


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[journal_cluster.Nodes]:
    async with journal_cluster.formatted_nodes(tmp_path) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await journal_cluster.write_segment(writer, 1, 500, "first")
        await journal_cluster.write_segment(writer, 501, 900, "second")
        await writer.settle(timeout_seconds=30)
        await writer.close()
        yield nodes


def small_reader(
    nodes: journal_cluster.Nodes, addresses: Sequence[tuple[str, int]] = ()
) -> JournalReader:
    return JournalReader(
        addresses or nodes.addresses,
        journal_id=journal_cluster.JOURNAL,
        nameservice_id="ns1",
        namespace=journal_cluster.NAMESPACE,
        settings=ReaderSettings(chunk_bytes=1000),
    )


async def read(reader: JournalReader, first: int = 1, through: int | None = None) -> list[Chunk]:
    known = None if through is None else TxId(through)
    return [chunk async for chunk in reader.edits(TxId(first), through=known)]


def damage(nodes: journal_cluster.Nodes, i: int, at: int) -> None:
    path = nodes.current(i) / f"edits_{1:019d}-{500:019d}"
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


async def test_chunks_are_small_and_contiguous(nodes: journal_cluster.Nodes) -> None:
    reader = small_reader(nodes)
    chunks = await read(reader)
    assert b"".join(chunk.records for chunk in chunks) == WHOLE
    assert len(chunks) > 20
    assert max(len(chunk.records) for chunk in chunks) < 1100
    (last,) = await read(reader, 900)
    assert (last.first, last.last) == (900, 900)
    await reader.close()


async def test_damage_on_one_or_two_nodes_is_read_around(nodes: journal_cluster.Nodes) -> None:
    damage(nodes, 0, 4000)
    damage(nodes, 1, 9000)
    reader = small_reader(nodes)
    for _ in range(4):  # whichever two nodes answer first
        assert b"".join(chunk.records for chunk in await read(reader)) == WHOLE
    await reader.close()


async def find_newest_damaged(nodes: journal_cluster.Nodes, *which: int) -> None:
    """Take a damaged segment out of these nodes' lists, as a scan does."""
    for i in which:
        daemon = nodes.daemons[i]
        assert daemon is not None
        owner = daemon.node.find(journal_cluster.JOURNAL)
        assert owner is not None
        await owner.ask(ReportDamage(TxId(501), "a test said so"))


async def test_the_third_node_is_asked_for_what_the_lists_of_the_others_end_before(
    nodes: journal_cluster.Nodes,
) -> None:
    """Damage the end: a takeover knows where the journal ends, and the lists have no gap."""
    await find_newest_damaged(nodes, 0, 1)
    listing = "GetEditLogManifest"
    async with behind_proxies(nodes.addresses) as proxies:
        proxies[2].arm(lambda _n, method: Fate.HOLD if method == listing else Fate.PASS)
        reader = small_reader(nodes, [proxy.address for proxy in proxies])
        assert await read(reader, 501) == [], "two lists are a majority's"
        found = asyncio.create_task(read(reader, 501, through=900))
        await until(
            lambda: found.done() or all(p.calls.count(listing) == 3 for p in proxies[:2]),
            "they are asked once more",
        )
        proxies[2].opened.set()
        assert b"".join([chunk.records for chunk in await found]) == journal_cluster.edits(
            501, 900, "second"
        )
        with pytest.raises(GapFound, match="transactions 901-902 are missing") as gap:
            await read(reader, 501, through=902)
        assert (gap.value.missing_first, gap.value.missing_last) == (901, 902)
        await reader.close()


async def test_damage_everywhere_is_told_with_every_node(nodes: journal_cluster.Nodes) -> None:
    for i in range(3):
        damage(nodes, i, 4000)
    reader = small_reader(nodes)
    with pytest.raises(QuorumLost, match="cannot be read anywhere") as lost:
        await read(reader)
    assert len(lost.value.failures) >= 2
    assert "checksum" in str(lost.value) or "not completed" in str(lost.value)
    await reader.close()


async def test_a_node_that_dies_while_we_read_is_left(nodes: journal_cluster.Nodes) -> None:
    reader = small_reader(nodes)
    records, stopped = b"", False
    async for chunk in reader.edits(TxId(1)):
        records += chunk.records
        if not stopped:
            await nodes.stop(0)
            stopped = True
    assert records == WHOLE
    await reader.close()


async def test_a_minority_is_not_trusted(nodes: journal_cluster.Nodes) -> None:
    await nodes.stop(0, 1)
    reader = small_reader(nodes)
    with pytest.raises(QuorumLost, match="listing the segments needs 2 of 3"):
        await read(reader)
    with pytest.raises(QuorumLost, match=r"needs 2 of 3"):
        await reader.last_finalized()
    await reader.close()


async def test_a_missing_segment_is_a_gap(nodes: journal_cluster.Nodes) -> None:
    await nodes.stop()
    for i in range(3):
        (nodes.current(i) / f"edits_{1:019d}-{500:019d}").unlink()
    await nodes.start()
    reader = small_reader(nodes)
    with pytest.raises(GapFound, match="transactions 1-500 are missing"):
        await read(reader)
    assert len(await read(reader, 501)) > 0
    await reader.close()

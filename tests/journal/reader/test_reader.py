"""The reader goes on elsewhere when a node fails in the middle of a segment."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from journal.core.requests import ReportDamage
from journal.errors import GapFound, QuorumLost, StorageFailed
from journal.model import TxId
from journal.reader.fetch import http_session, read_segment
from journal.reader.frame_stream import FrameReader
from journal.reader.reader import Chunk, JournalReader, ReaderSettings
from tests.journal.node.process import until
from tests.journal.writer import journal_cluster
from tests.journal.writer.proxy import Fate, behind_proxies
from tests.stand_in import stand_in

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


async def find_newest_damaged(nodes: journal_cluster.Nodes, *which: int, first: int = 501) -> None:
    """Take a damaged segment out of these nodes' lists, as a scan does."""
    for i in which:
        daemon = nodes.daemons[i]
        assert daemon is not None
        owner = daemon.node.find(journal_cluster.JOURNAL)
        assert owner is not None
        await owner.ask(ReportDamage(TxId(first), "a test said so"))


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


@pytest.mark.parametrize(
    ("sent", "up_to_end", "last", "failure"),
    [
        (None, True, 500, ""),
        (None, True, 60, ""),
        (3000, True, 500, "ends before transaction"),
        (3000, False, 500, ""),
        (0, True, 500, "ends before transaction 1$"),
    ],
)
async def test_a_segment_that_ends_early_is_damaged_where_all_of_it_is_wanted(
    nodes: journal_cluster.Nodes, sent: int | None, up_to_end: bool, last: int, failure: str
) -> None:
    body = (nodes.current(0) / f"edits_{1:019d}-{500:019d}").read_bytes()[:sent]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    found: list[Chunk] = []
    async with stand_in(serve) as port, http_session(ReaderSettings()) as session:
        frames = FrameReader(TxId(1), wanted=TxId(1), last=TxId(last))
        url = f"http://127.0.0.1:{port}/getJournal"
        reading = read_segment(session, url, frames, chunk_bytes=1000, up_to_end=up_to_end)
        with pytest.raises(StorageFailed, match=failure) if failure else nullcontext():
            found += [chunk async for chunk in reading]
    if not failure:
        assert WHOLE.startswith(b"".join(chunk.records for chunk in found))
        assert (found[-1].last == last) is (sent is None)


@pytest.mark.parametrize(("damaged_at", "last"), [((4000, 9000, 4000), 500), ((9000,) * 3, 60)])
async def test_the_remains_of_damaged_copies_are_read_once_and_in_order(
    nodes: journal_cluster.Nodes, damaged_at: tuple[int, ...], last: int
) -> None:
    for i, at in enumerate(damaged_at):
        damage(nodes, i, at)
    await find_newest_damaged(nodes, 0, 1, 2, first=1)
    reader = small_reader(nodes)
    found = [chunk async for chunk in reader.remains(TxId(1), TxId(last))]
    records = b"".join(chunk.records for chunk in found)
    assert WHOLE.startswith(records)
    assert len(records) > 1000
    assert [chunk.first for chunk in found[1:]] == [chunk.last + 1 for chunk in found[:-1]]
    assert found[-1].last <= last
    await reader.close()


async def test_what_is_in_no_list_of_a_majority_is_not_served(
    nodes: journal_cluster.Nodes,
) -> None:
    reader = small_reader(nodes)
    end = await reader.last_finalized()
    for first in (1, 500, 501, end):
        await reader.ensure_served(TxId(first), end)
    with pytest.raises(GapFound, match=f"no answering node lists {end + 1}") as gap:
        await reader.ensure_served(TxId(1), TxId(end + 2))
    assert (gap.value.missing_first, gap.value.missing_last) == (end + 1, end + 2)
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

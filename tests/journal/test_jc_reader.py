"""The reader goes on elsewhere when a node fails in the middle of a segment."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from journal.client.reader import Chunk, JournalReader, ReaderSettings
from journal.errors import GapFound, QuorumLost
from journal.model import TxId
from tests.journal.jc_cluster import (
    JOURNAL,
    NAMESPACE,
    Nodes,
    edits,
    formatted_nodes,
    write_segment,
)

WHOLE = edits(1, 500, "first") + edits(501, 900, "second")


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    """Three nodes with 1-500 and 501-900 finalized."""
    async with formatted_nodes(tmp_path) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await write_segment(writer, 1, 500, "first")
        await write_segment(writer, 501, 900, "second")
        await writer.settle(timeout_seconds=5)
        await writer.close()
        yield nodes


def small_reader(nodes: Nodes) -> JournalReader:
    return JournalReader(
        nodes.addresses,
        journal_id=JOURNAL,
        nameservice_id="ns1",
        namespace=NAMESPACE,
        settings=ReaderSettings(chunk_bytes=1000),
    )


async def read(reader: JournalReader, first: int = 1) -> list[Chunk]:
    return [chunk async for chunk in reader.edits(TxId(first))]


def damage(nodes: Nodes, i: int, at: int) -> None:
    path = nodes.current(i) / f"edits_{1:019d}-{500:019d}"
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


async def test_chunks_are_small_and_contiguous(nodes: Nodes) -> None:
    reader = small_reader(nodes)
    chunks = await read(reader)
    assert b"".join(chunk.records for chunk in chunks) == WHOLE
    assert len(chunks) > 20
    assert max(len(chunk.records) for chunk in chunks) < 1100
    (last,) = await read(reader, 900)
    assert (last.first, last.last) == (900, 900)
    await reader.close()


async def test_damage_on_one_or_two_nodes_is_read_around(nodes: Nodes) -> None:
    damage(nodes, 0, 4000)
    damage(nodes, 1, 9000)
    reader = small_reader(nodes)
    for _ in range(4):  # whichever two nodes answer first
        assert b"".join(chunk.records for chunk in await read(reader)) == WHOLE
    await reader.close()


async def test_damage_everywhere_is_told_with_every_node(nodes: Nodes) -> None:
    for i in range(3):
        damage(nodes, i, 4000)
    reader = small_reader(nodes)
    with pytest.raises(QuorumLost, match="cannot be read anywhere") as lost:
        await read(reader)
    assert len(lost.value.failures) >= 2
    assert "checksum" in str(lost.value) or "not completed" in str(lost.value)
    await reader.close()


async def test_a_node_that_dies_while_we_read_is_left(nodes: Nodes) -> None:
    reader = small_reader(nodes)
    records, stopped = b"", False
    async for chunk in reader.edits(TxId(1)):
        records += chunk.records
        if not stopped:
            await nodes.stop(0)
            stopped = True
    assert records == WHOLE
    await reader.close()


async def test_a_minority_is_not_trusted(nodes: Nodes) -> None:
    await nodes.stop(0, 1)
    reader = small_reader(nodes)
    with pytest.raises(QuorumLost, match="listing the segments needs 2 of 3"):
        await read(reader)
    with pytest.raises(QuorumLost):
        await reader.last_finalized()
    await reader.close()


async def test_a_missing_segment_is_a_gap(nodes: Nodes) -> None:
    await nodes.stop()
    for i in range(3):
        (nodes.current(i) / f"edits_{1:019d}-{500:019d}").unlink()
    await nodes.start()
    reader = small_reader(nodes)
    with pytest.raises(GapFound, match="transactions 1-500 are missing"):
        await read(reader)
    assert len(await read(reader, 501)) > 0
    await reader.close()

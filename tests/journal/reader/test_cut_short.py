"""A reader with a fault at each await: it yields edits in their order, and gives all back."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from journal.errors import JournalError
from journal.model import TxId
from journal.reader.reader import JournalReader
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.test_cut_short import holdings
from tests.journal.writer import journal_cluster

CLOSED, OPEN = 40, 60
"""The last edits of a finalized segment and of the open one."""


@pytest_asyncio.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[journal_cluster.Nodes]:
    nodes = journal_cluster.Nodes(tmp_path, count=1)
    nodes.extra["edits_cache_bytes"] = 1 << 16
    await nodes.start()
    try:
        await nodes.format()
        writer = nodes.writer()
        await writer.become_writer()
        await journal_cluster.write_segment(writer, 1, CLOSED)
        await writer.start_segment(TxId(CLOSED + 1))
        for txid in range(CLOSED + 1, OPEN + 1):
            await writer.write(TxId(txid), 1, journal_cluster.edit(txid))
        await writer.close()
        yield nodes
    finally:
        await nodes.stop()


@pytest.mark.parametrize(
    ("fault", "whole"),
    [(Fault.CANCEL, True), (Fault.CANCEL, False), (Fault.STOP, False)],
    ids=["cancelled in a file", "cancelled", "closed"],
)
async def test_a_reader_that_is_cut_short_leaves_nothing_open(
    fault: Fault, whole: bool, nodes: journal_cluster.Nodes
) -> None:
    """It reads a segment from the node's file over HTTP, or what a standby reads from memory.

    It may be closed in the latter; in the former aiohttp would let its caller wait for ever.
    """
    readers: list[JournalReader] = []
    found = bytearray()

    async def life() -> None:
        reader = nodes.reader()
        readers.append(reader)
        found.clear()
        try:
            assert await reader.last_finalized() == CLOSED
            first = TxId(1 if whole else CLOSED + 1)
            async with aclosing(
                reader.edits(first) if whole else reader.durable_edits(first)
            ) as chunks:
                async for chunk in chunks:
                    found.extend(chunk.records)
        finally:
            await reader.close()

    async def after(number: int) -> None:
        while readers:
            await readers.pop().close()
        wanted = journal_cluster.edits(*((1, CLOSED) if whole else (CLOSED + 1, OPEN)))
        assert wanted.startswith(found)
        assert number or found == wanted

    # gRPC closes its sockets when it likes, and the node's part of its calls ends then.
    kept = frozenset({"socket:", "ha.daemon.door", "_asyncio."})
    cuts = Cuts(life, fault, stop=lambda: readers[-1].close(), typed=(JournalError,), kept=kept)
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 4

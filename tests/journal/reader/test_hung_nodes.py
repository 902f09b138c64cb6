"""A node that hangs in the middle of reading is left for another one after a moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from journal.model import TxId
from journal.reader.reader import JournalReader, ReaderSettings
from tests.journal.writer import journal_cluster
from tests.stand_in import stand_in

SECONDS = 30.0
"""Half of the deadline for a source of which there is no second."""


@asynccontextmanager
async def silent_http(
    nodes: journal_cluster.Nodes, i: int
) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Take connections and say nothing, in place of that node's HTTP server."""
    daemon = nodes.daemons[i]
    assert daemon is not None
    taken: list[asyncio.StreamWriter] = []

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)

    async with stand_in(take) as daemon.node.http_port:
        yield taken


async def test_segments_are_read_elsewhere_when_the_first_source_hangs(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        for first in range(1, 60, 10):
            await journal_cluster.write_segment(writer, first, first + 9)
        await writer.settle(timeout_seconds=30)
        await writer.close()
        # The two that are left are the majority: both are listed as sources, in this order.
        await nodes.stop(2)
        hung = min((0, 1), key=nodes.name)
        reader = JournalReader(
            nodes.addresses,
            journal_id=journal_cluster.JOURNAL,
            nameservice_id="ns1",
            namespace=journal_cluster.NAMESPACE,
            settings=ReaderSettings(source_patience_seconds=0.2),
        )
        async with silent_http(nodes, hung) as taken, asyncio.timeout(SECONDS):
            read = [chunk.records async for chunk in reader.edits(TxId(1))]
        assert b"".join(read) == journal_cluster.edits(1, 60)
        assert len(taken) == 1, "the second segment does not wait for it again"
        await reader.close()

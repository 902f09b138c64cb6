"""Background sync between real nodes (TestJournalNodeSync, qjm 8.3, X9, I16)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from journal.client.writer import QuorumWriter
from journal.errors import QuorumLost
from journal.model import TxId
from tests.journal.jc_cluster import JOURNAL, Nodes, edits, formatted_nodes, write_segment
from tests.journal.jn_node import segment_url, until


@asynccontextmanager
async def syncing_nodes(folder: Path, count: int = 3, **extra: Any) -> AsyncIterator[Nodes]:  # noqa: ANN401
    """Nodes that sync often; their ports are known only once they have run."""
    async with formatted_nodes(folder, count) as nodes:
        await nodes.stop()
        nodes.extra = {
            "peers": {JOURNAL: nodes.addresses},
            "sync_interval_seconds": 0.1,
            "sync_quick_seconds": 0.05,
            **extra,
        }
        await nodes.start()
        yield nodes


@asynccontextmanager
async def writing(nodes: Nodes) -> AsyncIterator[QuorumWriter]:
    writer = nodes.writer()
    try:
        await writer.become_writer()
        yield writer
    finally:
        await writer.close()


async def write_segments(writer: QuorumWriter, *firsts: int, length: int = 3) -> None:
    for first in firsts:
        await write_segment(writer, first, first + length - 1)


def contents(nodes: Nodes, i: int) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in nodes.current(i).glob("edits_*")}


async def until_equal(nodes: Nodes, wanted: int) -> None:
    """Every node holds the same finalized segments, byte for byte, and nothing else."""

    def equal() -> bool:
        first, *others = [contents(nodes, i) for i in range(len(nodes.daemons))]
        return len(first) == wanted and all(other == first for other in others)

    await until(equal, "all nodes hold the same")


async def test_a_node_that_was_down_gets_what_it_missed(tmp_path: Path) -> None:
    """SyncAfterJNdowntime, without the roll that Hadoop needs: nothing is written any more."""
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await nodes.stop(0)
        await write_segments(writer, *range(1, 25, 3))
        await nodes.start(0)
        await until_equal(nodes, 8)


async def test_a_node_that_comes_back_to_an_idle_journal_is_made_whole(tmp_path: Path) -> None:
    """It restarts with a hole in front of what it has, and no writer speaks to it."""
    async with syncing_nodes(tmp_path) as nodes:
        async with writing(nodes) as writer:
            await write_segments(writer, 1)
            await nodes.stop(2)
            await write_segments(writer, 4, 7)
        await nodes.stop(0, 1)
        await nodes.start()
        await until_equal(nodes, 3)


async def test_a_finalized_segment_replaces_the_abandoned_one(tmp_path: Path) -> None:
    """X9: exactly one file for the segment remains, and reads of it work."""
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await writer.start_segment(TxId(1))
        await writer.write(TxId(1), 2, edits(1, 2))
        await nodes.stop(1)
        await writer.write(TxId(3), 2, edits(3, 4))
        await writer.finalize_segment(TxId(4))
        await nodes.start(1)
        final = "edits_0000000000000000001-0000000000000000004"

        def live() -> list[str]:
            return [name for name in contents(nodes, 1) if not name.endswith(".stale")]

        await until(lambda: live() == [final], "the segment has come, the old one gone")
        await nodes.stop()
        await nodes.start(1)
        reader = nodes.daemons[1]
        assert reader is not None
        async with (
            aiohttp.ClientSession() as session,
            session.get(
                segment_url(reader, 1, JOURNAL), params={"inProgressOk": "false"}
            ) as response,
        ):
            body = await response.read()
        assert response.status == 200
        assert body.endswith(edits(1, 4))


async def test_what_was_never_acknowledged_is_replaced(tmp_path: Path) -> None:
    """I16: the abandoned copy is as long as the finalized one, and has other bytes."""
    async with syncing_nodes(tmp_path) as nodes:
        writer = nodes.writer(addresses=nodes.addresses)
        await writer.become_writer()
        await write_segments(writer, 1)
        await writer.start_segment(TxId(4))
        await nodes.stop(1, 2)
        with pytest.raises(QuorumLost, match="needs 2 of 3"):
            await writer.write(TxId(4), 3, edits(4, 6, "lost"))
        await writer.close()
        await nodes.stop(0)
        await nodes.start(1, 2)
        async with writing(nodes) as successor:
            await write_segment(successor, 4, 6, "kept")
        await nodes.start(0)
        await until(lambda: (4, 6) in nodes.finalized(0), "the segment has come")
        kept = contents(nodes, 0)["edits_0000000000000000004-0000000000000000006"]
        assert kept.endswith(edits(4, 6, "kept"))


async def test_purged_segments_do_not_come_back(tmp_path: Path) -> None:
    async with syncing_nodes(tmp_path) as nodes, writing(nodes) as writer:
        await write_segments(writer, 1, 4, 7)
        await nodes.stop(2)
        writer.purge_logs(TxId(7))
        await until(lambda: nodes.finalized(0) == nodes.finalized(1) == [(7, 9)], "purged")
        await nodes.start(2)
        await nodes.stop(0)
        await nodes.start(0)
        await write_segments(writer, 10)
        await until(lambda: (10, 12) in nodes.finalized(2), "the returned node takes part")
        assert nodes.finalized(0) == [(7, 9), (10, 12)]

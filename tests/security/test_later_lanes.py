"""With certificates lanes open once the first edits are written: a takeover waits for none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from journal.model import TxId
from journal.writer.writer import QuorumWriter
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import edit
from tests.security.strangers import Daemon
from tests.security.test_certificates import cluster

OPENED, CLOSED = "journal.lane_opened", "journal.lane_closed"


@asynccontextmanager
async def written(folder: Path) -> AsyncIterator[tuple[QuorumWriter, list[Daemon]]]:
    authority = Authority(folder / "certificates")
    async with cluster(authority, folder) as (made, processes):
        with acting_as(made.files):
            writer = made.writer()
            await writer.format()
            await writer.become_writer()
            await writer.start_segment(TxId(1))
            await writer.write(TxId(1), 1, edit(1))
            await everywhere(writer, 1)
            try:
                yield writer, processes
            finally:
                await writer.close()


async def everywhere(writer: QuorumWriter, txid: int) -> None:
    """Wait until every node has confirmed this edit."""
    await until(
        lambda: all(status.acked_txid == txid for status in writer.node_statuses()),
        f"{txid} everywhere",
    )


def told(processes: list[Daemon], event: str) -> int:
    """Return how often the nodes have logged an event, all together."""
    return sum(process.log.read_text().count(f'"{event}"') for process in processes)


def carriers(writer: QuorumWriter) -> set[str]:
    return {status.via for status in writer.node_statuses()}


async def test_the_first_edits_go_over_streams_and_later_ones_over_lanes(tmp_path: Path) -> None:
    async with written(tmp_path) as (writer, processes):
        assert carriers(writer) == {"stream"}
        assert told(processes, OPENED) == 0
        for txid in count(2):
            await writer.write(TxId(txid), 1, edit(txid))
            await everywhere(writer, txid)
            if carriers(writer) == {"lane"}:
                break
        assert told(processes, OPENED) == 3


async def test_a_writer_that_ends_while_lanes_are_opened_leaves_none_behind(
    tmp_path: Path,
) -> None:
    async with written(tmp_path) as (writer, processes):
        await writer.write(TxId(2), 1, edit(2))
        await writer.close()
        await until(lambda: told(processes, CLOSED) == told(processes, OPENED), "their end")

"""A reader with a fault at each await: it yields edits in their order, and gives all back."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from journal.errors import JournalError, QuorumLost, Unavailable
from journal.model import NodeName, Segment, TxId
from journal.reader.reader import JournalReader
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.ha.rpc.test_cut_short import holdings
from tests.journal.node.process import DEADLINE_SECONDS
from tests.journal.writer import journal_cluster

CLOSED, OPEN = 40, 60
"""The last edits of a finalized segment and of the open one."""
KEPT = frozenset({"socket:", "ha.daemon.door", "_asyncio."})
"""gRPC closes its sockets when it likes; the node's part of a call, in this process, ends later."""


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


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.BREAK, Fault.STOP])
async def test_a_reader_that_is_cut_short_leaves_nothing_open(
    fault: Fault, nodes: journal_cluster.Nodes
) -> None:
    """It reads the open segment from the node's memory, as a standby does."""
    readers: list[JournalReader] = []
    found = bytearray()

    async def life() -> None:
        reader = nodes.reader()
        readers.append(reader)
        found.clear()
        try:
            assert await reader.last_finalized() == CLOSED
            async with aclosing(reader.durable_edits(TxId(CLOSED + 1))) as chunks:
                async for chunk in chunks:
                    found.extend(chunk.records)
        finally:
            await reader.close()

    async def after(number: int) -> None:
        while readers:
            await readers.pop().close()
        check(found, CLOSED + 1, OPEN, whole=number == 0)

    cuts = Cuts(life, fault, stop=lambda: readers[-1].close(), typed=(JournalError,), kept=KEPT)
    assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) > 4


async def test_a_question_that_has_not_begun_ends_with_its_reader(
    nodes: journal_cluster.Nodes,
) -> None:
    """Its tasks are cancelled before their first step, in which they can do nothing."""
    reader = nodes.reader()
    asked = asyncio.create_task(reader.last_finalized())
    await asyncio.sleep(0)  # it makes its tasks
    await reader.close()
    with pytest.raises(QuorumLost, match="the reader was closed"):
        await asyncio.wait_for(asked, DEADLINE_SECONDS)
    with pytest.raises(QuorumLost, match="the reader was closed"):
        await reader.last_finalized()


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.BREAK])
async def test_a_copy_that_is_cut_short_leaves_no_connection(
    nodes: journal_cluster.Nodes, caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    """A finalized segment comes over HTTP; the reader keeps one connection for the next one."""
    # Of a reader that is gone the node's server logs a traceback, whose frames caplog would keep.
    caplog.set_level(logging.CRITICAL, logger="aiohttp.server")
    reader, found = nodes.reader(), bytearray()
    assert await reader.last_finalized() == CLOSED  # it hears of the node's port
    segment = Segment(TxId(1), TxId(CLOSED), finalized=True)

    async def life() -> None:
        found.clear()
        async with aclosing(reader.copy_of(NodeName(nodes.name(0)), segment)) as chunks:
            async for chunk in chunks:
                found.extend(chunk.records)

    async def after(number: int) -> None:
        check(found, 1, CLOSED, whole=number == 0)

    cuts = Cuts(life, fault)
    try:
        assert await awaits.cut_at_each_await(cuts, after, holdings=holdings) >= 4
    finally:
        await reader.close()


async def test_a_reader_that_ends_while_a_segment_begins_to_be_read_opens_no_session(
    nodes: journal_cluster.Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library for it is loaded first, which takes a while."""
    loading, loaded = asyncio.Event(), asyncio.Event()

    async def load(name: str) -> None:
        assert name == "aiohttp"
        loading.set()
        await loaded.wait()

    monkeypatch.setattr("journal.reader.nodes.load_late", load)
    reader = nodes.reader()
    await reader.last_finalized()
    segment = Segment(TxId(1), TxId(CLOSED), finalized=True)

    async def read() -> None:
        async with aclosing(reader.copy_of(NodeName(nodes.name(0)), segment)) as chunks:
            async for _ in chunks:
                pass

    begun = asyncio.create_task(read())
    await loading.wait()
    await reader.close()
    loaded.set()
    with pytest.raises(Unavailable, match="the reader was closed"):
        await asyncio.wait_for(begun, DEADLINE_SECONDS)


def check(found: bytes | bytearray, first: int, last: int, *, whole: bool) -> None:
    """Assert that the edits from the first on were read, and with ``whole`` to the last one."""
    wanted = journal_cluster.edits(first, last)
    assert wanted.startswith(found)
    assert not whole or found == wanted

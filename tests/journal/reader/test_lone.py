"""A finalized segment that one node alone lists: another's copy vouches for it, or none does."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from journal.core.requests import ReportDamage
from journal.errors import QuorumLost
from journal.frame import file_header
from journal.model import TxId
from journal.reader.reader import JournalReader, ReaderSettings
from tests.journal.core.requests_of import Writer, records
from tests.journal.node.process import NodeClient
from tests.journal.writer import journal_cluster
from tests.log_lines import captured

WHOLE = journal_cluster.edits(1, 500, "first") + journal_cluster.edits(501, 900, "second")
FORGED = journal_cluster.edits(901, 950, "forged")


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[journal_cluster.Nodes]:
    async with journal_cluster.formatted_nodes(tmp_path) as nodes:
        await filled(nodes)
        yield nodes


async def filled(nodes: journal_cluster.Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await journal_cluster.write_segment(writer, 1, 500, "first")
    await journal_cluster.write_segment(writer, 501, 900, "second")
    await writer.settle(timeout_seconds=30)
    await writer.close()


def reader_of(nodes: journal_cluster.Nodes, *, strict: bool) -> JournalReader:
    return JournalReader(
        nodes.addresses,
        journal_id=journal_cluster.JOURNAL,
        nameservice_id="ns1",
        namespace=journal_cluster.NAMESPACE,
        settings=ReaderSettings(chunk_bytes=1000, refuse_unconfirmed=strict),
    )


async def read(nodes: journal_cluster.Nodes, *, strict: bool) -> bytes:
    reader = reader_of(nodes, strict=strict)
    try:
        return b"".join([chunk.records async for chunk in reader.edits(TxId(1))])
    finally:
        await reader.close()


async def read_until_refused(nodes: journal_cluster.Nodes) -> tuple[bytes, str]:
    """Return what a strict reader has been given when it refuses, and what it says."""
    reader, given = reader_of(nodes, strict=True), b""
    try:
        async for chunk in reader.edits(TxId(1)):
            given += chunk.records
    except QuorumLost as refusal:
        return given, str(refusal)
    finally:
        await reader.close()
    raise AssertionError("it refused nothing")


async def unlist_newest(nodes: journal_cluster.Nodes, i: int) -> None:
    """Take 501-900 out of that node's list, as after a scan that found damage."""
    daemon = nodes.daemons[i]
    assert daemon is not None
    owner = daemon.node.find(journal_cluster.JOURNAL)
    assert owner is not None
    await owner.ask(ReportDamage(TxId(501), "a test said so"))


async def written(client: NodeClient, epoch: int, *, closed: bool) -> None:
    """Write one node's copy of 1-50 as that epoch's writer would, finalized there or not."""
    writer = Writer(epoch)
    await client.new_epoch(epoch)
    await client.start(writer, 1)
    await client.write([client.batch(writer, 1, 1, 50)])
    if closed:
        await client.finalize(writer, 1, 50)


@asynccontextmanager
async def by_hand(
    folder: Path, epochs: Sequence[int], closed: Sequence[int]
) -> AsyncIterator[journal_cluster.Nodes]:
    """Nodes that a writer of their own has reached; ``closed`` have finalized it."""
    async with journal_cluster.formatted_nodes(folder, len(epochs)) as nodes:
        for i, epoch in enumerate(epochs):
            client = NodeClient(nodes.addresses[i][1], journal_cluster.JOURNAL)
            try:
                await written(client, epoch, closed=i in closed)
            finally:
                await client.close()
        yield nodes


def counted(result: str) -> float:
    name = "nnha_journal_unconfirmed_segments_total"
    return REGISTRY.get_sample_value(name, {"result": result}) or 0.0


async def test_what_nobody_else_has_is_refused_in_strict_and_named(
    nodes: journal_cluster.Nodes,
) -> None:
    await unlist_newest(nodes, 1)
    await nodes.stop(2)  # so that the one that lists it is among those that answer
    before = counted("refused")
    given, said = await read_until_refused(nodes)
    assert given == journal_cluster.edits(1, 500, "first")
    assert said.startswith(f"{nodes.name(0)} alone lists the segment edits_{501:019d}-{900:019d}")
    assert counted("refused") == before + 1


async def test_otherwise_it_is_used_with_one_warning(nodes: journal_cluster.Nodes) -> None:
    await unlist_newest(nodes, 1)
    await nodes.stop(2)  # so that the one that lists it is among those that answer
    before = counted("used")
    reader = reader_of(nodes, strict=False)
    with captured("journal.segment_unconfirmed") as logs:
        for _ in range(3):
            assert b"".join([c.records async for c in reader.edits(TxId(1))]) == WHOLE
    await reader.close()
    assert [(one["node"], one["at"]) for one in logs] == [(nodes.name(0), 501)]
    assert counted("used") == before + 1


async def test_a_forged_segment_at_the_end_is_not_believed(nodes: journal_cluster.Nodes) -> None:
    """F13: the copies agree up to there, and one bad node goes on."""
    await nodes.stop(1)
    (nodes.current(1) / f"edits_{901:019d}-{950:019d}").write_bytes(file_header() + FORGED)
    await nodes.start(1)
    await nodes.stop(2)  # so that the bad one is always among those that answer
    given, said = await read_until_refused(nodes)
    assert given == WHOLE
    assert f"{nodes.name(1)} alone lists" in said
    assert await read(nodes, strict=False) == WHOLE + FORGED


async def test_a_copy_that_is_not_finalized_yet_vouches_for_it(tmp_path: Path) -> None:
    """Let the writer die when one node has heard that the segment ends."""
    async with by_hand(tmp_path, (1, 1, 1), closed=(0,)) as nodes:
        await nodes.stop(2)
        before = counted("used"), counted("refused")
        for strict in (True, False):
            assert await read(nodes, strict=strict) == records(1, 50)
        assert (counted("used"), counted("refused")) == before


async def test_a_copy_with_other_bytes_vouches_for_nothing(tmp_path: Path) -> None:
    async with by_hand(tmp_path, (2, 1, 2), closed=(0, 2)) as nodes:
        await nodes.stop(2)
        given, said = await read_until_refused(nodes)
        assert (given, "from transaction 1 on" in said) == (b"", True)
        assert await read(nodes, strict=False) == records(1, 50, writer=2)


async def test_stale_copies_that_agree_do_not_outvote_the_finalized_one(tmp_path: Path) -> None:
    """Let an older writer reach two nodes of five, and a newer one the other three.

    The two, and one of the three, answer.
    """
    async with by_hand(tmp_path, (2, 1, 1, 2, 2), closed=(0, 3, 4)) as nodes:
        await nodes.stop(3, 4)
        assert await read(nodes, strict=False) == records(1, 50, writer=2)
        given, _ = await read_until_refused(nodes)
        assert given == b""


async def test_a_node_that_did_not_answer_at_first_is_asked_for_it(
    nodes: journal_cluster.Nodes,
) -> None:
    await unlist_newest(nodes, 1)
    for _ in range(4):  # whichever two nodes answer first
        assert await read(nodes, strict=True) == WHOLE


async def test_the_only_node_has_nobody_to_ask(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path, 1) as nodes:
        await filled(nodes)
        assert await read(nodes, strict=True) == WHOLE


async def test_who_reads_the_copies_himself_is_told_before_that(
    nodes: journal_cluster.Nodes,
) -> None:
    await unlist_newest(nodes, 1)
    await nodes.stop(2)  # so that the one that lists it is among those that answer
    for strict in (True, False):
        reader = reader_of(nodes, strict=strict)
        try:
            if strict:
                with pytest.raises(QuorumLost, match="alone lists the segment"):
                    await reader.segments(TxId(1))
            else:
                assert [one.segment.last for one in await reader.segments(TxId(1))] == [500, 900]
        finally:
            await reader.close()

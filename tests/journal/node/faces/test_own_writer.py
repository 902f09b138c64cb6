"""Our own writer over Hadoop RPC: it keeps every promise that it gives over gRPC."""

import asyncio
from pathlib import Path

import pytest

from journal.errors import BadRequest, Fenced, NotFormatted, OutOfSync, QuorumLost, Unavailable
from journal.links.hadoop_link import HadoopLink
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import Epoch, JournalId, NodeName, Segment, TxId
from tests.journal.writer import journal_cluster


async def test_a_journal_is_written_and_read(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path, link=HadoopLink) as nodes:
        writer = nodes.writer()
        assert (await writer.become_writer()).last_txid == 0
        await journal_cluster.write_segment(writer, 1, 3)
        await writer.start_segment(TxId(4))
        await asyncio.gather(
            *(
                writer.write(TxId(txid), 1, journal_cluster.edits(txid, txid))
                for txid in range(4, 104)
            )
        )
        await writer.finalize_segment(TxId(103))
        assert writer.committed == 103
        assert await nodes.read_all() == journal_cluster.edits(1, 103)
        await writer.close()


async def test_a_newer_writer_fences_with_its_epoch(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path, link=HadoopLink) as nodes:
        first, second = nodes.writer(), nodes.writer()
        await first.become_writer()
        await first.start_segment(TxId(1))
        await first.write(TxId(1), 3, journal_cluster.edits(1, 3))
        won = await second.become_writer()
        assert (won.epoch, won.last_txid) == (2, 3)
        with pytest.raises(QuorumLost) as lost:
            await first.write(TxId(4), 1, journal_cluster.edits(4, 4))
        assert lost.value.fenced_by == 2
        assert all(isinstance(why, Fenced) for why in lost.value.failures.values())
        nodes.ensure_recovered(1, 3)
        for writer in (first, second):
            await writer.close()


async def test_a_copy_with_other_bytes_is_replaced(tmp_path: Path) -> None:
    """Send the digest over this transport, too."""
    async with journal_cluster.formatted_nodes(tmp_path, link=HadoopLink) as nodes:
        await nodes.stop(1, 2)
        alone = nodes.writer()
        await nodes.start(1)
        await alone.become_writer()
        await alone.start_segment(TxId(1))
        await nodes.stop(1)
        with pytest.raises(QuorumLost, match=r"writing transactions 1-3 needs 2 of 3"):
            await alone.write(TxId(1), 3, journal_cluster.edits(1, 3, "lost"))
        await alone.close()
        await nodes.stop(0)
        await nodes.start(1, 2)
        writer = nodes.writer()
        await writer.become_writer()
        await writer.start_segment(TxId(1))
        await writer.write(TxId(1), 3, journal_cluster.edits(1, 3, "kept"))
        await writer.close()
        await nodes.start(0)
        assert (await nodes.recover())[1] == 3
        assert await nodes.read_all() == journal_cluster.edits(1, 3, "kept")
        await nodes.stop()  # the first may still be fetching, and rename what is listed
        for i in range(3):
            for final in nodes.current(i).glob("edits_[0-9]*-*"):
                assert final.read_bytes()[8:] == journal_cluster.edits(1, 3, "kept")


async def test_refusals_keep_their_kind_and_their_facts(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path, count=1, link=HadoopLink) as nodes:
        ((host, port),) = nodes.addresses
        node = RemoteNode(host, port, JournalAddress(journal_cluster.JOURNAL, "ns1", HadoopLink))
        with pytest.raises(BadRequest):
            await node.format(journal_cluster.NAMESPACE, force=False, timeout_seconds=5)
        await node.new_epoch(journal_cluster.NAMESPACE, Epoch(7), 5)
        with pytest.raises(Fenced) as fenced:
            await node.new_epoch(journal_cluster.NAMESPACE, Epoch(7), 5)
        assert fenced.value.promised == 7
        await node.start_segment(node.request_info(Epoch(7), 0, None), TxId(1), -65, 5)
        ended = Segment(TxId(1), TxId(3), finalized=True, digest=b"d" * 32)
        with pytest.raises(OutOfSync):
            await node.finalize_segment(node.request_info(Epoch(7), 1, None), ended, 5)
        stranger = RemoteNode(host, port, JournalAddress(JournalId("other"), "", HadoopLink))
        with pytest.raises(NotFormatted):
            await stranger.journal_state(5)
        for remote in (node, stranger):
            await remote.close()


async def test_a_node_that_comes_back_is_found_again(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path, link=HadoopLink) as nodes:
        writer = nodes.writer()
        await writer.become_writer()
        await nodes.stop(2)
        await journal_cluster.write_segment(writer, 1, 3)
        (status,) = [one for one in writer.node_statuses() if one.node == nodes.name(2)]
        assert not status.in_sync
        await nodes.start(2)
        await journal_cluster.write_segment(writer, 4, 6)
        await writer.settle(timeout_seconds=30)
        assert (4, 6) in nodes.finalized(2)
        await writer.close()


async def test_a_closed_link_and_a_dead_port_are_silences(tmp_path: Path) -> None:
    async with journal_cluster.formatted_nodes(tmp_path, count=1, link=HadoopLink) as nodes:
        await nodes.stop()
        writer = nodes.writer()
        found = await writer.formatted()
        assert isinstance(found[NodeName(nodes.name(0))], Unavailable)
        await writer.close()
        found = await writer.formatted()
        assert isinstance(found[NodeName(nodes.name(0))], Unavailable)

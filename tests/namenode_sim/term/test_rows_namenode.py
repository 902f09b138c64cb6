"""Rows about a NameNode and its journal, by name, on real JournalNodes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from journal.errors import QuorumLost
from journal.model import TxId
from journal.writer.writer import QuorumWriter
from namenode_sim.term.namenode import TransitionRefused
from namenode_sim.term.role import Role
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, QUICK, Nodes, formatted_nodes
from tests.namenode_sim.term.test_in_progress_tail import NOBODY, edit, namenode, until


@pytest.mark.row("8.7 NNWithQJM.LogAndRestart")
async def test_log_and_restart(tmp_path: Path) -> None:
    """Restart twice: what was acknowledged remains, with edits on the JournalNodes only."""
    async with formatted_nodes(tmp_path) as nodes:
        last = 0
        for _ in range(3):
            async with namenode(nodes, "nn1") as node:
                await until(lambda: node.tailer.trouble is None)
                await node.become_active()
                assert node.namespace.last_applied > last
                last = await edit(node, 2)


@pytest.mark.row("8.7 NNWithQJM.NewNamenodeTakesOverWriter")
async def test_new_namenode_takes_over_writer(tmp_path: Path) -> None:
    async with (
        formatted_nodes(tmp_path) as nodes,
        namenode(nodes, "nn1") as old,
        namenode(nodes, "nn2") as new,
    ):
        await old.become_active()
        last = await edit(old, 3)
        await new.become_active()
        assert new.namespace.last_applied > last
        old.append(NOBODY)
        why = await asyncio.wait_for(asyncio.shield(old.stopped_because), 30)
        assert "needs 2 of 3 JournalNodes" in why
        assert old.state.role is Role.STOPPED
        assert await edit(new) == new.namespace.last_applied


def of_another_namespace(nodes: Nodes) -> QuorumWriter:
    return QuorumWriter(
        nodes.addresses,
        journal_id=JOURNAL,
        nameservice_id="ns1",
        namespace=replace(NAMESPACE, namespace_id=54321),
        settings=QUICK,
    )


@pytest.mark.row("8.7 NNWithQJM.MismatchedNNIsRejected")
async def test_mismatched_nn_is_rejected(tmp_path: Path) -> None:
    """Format a NameNode anew; the journal stays as it is."""
    async with formatted_nodes(tmp_path) as nodes:
        stranger = of_another_namespace(nodes)
        with pytest.raises(QuorumLost, match=r"needs 2 of 3.*Incompatible namespaceID"):
            await stranger.become_writer()
        await stranger.close()
        assert await nodes.recover() == (1, 0)
        writer = nodes.writer()
        await writer.become_writer()
        await writer.start_segment(TxId(1))
        await writer.close()


def damage(nodes: Nodes, first: int) -> dict[Path, bytes]:
    """Flip a bit of a finalized segment on every node; return what was there before."""
    before = {}
    for i in range(3):
        (path,) = nodes.current(i).glob(f"edits_{first:019d}-*")
        before[path] = path.read_bytes()
        data = bytearray(before[path])
        data[len(data) // 2] ^= 0x10
        path.write_bytes(data)
    return before


async def two_segments(nodes: Nodes) -> tuple[int, int]:
    async with namenode(nodes, "nn1") as node:
        await node.become_active()
        first = await edit(node, 3) + 1  # and the mark of its end
        node.roll_edits()
        last = await edit(node, 3)
        # One node may still be behind the majority; the tests damage this segment on all of them.
        await until(lambda: all((1, first) in nodes.finalized(i) for i in range(3)))
        await node.become_standby()
        return first, last + 1


@pytest.mark.row("8.7 FailureToReadEdits", "B10")
async def test_failure_to_read_edits_skips_none(tmp_path: Path) -> None:
    """Edits behind those that cannot be read are not applied; mended, all are."""
    async with formatted_nodes(tmp_path) as nodes:
        end, last = await two_segments(nodes)
        await nodes.stop()
        before = damage(nodes, 1)
        await nodes.start()
        async with namenode(nodes, "nn2", follows=False) as standby:
            await until(lambda: standby.tailer.trouble is not None)
            assert standby.namespace.last_applied < end
            await nodes.stop()
            for path, data in before.items():
                path.write_bytes(data)
            await nodes.start()
            await until(lambda: standby.namespace.last_applied == last)


@pytest.mark.row("8.7 FailureToReadEdits", "B10")
async def test_failure_to_read_edits_aborts_the_transition(tmp_path: Path) -> None:
    async with formatted_nodes(tmp_path) as nodes:
        await two_segments(nodes)
        await nodes.stop()
        damage(nodes, 1)
        await nodes.start()
        async with namenode(nodes, "nn2", period=600) as node:
            with pytest.raises(TransitionRefused):
                await node.become_active()
            assert node.state.role is not Role.ACTIVE

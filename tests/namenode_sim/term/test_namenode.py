"""The owner of the role: real parts around a journal in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from ha.rpc.errors import RemoteFault
from journal.errors import QuorumLost
from journal.model import Epoch
from namenode_sim.edits.ops import Delete
from namenode_sim.edits.values import NO_RPC_IDS
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.term.gate import Gate
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role
from tests.namenode_sim.term.memory_journal import MemoryJournal

NOBODY = Delete("/nobody", 0, NO_RPC_IDS)


async def nobody_else() -> bool:
    return False


def role_of(node: NameNode) -> Role:
    return node.state.role


@asynccontextmanager
async def namenode(journal: MemoryJournal, name: str = "nn1") -> AsyncIterator[NameNode]:
    node = NameNode(
        name=name,
        namespace=Namespace.empty("root"),
        journal=journal.access(),
        gate=Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0),
        tail_period_seconds=0.01,
    )
    node.start()
    try:
        yield node
    finally:
        await node.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def test_the_first_term_starts_at_transaction_one() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node:
        await node.become_active()
        assert node.state.role is Role.ACTIVE
        assert (node.epoch, node.namespace.last_applied, journal.open_first) == (1, 1, 1)


async def test_a_standby_follows_and_takes_over_behind_the_last_edit() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as first, namenode(journal, "nn2") as second:
        await first.become_active()
        first.namespace.apply(first.append(NOBODY), NOBODY)
        await first.become_standby()
        await until(lambda: second.namespace.last_applied == journal.last_txid)
        await second.become_active()
        assert second.namespace.last_applied == 4  # mark, edit, mark, and the new segment's mark
        assert second.epoch == 2


async def test_an_active_whose_segment_is_open_is_superseded_and_stops() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as old, namenode(journal, "nn2") as new:
        await old.become_active()
        await new.become_active()
        old.namespace.apply(txid := old.append(NOBODY), NOBODY)
        answer = asyncio.create_task(old.durable(txid))
        assert "older than 2" in await asyncio.wait_for(asyncio.shield(old.stopped_because), 30)
        assert old.state.role is Role.STOPPED
        # The client must not be told anything: the edit may have reached a node or not.
        assert not answer.done()
        answer.cancel()
        with pytest.raises(RemoteFault, match="older than 2"):
            old.append(NOBODY)


async def test_a_takeover_without_a_quorum_fails_with_the_reason_and_can_be_tried_again() -> None:
    journal = MemoryJournal(refuse_epochs=QuorumLost("2 of 3 are down", failures={}))
    async with namenode(journal) as node:
        with pytest.raises(TransitionRefused, match="2 of 3 are down"):
            await node.become_active()
        assert role_of(node) is Role.STANDBY
        journal.refuse_epochs = None
        await node.become_active()
        assert role_of(node) is Role.ACTIVE


async def test_a_fence_is_answered_while_a_takeover_hangs() -> None:
    journal = MemoryJournal()
    journal.answers.clear()
    async with namenode(journal) as node:
        taking = asyncio.create_task(node.become_active())
        await until(lambda: node.state.role is Role.RECOVERING)
        await asyncio.wait_for(node.become_standby(), 30)
        with pytest.raises(TransitionRefused, match="before it was active"):
            await taking
        assert journal.promised == 0


async def test_a_journal_that_lost_edits_is_refused() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node:
        await node.become_active()
        await node.become_standby()
        journal.finalized.clear()
        journal.promised = Epoch(5)
        with pytest.raises(TransitionRefused, match="lost edits"):
            await node.become_active()


async def test_a_roll_ends_the_segment_and_the_next_term_reads_across_it() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node, namenode(journal, "nn2") as other:
        await node.become_active()
        node.namespace.apply(node.append(NOBODY), NOBODY)
        node.roll_edits()
        await until(lambda: bool(journal.finalized))
        assert journal.open_first == 4
        await other.become_active()
        assert other.namespace.last_applied == 5

"""The owner of the role: real parts around a journal in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from journal.errors import QuorumLost, Unavailable
from journal.model import Epoch
from namenode_sim.edits.ops import Delete
from namenode_sim.edits.values import NO_RPC_IDS
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.term.gate import Gate
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role
from tests.log_lines import captured
from tests.namenode_sim.term.memory_journal import MemoryJournal
from tests.namenode_sim.term.test_tailer import on_virtual_time

NOBODY = Delete("/nobody", 0, NO_RPC_IDS)


async def nobody_else() -> bool:
    return False


def role_of(node: NameNode) -> Role:
    return node.state.role


@asynccontextmanager
async def namenode(
    journal: MemoryJournal, name: str = "nn1", *, tail_period_seconds: float = 0.01
) -> AsyncIterator[NameNode]:
    gate = Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0)
    node = NameNode(
        name=name,
        namespace=Namespace.empty("root"),
        journal=journal.access(),
        gate=gate,
        tail_period_seconds=tail_period_seconds,
    )
    node.start()
    try:
        yield node
    finally:
        await node.stop()
        await gate.close()


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
        # The client must get no answer: the edit may have reached a node or not.
        assert not answer.done()
        answer.cancel()
        with pytest.raises(RemoteFault, match="older than 2"):
            old.append(NOBODY)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("become_writer", "the journal could not be recovered: 2 of 3 are down"),
        ("edits", "edits up to 0 cannot be read: 2 of 3 are down"),
        ("start_segment", "the edit log could not be opened: 2 of 3 are down"),
    ],
)
async def test_a_takeover_without_a_quorum_fails_with_the_reason_and_can_be_tried_again(
    call: str, reason: str
) -> None:
    journal = MemoryJournal(refuses={call: QuorumLost("2 of 3 are down", failures={})})
    async with namenode(journal) as node:
        with pytest.raises(TransitionRefused, match=reason):
            await node.become_active()
        assert (role_of(node), journal.open_first) == (Role.STANDBY, None)
        assert journal.closed == [f"writer {journal.promised}"]
        journal.refuses.clear()
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


async def test_only_an_active_rolls_and_each_step_of_a_term_is_told_in_order() -> None:
    rolled: list[tuple[str, int]] = []
    async with namenode(MemoryJournal()) as node:
        assert node.roll_edits() == 0
        node.listen_for_roles(lambda role: rolled.append((role.name, node.roll_edits())))
        with captured("failover.phase") as logs:
            await node.become_active()
            await node.become_active()  # it is already, and nothing changes
            node.namespace.apply(node.append(NOBODY), NOBODY)
            await node.become_standby()
        phases = [line["phase"] for line in logs]
        assert phases == ["recovering", "recovered", "caught_up", "active", "standby"]
        assert node.namespace.last_applied == 3
    rolls = {"ACTIVE": 1}
    names = ["RECOVERING", "CATCHING_UP", "OPENING", "ACTIVE", "CLOSING", "STANDBY"]
    assert rolled == [(name, rolls.get(name, 0)) for name in names]


async def test_a_standby_takes_no_edit() -> None:
    async with namenode(MemoryJournal()) as node:
        with pytest.raises(RemoteFault, match="nn1 is not active") as fault:
            node.append(NOBODY)
        assert fault.value.java_class == STANDBY_EXCEPTION


async def test_each_term_closes_its_writer_and_the_namenode_its_reader() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node:
        await node.become_active()
        await node.become_standby()
        assert journal.closed == ["writer 1"]
        await node.become_active()
    assert journal.closed == ["writer 1", "writer 2", "reader"]


async def test_an_active_that_cannot_end_its_segment_stops_and_is_no_standby() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node:
        await node.become_active()
        journal.refuses["finalize_segment"] = QuorumLost("2 of 3 are down", failures={})
        with pytest.raises(TransitionRefused, match="not be finalized: 2 of 3 are down"):
            await node.become_standby()
        assert (node.state.role, node.stopped_because.done()) == (Role.STOPPED, True)


async def test_a_takeover_that_was_given_up_ends_no_process() -> None:
    """Ignore what becomes of its first edit, which was under way."""
    journal = MemoryJournal(held=[])
    async with namenode(journal) as node:
        taking = asyncio.create_task(node.become_active())
        await until(lambda: bool(journal.held))
        await node.become_standby()
        with pytest.raises(TransitionRefused, match="before it was active"):
            await taking
        assert (journal.closed, node.stopped_because.done()) == (["writer 1"], False)
        journal.held = None
        await node.become_active()
        assert role_of(node) is Role.ACTIVE


async def test_who_asks_and_does_not_wait_for_the_answer_ends_nothing() -> None:
    journal = MemoryJournal()
    journal.answers.clear()
    async with namenode(journal) as node:
        gone, waiting = (asyncio.create_task(node.become_active()) for _ in range(2))
        await until(lambda: node.state.role is Role.RECOVERING)
        gone.cancel()
        journal.answers.set()
        await asyncio.wait_for(waiting, 30)
        gone = asyncio.create_task(node.become_standby())
        await until(lambda: node.state.role is not Role.ACTIVE)
        gone.cancel()
        await until(lambda: role_of(node) is Role.STANDBY)
        assert not node.stopped_because.done()


@pytest.mark.parametrize("doing", ["following", "taking over", "rolling", "handing over"])
async def test_one_that_is_stopped_leaves_nothing_running(doing: str) -> None:
    journal = MemoryJournal()
    asking = list[asyncio.Task[None]]()
    async with namenode(journal) as node:
        if doing == "taking over":
            journal.answers.clear()
            asking.append(asyncio.create_task(node.become_active()))
            await until(lambda: node.state.role is Role.RECOVERING)
        elif doing != "following":
            await node.become_active()
            journal.answers.clear()
            node.namespace.apply(node.append(NOBODY), NOBODY)
            if doing == "rolling":
                node.roll_edits()
            else:
                asking.append(asyncio.create_task(node.become_standby()))
                await until(lambda: node.state.role is Role.CLOSING)
        for _ in range(10):
            await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task(), *asking}
    for one in asking:
        one.cancel()


def test_who_was_active_until_now_lags_by_nothing() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        async with namenode(journal, tail_period_seconds=60.0) as node:
            await asyncio.sleep(1.0)
            await node.become_active()
            await asyncio.sleep(86400.0)
            journal.refuses["edits"] = Unavailable("no answer")
            await node.become_standby()
            await asyncio.sleep(5.0)
            assert (node.tailer.lag_seconds, node.tailer.trouble) == (5.0, "no answer")
            journal.refuses.clear()
            await node.become_active()
            assert node.tailer.trouble is None

    on_virtual_time(play())

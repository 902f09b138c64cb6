"""When an active answers from what it has seen: only while it is certainly the only one."""

import asyncio
import math
from collections.abc import Callable

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import STANDBY_EXCEPTION
from journal.model import NodeName
from journal.writer.heartbeats import ReadLease
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role
from tests.namenode_sim.term.memory_journal import MemoryJournal, MemoryWriter
from tests.namenode_sim.term.test_namenode import NOBODY, namenode, until
from tests.namenode_sim.term.test_tailer import on_virtual_time

NODES = [NodeName(f"jn{i}:1") for i in range(3)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def active_with_lease(
    node: NameNode, clock: Callable[[], float], seconds: float
) -> ReadLease:
    await node.become_active()
    assert isinstance(node.writer, MemoryWriter)
    lease = ReadLease(NODES, seconds, clock)
    lease.on_superseded = node.writer.read_lease.on_superseded
    node.writer.read_lease = lease
    return lease


async def test_a_stopped_active_answers_nothing_before_a_majority_has_heard_it_again() -> None:
    clock = Clock()
    async with namenode(MemoryJournal()) as node:
        lease = await active_with_lease(node, clock, 60.0)
        assert not node.is_confirmed()
        lease.accepted(NODES[:2], clock.now)
        assert node.is_confirmed()
        await node.confirmed(node.namespace.last_applied)
        clock.now += 60.0  # SIGSTOP, the successor takes over and writes, SIGCONT
        answering = asyncio.create_task(node.confirmed(node.namespace.last_applied))
        await asyncio.sleep(0.01)
        assert not answering.done()
        lease.accepted(NODES[:1], clock.now)
        await asyncio.sleep(0.01)
        assert not answering.done()
        lease.accepted(NODES[1:2], clock.now)
        await asyncio.wait_for(answering, 30)


async def test_what_an_answer_has_seen_is_durable_before_it_is_given() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node:
        await node.become_active()
        journal.held = []
        txid = node.append(NOBODY)
        answering = asyncio.create_task(node.confirmed(txid))
        await until(lambda: bool(journal.held))
        assert node.is_confirmed()
        assert not answering.done()
        journal.held.pop()(None)
        await asyncio.wait_for(answering, 30)


def test_without_a_renewal_clients_are_sent_elsewhere_after_two_leases() -> None:
    async def play() -> None:
        time = asyncio.get_running_loop().time
        async with namenode(MemoryJournal()) as node:
            await active_with_lease(node, time, 10.0)
            began = time()
            with pytest.raises(RemoteFault) as fault:
                await node.confirmed(node.namespace.last_applied)
            assert (fault.value.java_class, time() - began) == (STANDBY_EXCEPTION, 20.0)

    on_virtual_time(play())


async def test_an_idle_active_that_a_majority_refuses_ends() -> None:
    async with namenode(MemoryJournal()) as node:
        lease = await active_with_lease(node, Clock(), 60.0)
        lease.refused(NODES[0], "epoch 2 was promised")
        assert not node.stopped_because.done()
        lease.refused(NODES[1], "epoch 2 was promised")
        await until(node.stopped_because.done)
        assert node.state.role is Role.STOPPED


async def test_a_demoted_namenode_does_not_answer_what_it_began_as_active() -> None:
    async with namenode(MemoryJournal()) as node:
        await node.become_active()
        await node.confirmed(node.namespace.last_applied)
        await node.become_standby()
        assert not node.is_confirmed()
        with pytest.raises(RemoteFault):
            await node.confirmed(node.namespace.last_applied)


async def test_whether_the_former_active_is_gone_reaches_the_journal() -> None:
    journal = MemoryJournal()
    async with namenode(journal) as node:
        await node.become_active()
        await node.become_standby()
        await node.become_active(predecessor_gone_until=math.inf)
    assert journal.told_gone == [False, True]

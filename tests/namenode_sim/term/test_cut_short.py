"""A hand-over between two NameNodes with a fault at each await: no writer and no task is left."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ha.rpc.errors import RemoteFault
from journal.errors import JournalError, QuorumLost
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.term.gate import Gate
from namenode_sim.term.journal_access import JournalAccess
from namenode_sim.term.namenode import NameNode, TransitionRefused
from tests import awaits
from tests.awaits import Cuts, Fault
from tests.namenode_sim.term.memory_journal import MemoryJournal, MemoryReader, MemoryWriter
from tests.namenode_sim.term.test_namenode import NOBODY, nobody_else


class Pair:
    """Two NameNodes on one journal, which counts what it gives them."""

    def __init__(self) -> None:
        self.journal, self.given = MemoryJournal(), 0
        self.over = asyncio.Event()
        self.gates = [Gate(any_peer_active=nobody_else, park_timeout_seconds=1.0) for _ in "12"]
        self.nodes = [
            NameNode(
                name=f"nn{number}",
                namespace=Namespace.empty("root"),
                journal=JournalAccess(self._writer, MemoryReader(self.journal)),
                gate=gate,
                tail_period_seconds=0.001,
            )
            for number, gate in enumerate(self.gates, 1)
        ]

    def _writer(self) -> MemoryWriter:
        self.given += 1
        return MemoryWriter(self.journal)

    async def done(self, node: NameNode, work: Coroutine[Any, Any, object]) -> None:
        """Wait for a transition as its caller does, who is gone when the process ends."""
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(work),
            asyncio.create_task(self.over.wait()),
        ]
        try:
            ends: list[asyncio.Future[Any]] = [*tasks, node.stopped_because]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise TransitionRefused("the process ends")
            tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def life(self) -> None:
        first, second = self.nodes
        try:
            for node in self.nodes:
                node.start()
            await self.done(first, first.become_active())
            first.namespace.apply(txid := first.append(NOBODY), NOBODY)
            first.roll_edits()
            await self.done(first, first.durable(txid))
            async with first.unchanged():
                pass
            first.namespace.apply(first.append(NOBODY), NOBODY)
            await self.done(first, first.become_standby())
            assert first.writer is None
            await self.done(second, second.become_active())
            assert second.epoch == 2
        finally:
            await self.stop()

    async def stop(self) -> None:
        self.over.set()
        for node in self.nodes:
            await node.stop()
        for gate in self.gates:
            await gate.close()


@pytest.mark.parametrize("fault", [Fault.CANCEL, Fault.FAIL, Fault.STOP])
async def test_a_hand_over_that_is_cut_short_leaves_no_writer(fault: Fault) -> None:
    pair = Pair()

    async def life() -> None:
        nonlocal pair
        pair = Pair()
        await pair.life()

    async def after(number: int) -> None:
        await pair.stop()
        closed = [one for one in pair.journal.closed if one.startswith("writer")]
        assert len(closed) == pair.given, number

    cuts = Cuts(
        life,
        fault,
        failure=lambda: QuorumLost("2 of 3 are down", failures={}),
        stop=lambda: pair.stop(),
        typed=(JournalError, TransitionRefused, RemoteFault),
    )
    assert await awaits.cut_at_each_await(cuts, after) > 10

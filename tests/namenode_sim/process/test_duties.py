"""What ends a NameNode that hangs: a duty that has not moved, and no failure that is reported."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from journal.errors import JournalError
from journal.model import TxId
from journal.reader.reader import Chunk
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.tree import new_root
from namenode_sim.term.tailer import Tailer


@dataclass
class Journal:
    """One whose answer waits for the test, and then is nothing, or a failure."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False
    nothing: tuple[Chunk, ...] = ()

    async def edits(self, first: TxId, *, through: TxId | None = None) -> AsyncGenerator[Chunk]:
        async for chunk in self.durable_edits(first):
            yield chunk

    async def durable_edits(self, first: TxId) -> AsyncGenerator[Chunk]:
        self.asked.set()
        await self.answer.wait()
        if self.fails:
            raise JournalError("nobody answers")
        for chunk in self.nothing:
            yield chunk


def follower(journal: Journal) -> Tailer:
    namespace = Namespace(new_root("hdfs", "super"))
    return Tailer(journal, namespace, period_seconds=3600, on_damage=lambda _: None)


async def silent(tailer: Tailer) -> None:
    while not tailer.silent_seconds:
        await asyncio.sleep(0)


async def test_a_round_that_waits_for_the_journal_is_silent_and_one_that_failed_is_over() -> None:
    for fails in (False, True):
        journal = Journal(fails=fails)
        tailer = follower(journal)
        assert tailer.silent_seconds == 0
        tailer.start()
        async with asyncio.timeout(30):
            await journal.asked.wait()
            await silent(tailer)
            journal.answer.set()
            while tailer.silent_seconds:
                await asyncio.sleep(0)
        await tailer.stop()


async def test_to_wait_for_a_checkpoint_is_no_silence() -> None:
    journal = Journal()
    tailer = follower(journal)
    async with tailer.still:
        tailer.start()
        for _ in range(100):
            await asyncio.sleep(0)
        assert not journal.asked.is_set()
        assert tailer.silent_seconds == 0
    async with asyncio.timeout(30):
        await silent(tailer)
    await tailer.stop()

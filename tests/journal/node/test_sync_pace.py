"""When the next round of background sync begins, on virtual time."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from journal.model import NO_TXID, Epoch, JournalId, TxId
from journal.node.owner.owner import JournalOwner
from journal.node.peers import Own
from journal.node.repair.sync import JournalSync
from journal.node.settings import NodeSettings
from journal.storage.disk import Disk
from tests.journal.core.requests_of import MemoryFiles
from tests.namenode_sim.term.test_tailer import on_virtual_time

SETTINGS = NodeSettings(
    folder=Path("/journal"), sync_interval_seconds=16, sync_quick_seconds=1, admission_seconds=4
)
HOLE: dict[str, Any] = {"claimed": TxId(9)}
WHOLE: dict[str, Any] = {"claimed": NO_TXID}
LEARNER: dict[str, Any] = {"learner": True}
HEARD: dict[str, Any] = {"learner": True, "start_heard": Epoch(3)}

#   what the journal becomes, and when; how much each of the first rounds brings; when they begin
PACES: dict[str, tuple[dict[float, dict[str, Any]], Sequence[int], Sequence[float]]] = {
    "nothing is missing": ({}, (), (0, 16, 32, 48)),
    "something came": ({}, (2, 1), (0, 1, 2, 18, 34)),
    "a gap that no peer fills": ({0: HOLE}, (), (0, 1, 3, 7, 15, 31, 47)),
    "a gap that is filled bit by bit": ({0: HOLE}, (0, 0, 1), (0, 1, 3, 4, 6, 10, 18, 34)),
    "a gap that opens": ({5.5: HOLE}, (), (0, 6, 7, 9, 13, 21, 37)),
    "a gap that closes, and another": (
        {0: HOLE, 8: WHOLE, 20: HOLE}, (), (0, 1, 3, 7, 15, 20, 21, 23, 27, 35)
    ),
    "a learner without a writer": ({0: LEARNER}, (), (0, 1, 3, 7, 15, 31, 47)),
    "a learner that has heard a writer": ({0: HEARD}, (), (0, 1, 3, *range(7, 50, 4))),
    "a learner that hears a writer": (
        {0: LEARNER, 20.5: HEARD}, (), (0, 1, 3, 7, 15, *range(21, 49, 4))
    ),
}  # fmt: skip


@pytest.mark.parametrize(("becomes", "brings", "begins"), PACES.values(), ids=list(PACES))
def test_the_next_round_comes_soon_while_it_may_bring_something(
    monkeypatch: pytest.MonkeyPatch,
    becomes: dict[float, dict[str, Any]],
    brings: Sequence[int],
    begins: Sequence[float],
) -> None:
    begun, brought = list[float](), list(brings)

    async def round_(_: JournalSync) -> int:
        begun.append(asyncio.get_running_loop().time())
        return brought.pop(0) if brought else 0

    monkeypatch.setattr(JournalSync, "round", round_)

    async def play() -> None:
        disk, loop = Disk(Path("/journal"), MemoryFiles()), asyncio.get_running_loop()
        owner = JournalOwner(JournalId("paced"), disk, disk.load())

        def become(change: dict[str, Any]) -> None:
            owner.state = replace(owner.state, **change)

        for at, change in becomes.items():
            loop.call_at(at, become, change)
        await asyncio.sleep(0)
        syncing = asyncio.create_task(JournalSync(owner, (), Own("nn", 1), SETTINGS).run())
        await asyncio.sleep(49)
        owner.fail("the test is over")
        await syncing
        await owner.stop()

    on_virtual_time(play())
    assert begun == list(begins)

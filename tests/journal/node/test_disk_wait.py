"""When the event loop waits for the disk, and when it has learnt not to."""

import asyncio
import errno
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from journal.core.effects import Effect
from journal.core.requests import Format
from journal.errors import StorageFailed
from journal.model import JournalId
from journal.node.owner import owner as owner_module
from journal.node.owner.disk_wait import QUICK_IN_A_ROW, WAIT_SECONDS, Patience
from journal.node.owner.owner import JournalOwner
from journal.storage.disk import Disk
from tests.journal.core.requests_of import LIFE, NAMESPACE, MemoryFiles, Writer
from tests.journal.node.process import DEADLINE_SECONDS
from tests.log_lines import captured


def patient() -> Patience:
    patience = Patience()
    for _ in range(QUICK_IN_A_ROW):
        assert not patience.worth_it
        patience.took(WAIT_SECONDS / 10)
    assert patience.worth_it
    return patience


def test_one_slow_sync_takes_the_patience_away() -> None:
    patience = patient()
    patience.took(WAIT_SECONDS * 2)
    assert not patience.worth_it


def test_work_that_hangs_is_left_to_its_thread() -> None:
    patience, hangs = patient(), threading.Event()

    def hang() -> None:
        hangs.wait()

    with ThreadPoolExecutor(1) as thread:
        began = time.perf_counter()
        started = patience.run(thread, hang)
        assert time.perf_counter() - began >= WAIT_SECONDS
        assert not started.done()
        assert not patience.worth_it
        hangs.set()
        assert started.result() is None


def test_work_that_fails_is_done() -> None:
    def fail() -> None:
        raise OSError("no space left")

    with ThreadPoolExecutor(1) as thread:
        assert isinstance(patient().run(thread, fail).exception(), OSError)


@pytest.mark.parametrize("slow", [False, True], ids=["waited for", "left to its thread"])
async def test_a_journal_that_cannot_say_what_it_wrote_stops(
    slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it remembers is behind its disk then: a batch would be written a second time."""
    disk = Disk(Path("/journal"), MemoryFiles())
    owner = JournalOwner(JournalId("full"), disk, disk.load())
    writer = Writer(1)
    for request in (Format(NAMESPACE, incarnation=LIFE), writer.new_epoch(), writer.start(1)):
        await owner.ask(request)
    for txid in range(1, 2 * QUICK_IN_A_ROW):
        await owner.ask(writer.batch(1, txid, txid))
    run, goes_on = disk.run, threading.Event()

    def run_slowly(effects: Sequence[Effect]) -> None:
        goes_on.wait(DEADLINE_SECONDS)
        run(effects)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if slow:
        monkeypatch.setattr(disk, "run", run_slowly)
    monkeypatch.setattr(owner_module, "narrate", fail)
    txid = 2 * QUICK_IN_A_ROW
    asked = asyncio.create_task(owner.ask(writer.batch(1, txid, txid)))
    await asyncio.sleep(0)
    goes_on.set()
    for answer in (asked, owner.ask(writer.batch(1, txid + 1, txid + 1))):
        with pytest.raises(StorageFailed, match="No space left on device"):
            await asyncio.wait_for(answer, DEADLINE_SECONDS)
    monkeypatch.undo()
    await owner.stop()
    assert not owner.turn.taken


async def test_a_slow_sync_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(Path("/journal"), MemoryFiles())
    owner = JournalOwner(JournalId("slow"), disk, disk.load())
    writer = Writer(1)
    for request in (Format(NAMESPACE, incarnation=LIFE), writer.new_epoch(), writer.start(1)):
        await owner.ask(request)
    with captured("journal.slow_sync") as lines:
        await owner.ask(writer.batch(1, 1, 1))
        monkeypatch.setattr(owner_module, "SLOW_SYNC_SECONDS", 0.0)
        await owner.ask(writer.batch(1, 2, 2))
        await owner.stop()
    assert [(line["journal"], line["log_level"]) for line in lines] == [("slow", "warning")]

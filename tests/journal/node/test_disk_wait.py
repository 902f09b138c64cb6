"""When the event loop waits for the disk, and when it has learnt not to."""

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from journal.core.effects import Effect
from journal.core.requests import Format, Heartbeat, Request
from journal.errors import StorageFailed
from journal.model import JournalId
from journal.node.owner import disk_wait
from journal.node.owner import owner as owner_module
from journal.node.owner.disk_wait import QUICK_IN_A_ROW, WAIT_SECONDS, Patience
from journal.node.owner.owner import JournalOwner
from journal.storage.disk import Disk
from tests.journal.core.requests_of import LIFE, NAMESPACE, MemoryFiles, Writer
from tests.journal.node.process import DEADLINE_SECONDS, until
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


async def writing_owner(name: str, patience: Patience | None = None) -> tuple[JournalOwner, Writer]:
    """Return an owner on a disk in memory, and its writer, which has begun a segment."""
    disk = Disk(Path("/journal"), MemoryFiles())
    owner, writer = JournalOwner(JournalId(name), disk, disk.load(), patience=patience), Writer(1)
    for request in (Format(NAMESPACE, incarnation=LIFE), writer.new_epoch(), writer.start(1)):
        await owner.ask(request)
    return owner, writer


#   a request; whether the one that sends it has its answer at once
AT_ONCE = {
    "a batch": (lambda writer: writer.batch(1, 1, 1), True),
    "a heartbeat": (lambda writer: Heartbeat(writer.stamp()), True),
    "a heartbeat with a new committed txid": (
        lambda writer: Heartbeat(replace(writer.stamp(), committed=0)), True
    ),
    "what is refused": (lambda writer: writer.batch(1, 7, 7), True),
    "more than edits": (
        lambda writer: Heartbeat(replace(writer.stamp(), read_lease_micros=5)), False
    ),
    "no batch": (lambda writer: writer.finalize(1, 0), False),
}  # fmt: skip


@pytest.fixture
def any_disk_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every sync for a quick one, however busy the machine is."""
    monkeypatch.setattr(disk_wait, "WAIT_SECONDS", DEADLINE_SECONDS)


@pytest.mark.usefixtures("any_disk_is_quick")
@pytest.mark.parametrize(("make", "at_once"), AT_ONCE.values(), ids=list(AT_ONCE))
async def test_edits_alone_are_served_at_once(
    make: Callable[[Writer], Request], at_once: bool
) -> None:
    owner, writer = await writing_owner("at-once", patient())
    answer = owner.submit(make(writer))
    assert answer.done() is at_once
    assert not owner.turn.taken
    assert owner.waiting == (not at_once)
    await asyncio.gather(answer, return_exceptions=True)
    assert (owner.heard or writer.stamp()).serial == writer.serial
    await owner.stop()


@pytest.mark.usefixtures("any_disk_is_quick")
@pytest.mark.parametrize("what", ["an impatient loop", "a turn that is taken", "others that wait"])
async def test_what_is_not_served_at_once_is_served_in_its_turn(what: str) -> None:
    owner, writer = await writing_owner(
        "in-turn", None if what == "an impatient loop" else patient()
    )
    first, second = writer.batch(1, 1, 1), writer.batch(1, 2, 2)
    if what == "others that wait":
        before = owner.submit(replace(first, stamp=replace(first.stamp, read_lease_micros=5)))
        answers = [before, owner.submit(second)]
    else:
        if what == "a turn that is taken":
            assert owner.turn.try_now()
        answers = [owner.submit(first), owner.submit(second)]
    assert not any(answer.done() for answer in answers)
    assert owner.waiting == 2
    if what == "a turn that is taken":
        owner.turn.give_back()
    await asyncio.gather(*answers)
    assert owner.state.last_written == 2
    await until(lambda: not owner.turn.taken, "the turn is free again")
    await owner.stop()


@pytest.mark.parametrize("slow", [False, True], ids=["waited for", "left to its thread"])
async def test_a_journal_that_cannot_say_what_it_wrote_stops(
    slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it remembers is behind its disk then: a batch would be written a second time."""
    owner, writer = await writing_owner("full")
    disk = owner.disk
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
    owner, writer = await writing_owner("slow")
    with captured("journal.slow_sync") as lines:
        await owner.ask(writer.batch(1, 1, 1))
        monkeypatch.setattr(owner_module, "SLOW_SYNC_SECONDS", 0.0)
        await owner.ask(writer.batch(1, 2, 2))
        await owner.stop()
    assert [(line["journal"], line["log_level"]) for line in lines] == [("slow", "warning")]

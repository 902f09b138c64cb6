"""Every request late, twice, out of order, or from a caller that has gone."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from journal.core import requests as core_requests
from journal.core.state import JournalState
from journal.errors import JournalError
from journal.model import LAYOUT_VERSION, JournalId, TxId
from journal.node.owner.owner import JournalOwner
from journal.storage.disk import Disk
from tests.journal.core.requests_of import LIFE, NAMESPACE, LocalJournal, Writer, segment

UPGRADED = replace(NAMESPACE, ctime=77)


def requests() -> Iterator[core_requests.Request]:
    """Yield one journal's life, with every request of a writer in it."""
    one, two, three, four = (Writer(epoch) for epoch in (1, 2, 3, 4))
    yield core_requests.Format(NAMESPACE, incarnation=LIFE)
    yield one.new_epoch()
    yield one.start(1)
    yield one.batch(1, 1, 3)
    yield core_requests.Heartbeat(one.stamp())
    yield core_requests.ResumeSegment(one.stamp(), TxId(1), LAYOUT_VERSION)
    one.committed = 3
    yield one.batch(1, 4, 5)
    yield core_requests.CatchUp(one.stamp(), segment(1, 5), LAYOUT_VERSION)
    yield one.batch(1, 6, 6)
    yield two.new_epoch()
    yield core_requests.PrepareRecovery(two.stamp(), TxId(1))
    yield core_requests.AcceptRecovery(two.stamp(), segment(1, 6))
    yield two.finalize(1, 6, 1)
    two.committed = 6
    yield two.start(7)
    yield two.batch(7, 7, 9)
    yield two.finalize(7, 9)
    two.committed = 9
    yield core_requests.PurgeLogs(two.stamp(), TxId(7))
    yield core_requests.PreUpgrade(two.stamp())
    yield core_requests.Upgrade(two.stamp(), UPGRADED)
    yield core_requests.RollBack(two.stamp())
    yield three.new_epoch()
    yield three.start(10)
    yield three.batch(10, 10, 12)
    yield three.finalize(10, 12)
    yield core_requests.DiscardSegments(three.stamp(), TxId(10))
    yield core_requests.PreUpgrade(three.stamp())
    yield core_requests.Upgrade(three.stamp(), UPGRADED)
    yield core_requests.FinalizeUpgrade(three.stamp())
    yield four.new_epoch()


ALL = list(requests())


@pytest.fixture
def roots() -> Iterator[Iterator[Path]]:
    """Folders, one after the other, in memory: nothing here is about what a sync does."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield (Path(folder) / str(i) for i in count())


def told(journal: LocalJournal, request: core_requests.Request) -> JournalError | None:
    try:
        journal.ask(request)
    except JournalError as refusal:
        return refusal
    return None


def remembered(state: JournalState) -> tuple[object, ...]:
    """Everything that a later answer depends on, the serial apart."""
    held = [(of.first, of.last, of.finalized, of.writer) for of in state.segments.values()]
    opened = None if state.open is None else state.open.as_segment()
    end = None if opened is None else (opened.first, opened.last, opened.writer)
    return (state.namespace, state.promised, state.writer, state.committed, held, end,
            dict(state.decisions), state.learner, state.previous)  # fmt: skip


def test_the_life_goes_well_and_asks_for_everything(tmp_path: Path) -> None:
    journal = LocalJournal(tmp_path)
    for request in ALL:
        assert told(journal, request) is None, request
    assert len({type(request) for request in ALL}) == 16


@pytest.mark.row("X15")
@pytest.mark.parametrize("at", range(1, len(ALL) + 1))
def test_x15_what_is_delivered_again_has_no_second_effect(at: int, roots: Iterator[Path]) -> None:
    """After each request all that went before arrives once more, in either order."""
    for again in (ALL[:at], ALL[at - 1 :: -1]):
        root = next(roots)
        journal = LocalJournal(root)
        for request in ALL[:at]:
            assert told(journal, request) is None
        before = remembered(journal.state)
        for request in again:
            told(journal, request)
            assert remembered(journal.state) == before, f"{request} once more"
        journal.close()
        assert remembered(LocalJournal(root).state)[:4] == before[:4]


@pytest.mark.row("X15")
@pytest.mark.parametrize("late", range(1, len(ALL)))
def test_x15_what_arrives_out_of_order_changes_nothing_that_was_answered(
    late: int, roots: Iterator[Path]
) -> None:
    """Let one request be overtaken by the next ones; whatever is answered, no promise is lost."""
    for by in (1, 2, 5):
        journal = LocalJournal(next(roots))
        order = [*ALL[:late], *ALL[late + 1 : late + 1 + by], ALL[late], *ALL[late + 1 + by :]]
        promised = 0
        finalized: dict[TxId, TxId] = {}
        for request in order:
            told(journal, request)
            state = journal.state
            assert state.promised >= promised, f"{request} took a promise back"
            promised = state.promised
            for first, of in state.segments.items():
                if of.finalized:
                    assert finalized.setdefault(first, of.last) == of.last, request


@pytest.mark.row("X16")
@pytest.mark.parametrize("at", range(len(ALL)))
async def test_x16_a_cancelled_request_is_carried_out_whole_or_not_at_all(
    at: int, roots: Iterator[Path]
) -> None:
    """Cancel it after each turn of the loop at which it waits, until it waits no more."""
    expected = LocalJournal(next(roots))
    states = [remembered(expected.state)]
    for request in ALL[: at + 1]:
        expected.ask(request)
        states.append(remembered(expected.state))
    for turns in (*range(40), 60, 100, 200, 500, 2000, 10_000, 100_000):
        root = next(roots)
        root.mkdir()
        disk = Disk(root)
        owner = JournalOwner(JournalId("x16"), disk, disk.load())
        for request in ALL[:at]:
            await owner.ask(request)
        call = asyncio.ensure_future(owner.ask(ALL[at]))
        for _ in range(turns):
            await asyncio.sleep(0)
        finished = call.done()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await owner.stop()
        assert owner.failed_because is None
        assert remembered(owner.state) in (states[at], states[at + 1])
        assert LocalJournal(root).state.promised == owner.state.promised
        if finished:
            return
    pytest.fail(f"{ALL[at]} never ended")

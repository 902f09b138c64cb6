"""Group commit: what is durable, in which order, and what a refused write does."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from journal.errors import Fenced, JournalError, QuorumLost
from journal.frame import scan
from journal.model import Epoch, TxId
from journal.writer.window import Ended
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.ops import SetReplication
from namenode_sim.term.edit_log import MAX_BATCH_BYTES, EditLog, LogFailed

EDIT = SetReplication("/a/file", 3)


@dataclass
class MemoryWriter:
    """A journal in memory that can be held, broken and read back."""

    records: list[tuple[TxId, int, bytes]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    held: bool = False
    finalizing: asyncio.Event | None = None
    """What a segment's end waits for."""
    refusal: JournalError | None = None
    finalizes: bool = True
    _under_way: Callable[[], None] | None = None

    async def start_segment(self, first: TxId) -> None:
        self.calls.append(f"start {first}")

    def begin(self, first: TxId, count: int, records: bytes, ended: Ended) -> None:
        assert self._under_way is None, "one batch at a time"

        def arrive() -> None:
            self._under_way = None
            if self.refusal is None:
                self.calls.append(f"write {first}+{count}")
                self.records.append((first, count, records))
            ended(self.refusal)

        self._under_way = arrive
        if not self.held:
            asyncio.get_running_loop().call_soon(arrive)

    def let_go(self) -> None:
        """Let the batch that was held arrive, and the later ones as they come."""
        self.held = False
        if self._under_way is not None:
            self._under_way()

    async def finalize_segment(self, last: TxId) -> None:
        if not self.finalizes:
            raise QuorumLost("not finalized", failures={})
        self.calls.append(f"finalize {last}")
        if self.finalizing is not None:
            await self.finalizing.wait()


async def turns() -> None:
    """Let everything run that can; nothing here takes longer."""
    for _ in range(10):
        await asyncio.sleep(0)


async def opened(writer: MemoryWriter, first: int = 1) -> tuple[EditLog, list[str]]:
    failures: list[str] = []
    log = EditLog(writer, on_failure=failures.append)
    await log.open(TxId(first))
    return log, failures


async def test_an_edit_is_durable_only_after_the_quorum_has_it() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    writer.held = True
    txid = log.append(EDIT)
    waiting = asyncio.create_task(log.durable(txid))
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    assert log.committed_txid == 1
    writer.let_go()
    await asyncio.wait_for(waiting, 30)
    assert log.committed_txid == txid == 2
    await log.abort()


async def test_edits_that_arrive_during_a_write_share_the_next_one() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    writer.held = True
    first = asyncio.create_task(log.durable(log.append(EDIT)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    rest = [asyncio.create_task(log.durable(log.append(EDIT))) for _ in range(50)]
    await turns()
    writer.let_go()
    await asyncio.wait_for(asyncio.gather(first, *rest), 30)
    assert len([call for call in writer.calls if call.startswith("write")]) <= 4
    await log.abort()


async def test_the_batches_together_are_one_run_of_frames_without_a_gap() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer, first=100)
    for _ in range(20):
        await log.durable(log.append(EDIT))
    whole = scan(b"".join(records for _, _, records in writer.records), expected=TxId(100))
    assert (whole.first, whole.last, whole.damage) == (100, 120, None)
    await log.abort()


async def test_a_roll_ends_the_segment_exactly_at_its_mark() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    log.append(EDIT)
    end, mark = log.roll()
    assert (end, mark) == (3, 4)
    await log.durable(log.append(EDIT))
    assert "finalize 3" in writer.calls
    after = writer.calls[writer.calls.index("finalize 3") :]
    assert after[:2] == ["finalize 3", "start 4"]
    assert after[2].startswith("write 4+")
    assert log.edits_in_segment == 2
    await log.abort()


async def test_a_refused_write_fails_every_waiter_and_every_later_edit() -> None:
    writer = MemoryWriter()
    log, failures = await opened(writer)
    writer.held = True
    waiters = [asyncio.create_task(log.durable(log.append(EDIT))) for _ in range(3)]
    await asyncio.sleep(0)
    writer.refusal = Fenced("epoch 1 is older than 2", promised=Epoch(2))
    writer.let_go()
    results = await asyncio.wait_for(asyncio.gather(*waiters, return_exceptions=True), 30)
    assert all(isinstance(result, LogFailed) for result in results)
    assert failures == ["epoch 1 is older than 2"]
    with pytest.raises(LogFailed, match="older than 2"):
        log.append(EDIT)
    await log.abort()


async def test_close_writes_what_is_buffered_and_finalizes() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    log.append(EDIT)
    assert await log.close() == 3
    assert writer.calls[-1] == "finalize 3"
    with pytest.raises(LogFailed, match="closed"):
        log.append(EDIT)


async def test_abort_leaves_no_caller_waiting() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    writer.held = True
    waiting = asyncio.create_task(log.durable(log.append(EDIT)))
    await asyncio.sleep(0)
    await log.abort()
    with pytest.raises(LogFailed, match="before the edit was durable"):
        await asyncio.wait_for(waiting, 30)


async def test_what_is_buffered_when_the_log_is_aborted_is_not_written() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    log.append(EDIT)
    await log.abort()
    await turns()
    assert writer.calls == ["start 1", "write 1+1"]


async def test_a_batch_needs_no_task_and_no_future() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    loop, made = asyncio.get_running_loop(), list[object]()
    all_written = loop.create_future()

    def write_next() -> None:
        if log.last_txid < 50:
            log.when_durable(log.append(EDIT), write_next, made.append)
        else:
            all_written.set_result(None)

    def note(loop: asyncio.AbstractEventLoop, work: Any, **how: Any) -> Any:  # noqa: ANN401
        made.append(work)
        return asyncio.Task(work, loop=loop, **how)

    loop.set_task_factory(note)
    write_next()
    await all_written
    loop.set_task_factory(None)
    assert made == []
    assert len(writer.records) == 50
    await log.abort()


async def test_edits_of_callers_that_a_batch_wakes_share_the_next_one() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    writer.held = True
    told: list[int] = []
    reasons: list[str] = []
    all_told = asyncio.Event()

    def tell() -> None:
        told.append(log.committed_txid)
        if len(told) == 6:
            all_told.set()

    def again() -> None:
        log.when_durable(log.append(EDIT), tell, reasons.append)

    log.when_durable(log.append(EDIT), again, reasons.append)
    await asyncio.sleep(0)
    for _ in range(5):
        log.when_durable(log.append(EDIT), again, reasons.append)
    writer.let_go()
    await all_told.wait()
    # The mark, the first, the five with that which the first has brought, and what those brought.
    assert [count for _, count, _ in writer.records] == [1, 1, 6, 5]
    assert told == [8, 13, 13, 13, 13, 13]
    await log.abort()


async def test_an_error_that_nobody_foresaw_ends_the_log_with_its_reason() -> None:
    log, failures = await opened(MemoryWriter())

    def bug() -> None:
        raise KeyError(17)

    reasons: list[str] = []
    log.when_durable(log.append(EDIT), bug, reasons.append)
    log.when_durable(log.append(EDIT), lambda: None, reasons.append)
    with pytest.raises(LogFailed, match="edit-log failed unexpectedly: KeyError: 17"):
        await log.durable(log.append(EDIT))
    assert failures == reasons == ["edit-log failed unexpectedly: KeyError: 17"]
    await log.abort()


@pytest.mark.parametrize("refusal", [None, Fenced("too old", promised=Epoch(2))])
async def test_a_batch_that_ends_behind_the_logs_end_changes_nothing(
    refusal: JournalError | None,
) -> None:
    writer = MemoryWriter()
    log, failures = await opened(writer)
    writer.held = True
    told: list[str] = []
    log.when_durable(log.append(EDIT), lambda: told.append("done"), told.append)
    await asyncio.sleep(0)
    log.append(EDIT)
    await log.abort()
    writer.refusal = refusal
    writer.let_go()
    await asyncio.sleep(0)
    assert told == ["the edit log was closed before the edit was durable"]
    assert (failures, log.committed_txid, writer.calls[-1]) == (
        [],
        1,
        "write 2+1" if refusal is None else "write 1+1",
    )


async def test_a_roll_that_fails_ends_the_log_and_nothing_more_is_written() -> None:
    writer = MemoryWriter(finalizes=False)
    log, failures = await opened(writer)
    end, mark = log.roll()
    await log.durable(end)
    with pytest.raises(LogFailed, match="not finalized"):
        await log.durable(mark)
    assert failures == ["not finalized"]
    assert writer.calls == ["start 1", "write 1+1", "write 2+1"]
    await log.abort()


async def test_a_batch_without_an_end_is_silence_and_an_idle_log_is_none() -> None:
    writer = MemoryWriter()
    edit_log, _ = await opened(writer)
    assert edit_log.silent_seconds == 0
    writer.held = True
    edit_log.append(EDIT)
    while not edit_log.silent_seconds:
        await asyncio.sleep(0)
    writer.let_go()
    assert edit_log.silent_seconds == 0


async def test_nothing_is_written_between_the_end_of_a_segment_and_the_start_of_the_next() -> None:
    writer = MemoryWriter(finalizing=asyncio.Event())
    log, failures = await opened(writer)
    log.roll()
    log.append(EDIT)
    log.roll()
    await turns()
    log.append(EDIT)
    await turns()
    assert writer.calls == ["start 1", "write 1+1", "write 2+1", "finalize 2"]
    assert log.silent_seconds > 0
    assert writer.finalizing is not None
    writer.finalizing.set()
    await log.durable(log.last_txid)
    assert writer.calls[4:] == ["start 3", "write 3+3", "finalize 5", "start 6", "write 6+2"]
    assert (failures, log.segment_first, log.silent_seconds) == ([], 6, 0)
    await log.abort()


async def test_a_log_that_is_aborted_while_a_segment_ends_begins_no_other() -> None:
    writer = MemoryWriter(finalizing=asyncio.Event())
    log, failures = await opened(writer)
    _, mark = log.roll()
    waiting = asyncio.create_task(log.durable(mark))
    await turns()
    await log.abort()
    assert writer.finalizing is not None
    writer.finalizing.set()
    with pytest.raises(LogFailed, match="before the edit was durable"):
        await waiting
    assert (writer.calls[-1], failures) == ("finalize 2", [])


async def test_a_close_that_the_journal_refuses_says_so() -> None:
    log, failures = await opened(MemoryWriter(finalizes=False))
    with pytest.raises(LogFailed, match="the last segment could not be finalized: not finalized"):
        await log.close()
    assert (log.committed_txid, failures) == (2, [])


async def test_an_edit_that_does_not_fit_takes_no_number() -> None:
    log, failures = await opened(MemoryWriter())
    with pytest.raises(EditsError, match="a string of 65537 bytes"):
        log.append(SetReplication("/" + "a" * 65536, 3))
    await log.durable(log.append(EDIT))
    assert (log.committed_txid, failures) == (2, [])
    await log.abort()


async def test_no_batch_is_much_longer_than_the_limit() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    long = SetReplication("/" + "a" * (MAX_BATCH_BYTES // 16), 3)
    for _ in range(40):
        log.append(long)
    await log.durable(log.last_txid)
    assert [count for _, count, _ in writer.records] == [1, 16, 16, 8]
    assert log.committed_txid == 41
    await log.abort()


@pytest.mark.parametrize("refusal", [None, Fenced("too old", promised=Epoch(2))])
async def test_a_caller_who_has_gone_does_not_harm_the_log(refusal: JournalError | None) -> None:
    writer = MemoryWriter()
    log, failures = await opened(writer)
    writer.held, writer.refusal = True, refusal
    txid = log.append(EDIT)
    gone, waiting = (asyncio.create_task(log.durable(txid)) for _ in range(2))
    await turns()
    gone.cancel()
    await turns()
    writer.let_go()
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    assert (str(outcome), failures) == (
        ("None", []) if refusal is None else ("too old", ["too old"])
    )
    await log.abort()


async def test_what_is_known_already_is_told_at_once() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    await log.durable(log.append(EDIT))
    writer.refusal = Fenced("too old", promised=Epoch(2))
    with pytest.raises(LogFailed):
        await log.durable(log.append(EDIT))
    told: list[str] = []
    for txid in (2, 3):
        log.when_durable(TxId(txid), lambda: told.append("durable"), told.append)
    assert told == ["durable", "too old"]
    await log.abort()

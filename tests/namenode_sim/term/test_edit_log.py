"""Group commit: what is durable, in which order, and what a refused write does."""

import asyncio
from dataclasses import dataclass, field

import pytest

from journal.errors import Fenced, JournalError
from journal.frame import scan
from journal.model import Epoch, TxId
from namenode_sim.edits.ops import SetReplication
from namenode_sim.term.edit_log import EditLog, LogFailed

EDIT = SetReplication("/a/file", 3)


@dataclass
class MemoryWriter:
    """A journal in memory that can be held, broken and read back."""

    records: list[tuple[TxId, int, bytes]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    refusal: JournalError | None = None

    def __post_init__(self) -> None:
        self.held.set()

    async def start_segment(self, first: TxId) -> None:
        self.calls.append(f"start {first}")

    async def write(self, first: TxId, count: int, records: bytes) -> None:
        await self.held.wait()
        if self.refusal is not None:
            raise self.refusal
        self.calls.append(f"write {first}+{count}")
        self.records.append((first, count, records))

    async def finalize_segment(self, last: TxId) -> None:
        self.calls.append(f"finalize {last}")


async def opened(writer: MemoryWriter, first: int = 1) -> tuple[EditLog, list[str]]:
    failures: list[str] = []
    log = EditLog(writer, on_failure=failures.append)
    await log.open(TxId(first))
    return log, failures


async def test_an_edit_is_durable_only_after_the_quorum_has_it() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    writer.held.clear()
    txid = log.append(EDIT)
    waiting = asyncio.create_task(log.durable(txid))
    done, _ = await asyncio.wait({waiting}, timeout=0.05)
    assert not done
    assert log.committed_txid == 1
    writer.held.set()
    await asyncio.wait_for(waiting, 30)
    assert log.committed_txid == txid == 2
    await log.abort()


async def test_edits_that_arrive_during_a_write_share_the_next_one() -> None:
    writer = MemoryWriter()
    log, _ = await opened(writer)
    writer.held.clear()
    first = asyncio.create_task(log.durable(log.append(EDIT)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    rest = [asyncio.create_task(log.durable(log.append(EDIT))) for _ in range(50)]
    writer.held.set()
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
    writer.held.clear()
    waiters = [asyncio.create_task(log.durable(log.append(EDIT))) for _ in range(3)]
    await asyncio.sleep(0)
    writer.refusal = Fenced("epoch 1 is older than 2", promised=Epoch(2))
    writer.held.set()
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
    writer.held.clear()
    waiting = asyncio.create_task(log.durable(log.append(EDIT)))
    await asyncio.sleep(0)
    await log.abort()
    with pytest.raises(LogFailed, match="before the edit was durable"):
        await asyncio.wait_for(waiting, 30)

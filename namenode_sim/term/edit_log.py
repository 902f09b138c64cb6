"""The active's pen: edits in, one durable batch after another out.

Edits that arrive while a batch is on its way go into the next one (group commit), so that a
hundred callers cost little more than one.  No task is needed for that: the first edit of a turn has
all that the turn brings written behind it, and the end of a batch has the next one written.
Durable, then remembered, then answered: ``durable`` returns only when a quorum of JournalNodes has
the edit on disk.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from ha.record import dataclass
from journal.errors import JournalError
from journal.model import LAYOUT_VERSION, TxId
from journal.writer.window import Ended
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import EndLogSegment, Op, StartLogSegment
from namenode_sim.metrics import SYNC_BATCH_EDITS
from namenode_sim.supervised import report_broken, supervise

log = structlog.get_logger()

MAX_BATCH_BYTES: Final = 512 * 1024
"""Hadoop's buffer size, and the best batch measured for gRPC."""
_NAME: Final = "edit-log"


class SegmentWriter(Protocol):
    """Where batches go: the quorum of JournalNodes, or memory in a test."""

    async def start_segment(self, first: TxId) -> None: ...

    def begin(self, first: TxId, count: int, records: bytes, ended: Ended) -> None: ...

    async def finalize_segment(self, last: TxId) -> None: ...


class LogFailed(Exception):
    """The journal refused or lost an edit; whether it survives is unknown to us."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is under way."""

    count: int
    last: TxId
    ends_segment: bool
    began: float
    """By the loop's clock."""


_Waiter = tuple[TxId, Callable[[], None], Callable[[str], None]]
"""Up to which edit it waits, what to call then, and what if that can no longer be known."""


class EditLog:
    """One active term's log, from its first segment to its close or its failure.

    ``append`` gives an edit its number and buffers it; the caller applies it to the namespace in
    the same turn of the loop, so that the order in memory is the order in the log.
    """

    def __init__(
        self,
        writer: SegmentWriter,
        *,
        on_failure: Callable[[str], None],
        layout_version: int = LAYOUT_VERSION,
    ) -> None:
        self._writer = writer
        self._on_failure = on_failure
        self._layout = layout_version
        self._next = TxId(1)
        self._committed = TxId(0)
        self._segment_first = TxId(0)
        self._frames: deque[bytes] = deque()
        self._segment_ends: deque[TxId] = deque()
        self._waiters: deque[_Waiter] = deque()
        self._loop = asyncio.get_running_loop()
        self._flush_is_due = False
        self._under_way: _Batch | None = None
        self._rolling: asyncio.Task[None] | None = None
        self._stopped = False
        self._failure: str | None = None
        self._closed = False

    @property
    def last_txid(self) -> TxId:
        return TxId(self._next - 1)

    @property
    def committed_txid(self) -> TxId:
        return self._committed

    @property
    def segment_first(self) -> TxId:
        """The first edit of the open segment, its opening mark."""
        return self._segment_first

    @property
    def edits_in_segment(self) -> int:
        """How many edits the open segment holds, its opening mark included."""
        return self._next - self._segment_first

    @property
    def silent_seconds(self) -> float:
        """For how long the batch that is under way has had no end; 0 where none is."""
        batch = self._under_way
        return 0.0 if batch is None else self._loop.time() - batch.began

    async def open(self, first: TxId) -> TxId:
        """Start a segment at ``first``; returns the txid of its opening mark once that is durable.

        Raises:
            JournalError: if a quorum refuses or does not answer.
        """
        await self._writer.start_segment(first)
        self._next = self._segment_first = first
        self._committed = TxId(first - 1)
        mark = self.append(StartLogSegment())
        await self.durable(mark)
        return mark

    def append(self, op: Op) -> TxId:
        """Buffer an edit under the next number, which is returned.

        Raises:
            LogFailed: if the log is closed or broken; the edit was not taken.
        """
        if self._closed or self._failure is not None:
            raise LogFailed(self._failure or "the edit log is closed")
        txid = self._next
        self._frames.append(encode(op, txid, self._layout))
        self._next = TxId(txid + 1)
        if not self._flush_is_due and self._under_way is None:
            self._flush_soon()
        return txid

    async def durable(self, txid: TxId) -> None:
        """Wait until a quorum has every edit up to ``txid``.

        Raises:
            LogFailed: if that can no longer be known.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def ended() -> None:
            if not done.done():
                done.set_result(None)

        def failed(why: str) -> None:
            if not done.done():
                done.set_exception(LogFailed(why))

        self.when_durable(txid, ended, failed)
        await done

    def when_durable(
        self, txid: TxId, done: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        """Call ``done`` once a quorum has every edit up to ``txid``, or ``failed`` with the reason
        if that can no longer be known: one of them, once, perhaps in this turn of the loop.
        """
        if txid <= self._committed:
            done()
        elif self._failure is not None:
            failed(self._failure)
        else:
            self._waiters.append((txid, done, failed))

    def roll(self) -> tuple[TxId, TxId]:
        """End the segment and begin the next; returns the txids of the two marks.

        Both marks are numbered at once, so edits that follow belong to the new segment.
        """
        end = self.append(EndLogSegment())
        self._segment_ends.append(end)
        self._segment_first = TxId(end + 1)
        return end, self.append(StartLogSegment())

    async def close(self) -> TxId:
        """Write what is buffered, end the segment and finalize it; returns the last txid.

        Raises:
            LogFailed: if the journal refuses; the segment then stays open for recovery.
        """
        end = self.append(EndLogSegment())
        self._closed = True
        await self.durable(end)
        self._stopped = True
        try:
            await self._writer.finalize_segment(end)
        except JournalError as refusal:
            raise LogFailed(f"the last segment could not be finalized: {refusal}") from refusal
        return end

    async def abort(self) -> None:
        """Stop writing at once; fail all that wait for an edit: its fate is unknown."""
        self._closed = self._stopped = True
        if self._rolling is not None:
            self._rolling.cancel()
            await asyncio.gather(self._rolling, return_exceptions=True)
        self._fail_waiters(self._failure or "the edit log was closed before the edit was durable")

    def _flush_soon(self) -> None:
        self._flush_is_due = True
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Have the next batch written, unless one is under way."""
        self._flush_is_due = False
        if self._stopped or self._failure is not None or not self._frames:
            return
        try:
            first, frames = TxId(self._committed + 1), self._next_batch()
            self._writer.begin(first, len(frames), b"".join(frames), self._ended)
        except JournalError as refusal:
            self._broken(str(refusal))
        except Exception as failure:  # noqa: BLE001 - it is reported, and ends the process
            report_broken(_NAME, failure, self._broken)

    def _next_batch(self) -> list[bytes]:
        """Take frames off the queue, up to a segment's end; they are under way from now on."""
        ends_segment = self._segment_ends[0] if self._segment_ends else None
        last, size = self._committed, 0
        batch: list[bytes] = []
        while self._frames and size < MAX_BATCH_BYTES and last != ends_segment:
            frame = self._frames.popleft()
            batch.append(frame)
            size += len(frame)
            last = TxId(last + 1)
        self._under_way = _Batch(len(batch), last, last == ends_segment, self._loop.time())
        return batch

    def _ended(self, failure: JournalError | None) -> None:
        """Handle the end of the batch under way: it is on a quorum, or its fate is unknown."""
        batch = self._under_way
        if self._stopped or batch is None:
            return
        if failure is not None:
            self._broken(str(failure))
            return
        try:
            SYNC_BATCH_EDITS.observe(batch.count)
            self._committed = batch.last
            self._wake_waiters()
        except Exception as unforeseen:  # noqa: BLE001 - it is reported, and ends the process
            report_broken(_NAME, unforeseen, self._broken)
            return
        if batch.ends_segment:
            self._rolling = supervise(self._next_segment(batch.last), _NAME, self._broken)
            return
        self._under_way = None
        if self._frames:
            # Callers woken by this batch run first, so that their next edits share the next batch
            # instead of making batches of one and of all the others.
            self._flush_soon()

    async def _next_segment(self, last: TxId) -> None:
        """End the open segment and begin the next; nothing is written in between."""
        self._segment_ends.popleft()
        try:
            await self._writer.finalize_segment(last)
            await self._writer.start_segment(TxId(last + 1))
        except JournalError as refusal:
            self._broken(str(refusal))
            return
        log.info("edit_log.rolled", last_txid=last)
        self._under_way = None
        self._flush_soon()

    def _broken(self, why: str) -> None:
        """Refuse all further edits; what became of the edits under way is unknown."""
        self._failure = why
        self._fail_waiters(why)
        self._on_failure(why)

    def _wake_waiters(self) -> None:
        # The queue is sorted as long as callers ask right after they append.  One that asks later
        # for an earlier edit stands behind its elders and is woken a batch late, never lost.
        while self._waiters and self._waiters[0][0] <= self._committed:
            self._waiters.popleft()[1]()

    def _fail_waiters(self, reason: str) -> None:
        while self._waiters:
            self._waiters.popleft()[2](reason)

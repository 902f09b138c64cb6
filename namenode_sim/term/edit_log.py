"""The active's pen: edits in, one durable batch after another out.

Edits that arrive while a batch is on its way go into the next one (group commit), so that a
hundred callers cost little more than one.  Durable, then remembered, then answered:
``durable`` returns only when a quorum of JournalNodes has the edit on disk.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from journal.errors import JournalError
from journal.model import LAYOUT_VERSION, TxId
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import EndLogSegment, Op, StartLogSegment
from namenode_sim.metrics import SYNC_BATCH_EDITS
from namenode_sim.supervised import supervised

log = structlog.get_logger()

MAX_BATCH_BYTES: Final = 512 * 1024
"""Hadoop's buffer size, and the best batch measured for gRPC."""


class SegmentWriter(Protocol):
    """Where batches go: the quorum of JournalNodes, or memory in a test."""

    async def start_segment(self, first: TxId) -> None: ...

    async def write(self, first: TxId, count: int, records: bytes) -> None: ...

    async def finalize_segment(self, last: TxId) -> None: ...


class LogFailed(Exception):
    """The journal refused or lost an edit; whether it survives is unknown to us."""


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
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: str | None = None
        self._closed = False

    @property
    def last_txid(self) -> TxId:
        """The last number given out."""
        return TxId(self._next - 1)

    @property
    def committed_txid(self) -> TxId:
        """The last edit that a quorum has."""
        return self._committed

    @property
    def segment_first(self) -> TxId:
        """The first edit of the open segment, its opening mark."""
        return self._segment_first

    @property
    def edits_in_segment(self) -> int:
        """How many edits the open segment holds, its opening mark included."""
        return self._next - self._segment_first

    async def open(self, first: TxId) -> TxId:
        """Start a segment at ``first``; returns the txid of its opening mark once that is durable.

        Raises:
            JournalError: if a quorum refuses or does not answer.
        """
        await self._writer.start_segment(first)
        self._next = self._segment_first = first
        self._committed = TxId(first - 1)
        self._task = supervised(self._flush_batches(), "edit-log", self._broken)
        mark = self.append(StartLogSegment())
        await self.durable(mark)
        return mark

    def append(self, op: Op) -> TxId:
        """Number an edit and buffer it.

        Raises:
            LogFailed: if the log is closed or broken; the edit was not taken.
        """
        if self._closed or self._failure is not None:
            raise LogFailed(self._failure or "the edit log is closed")
        txid = self._next
        self._frames.append(encode(op, txid, self._layout))
        self._next = TxId(txid + 1)
        self._work.set()
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
        await self._stop_flushing()
        try:
            await self._writer.finalize_segment(end)
        except JournalError as refusal:
            raise LogFailed(f"the last segment could not be finalized: {refusal}") from refusal
        return end

    async def abort(self) -> None:
        """Stop writing at once; whoever waits for an edit is told that its fate is unknown."""
        self._closed = True
        await self._stop_flushing()
        self._fail_waiters(self._failure or "the edit log was closed before the edit was durable")

    async def _stop_flushing(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _flush_batches(self) -> None:
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                while self._frames:
                    await self._flush_one_batch()
                    # Callers woken by this batch run first, so that their next edits share
                    # the next batch instead of making batches of one and of all the others.
                    await asyncio.sleep(0)
        except JournalError as refusal:
            self._broken(str(refusal))

    def _broken(self, why: str) -> None:
        """Nothing more is taken; what became of the edits under way is unknown."""
        self._failure = why
        self._fail_waiters(why)
        self._on_failure(why)

    async def _flush_one_batch(self) -> None:
        first = TxId(self._committed + 1)
        ends_segment = self._segment_ends[0] if self._segment_ends else None
        batch: list[bytes] = []
        size = 0
        while self._frames and size < MAX_BATCH_BYTES:
            frame = self._frames.popleft()
            batch.append(frame)
            size += len(frame)
            if first + len(batch) - 1 == ends_segment:
                break
        last = TxId(first + len(batch) - 1)
        await self._writer.write(first, len(batch), b"".join(batch))
        SYNC_BATCH_EDITS.observe(len(batch))
        self._committed = last
        self._wake_waiters()
        if last == ends_segment:
            self._segment_ends.popleft()
            await self._writer.finalize_segment(last)
            await self._writer.start_segment(TxId(last + 1))
            log.info("edit_log.rolled", last_txid=last)

    def _wake_waiters(self) -> None:
        # The queue is sorted as long as callers ask right after they append.  One that asks later
        # for an earlier edit stands behind its elders and is woken a batch late, never lost.
        while self._waiters and self._waiters[0][0] <= self._committed:
            self._waiters.popleft()[1]()

    def _fail_waiters(self, reason: str) -> None:
        while self._waiters:
            self._waiters.popleft()[2](reason)

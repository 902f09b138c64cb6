"""Keeps a writer's newest edits once for all nodes, and the last acknowledged edit of each node.

Edits are committed and acknowledged in order.  So a batch is committed when the acknowledged txids
of a majority have reached its end, and lost when too few of the nodes that take part can still
reach it.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence

import structlog

from ha.record import dataclass, record
from journal.errors import BadRequest, InvariantBroken, JournalError, Unavailable, ensure
from journal.frame import scan
from journal.links import metrics
from journal.links.countdown import STEPS, Countdown
from journal.links.link import MAX_BATCH_BYTES
from journal.links.quorum_call import quorum_lost
from journal.model import LAYOUT_VERSION, NO_TXID, NodeName, TxId
from journal.quorum import majority_of

log = structlog.get_logger()


Ended = Callable[[JournalError | None], None]
"""Called once with the outcome of a batch when that is known: None if a quorum has it, else the
failure.  It must not write."""


def awaitable() -> tuple["asyncio.Future[None]", Ended]:
    """Return a future for the outcome of a batch, and the function that sets it."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(failure: JournalError | None) -> None:
        if done.done():
            return  # the caller that wrote it is gone
        if failure is None:
            done.set_result(None)
        else:
            done.set_exception(failure)

    return done, ended


@dataclass(slots=True, eq=False)
class Batch:
    """Edits that were written together; ``offset`` is the number of bytes written before them."""

    segment_first: TxId
    first: TxId
    last: TxId
    records: bytes
    offset: int
    step: int
    ended: tuple[Ended, ...]


@record
class Message:
    """Consecutive edits of one segment for one node; ``seq`` is the number of the next batch."""

    segment_first: TxId
    first: TxId
    last: TxId
    records: bytes
    seq: int


@record
class SegmentEnd:
    """The open segment up to the end of some batch."""

    first: TxId
    last: TxId
    digest: bytes
    layout_version: int


@dataclass(slots=True)
class _Member:
    """One node.

    ``needs`` is the oldest batch that must still be sent to it; None if it takes no part.  ``down``
    is why no more acknowledgements are expected, though late ones count.  A learner gets all edits,
    and its acknowledgements do not count.
    """

    acked: TxId = NO_TXID
    needs: int | None = 0
    down: JournalError | None = None
    learner: bool = False


class Window:
    """The edits that may have to be sent, limited by ``limit_bytes``."""

    def __init__(
        self, nodes: Sequence[NodeName], *, limit_bytes: int, timeout_seconds: float
    ) -> None:
        self.segment_first: TxId | None = None
        self.layout_version = LAYOUT_VERSION
        self.next = TxId(0)
        self.end = 0
        self.committed = TxId(0)
        self._needed = majority_of(nodes).needed
        self._members = {node: _Member() for node in nodes}
        self._limit_bytes = limit_bytes
        self._batches: dict[int, Batch] = {}
        self._base = 0
        self.end_seq = 0
        """The number of the next batch."""
        self._held_bytes = 0
        self._waiting: deque[Batch] = deque()
        self._watching: set[asyncio.Future[None]] = set()
        self._countdown = Countdown(timeout_seconds, self._stepped)
        self._digest = hashlib.sha256()

    # ---- the writer's side ----

    def open(self, first: TxId, layout_version: int) -> None:
        """Open the segment that a quorum has begun."""
        self.segment_first, self.next = first, first
        self.layout_version = layout_version
        self._digest = hashlib.sha256()

    def finish(self) -> None:
        """Close the segment that a quorum has closed."""
        self.segment_first = None

    def append(self, count: int, records: bytes, ended: Ended) -> None:
        """Append a batch; ``ended`` is called with its outcome unless the window is closed before.

        Raises:
            BadRequest: the batch exceeds one message; nothing was sent, and the writer lives on.
        """
        segment_first, first = self.segment_first, self.next
        if segment_first is None:
            raise InvariantBroken(f"transaction {first} is written, and no segment is open")
        if len(records) > MAX_BATCH_BYTES:
            raise BadRequest(
                f"{len(records)} bytes of edits from transaction {first} on are more than the "
                f"{MAX_BATCH_BYTES} that one write may have"
            )
        last = TxId(first + count - 1)
        step = self._countdown.step
        batch = Batch(segment_first, first, last, records, self.end, step, (ended,))
        size = len(records)
        self._batches[self.end_seq] = batch
        self.end_seq += 1
        self._held_bytes += size
        self.next = TxId(last + 1)
        self.end += size
        self._digest.update(records)
        self._waiting.append(batch)
        if self._held_bytes > self._limit_bytes:
            self._trim()
        self._countdown.start()
        if not self._possible(batch):
            self._waiting.pop()
            self._lose(batch)

    @property
    def digest(self) -> bytes:
        """The content digest of the open segment."""
        return self._digest.digest()

    async def committed_mark(self) -> SegmentEnd:
        """Return the open segment up to its present end when a quorum has it.

        Raises:
            Unavailable: if no segment is open any more.
            QuorumLost: if the edits do not reach a quorum.
        """
        if self.segment_first is None:
            raise Unavailable("the segment was closed meanwhile")
        last = TxId(self.next - 1)
        mark = SegmentEnd(self.segment_first, last, self.digest, self.layout_version)
        if self._waiting:
            known, tell = awaitable()
            self._waiting[-1].ended += (tell,)
            self._watching.add(known)
            try:
                await known
            finally:
                self._watching.discard(known)
        return mark

    def close(self) -> None:
        self._countdown.stop()
        for watcher in self._watching:
            watcher.cancel()
        self._waiting.clear()

    # ---- a channel's side ----

    def holds(self, seq: int) -> bool:
        """Return whether that batch has been written."""
        return seq < self.end_seq

    @property
    def is_full(self) -> bool:
        """Whether the limit is exceeded; only then can a node be too far behind."""
        return self._held_bytes > self._limit_bytes

    def queued_bytes(self, node: NodeName) -> int:
        """Edits that this node takes part in and has not acknowledged."""
        needs = self._members[node].needs
        if needs is None or needs >= self.end_seq:
            return 0
        return self.end - self._batches[needs].offset

    def too_far_behind(self, node: NodeName, newest: int) -> bool:
        """Return whether too many bytes wait for a node; one batch may always wait."""
        queued = self.queued_bytes(node)
        return queued > newest and queued > self._limit_bytes

    def covers(self, txid: TxId) -> bool:
        """Return whether the window has all edits of the open segment from this one on."""
        first = self.segment_first
        if first is None or not first <= txid <= self.next:
            return False
        return txid == self.next or (
            self._base < self.end_seq and self._batches[self._base].first <= txid
        )

    def seq_at(self, txid: TxId) -> int:
        """Return the number of the batch with this edit, or of the next batch."""
        low, high = self._base, self.end_seq
        while low < high:
            middle = (low + high) // 2
            if self._batches[middle].last < txid:
                low = middle + 1
            else:
                high = middle
        return low

    def message(self, seq: int, first: TxId, limit_bytes: int) -> Message:
        """Return the edits from ``first`` on, of batch ``seq`` and of small batches after it."""
        batch = self._batches[seq]
        records, last, segment_first = batch.records, batch.last, batch.segment_first
        if first != batch.first:
            before = scan(records, expected=batch.first, last_wanted=TxId(first - 1))
            ensure(before.last == first - 1, f"{batch.first}-{last} holds {first}")
            records = records[before.end :]
        seq += 1
        size = len(records)
        pieces = [records]
        while seq < self.end_seq:
            batch = self._batches[seq]
            size += len(batch.records)
            if size > limit_bytes or batch.segment_first != segment_first:
                break
            pieces.append(batch.records)
            last = batch.last
            seq += 1
        return Message(
            segment_first, first, last, b"".join(pieces) if len(pieces) > 1 else records, seq
        )

    def takes_part(self, node: NodeName, seq: int, *, learner: JournalError | None = None) -> None:
        """Let this node take part from a batch on; a learner's acknowledgements do not count."""
        member = self._members[node]
        member.needs, member.down, member.learner = seq, learner, learner is not None
        if learner is not None:
            member.acked = NO_TXID

    def acked(self, node: NodeName, last: TxId, seq: int) -> None:
        """Record that this node has all edits up to ``last`` on its disk; ``seq`` is next."""
        member = self._members[node]
        if member.needs is not None:
            member.needs = seq
        if not member.learner:
            member.acked = last
            if last > self.committed and self._waiting:
                self._commit()
        if self._held_bytes > self._limit_bytes or self._batches_are_old():
            self._trim()

    def holders(self, last: TxId) -> list[NodeName]:
        """Return the nodes that have acknowledged this edit."""
        return [node for node, member in self._members.items() if member.acked >= last]

    def admitted(self, node: NodeName, last: TxId) -> None:
        """Count a learner with all edits up to ``last`` as a voter; it may be lost by now."""
        member = self._members[node]
        member.learner, member.acked = False, last
        if member.needs is not None:
            member.down = None
        if last > self.committed and self._waiting:
            self._commit()

    def failed(self, node: NodeName, error: JournalError) -> None:
        """Record that a node does not take part any more; batches that need it fail at once."""
        metrics.ERRORS.labels(jn=node, code=type(error).__name__).inc()
        member = self._members[node]
        member.needs, member.down = None, error
        if isinstance(error, InvariantBroken):
            # A broken invariant on one node counts more than the success of a quorum.
            while self._waiting:
                batch = self._waiting.pop()
                self._end(batch, InvariantBroken(f"{_name(batch)}: {node}: {error}"))
            return
        while self._waiting and not self._possible(self._waiting[-1]):
            self._lose(self._waiting.pop())

    # ---- the count ----

    def _commit(self) -> None:
        reached = sorted([member.acked for member in self._members.values()])[-self._needed]
        if reached <= self.committed:
            return
        self.committed = reached
        waiting = self._waiting
        while waiting and waiting[0].last <= reached:
            self._end(waiting.popleft(), None)

    def _possible(self, batch: Batch) -> bool:
        able = 0
        for member in self._members.values():
            able += member.down is None or member.acked >= batch.last
        return able >= self._needed

    def _lose(self, batch: Batch) -> None:
        agreed, failures = [], {}
        for node, member in self._members.items():
            if member.acked >= batch.last:
                agreed.append(node)
            elif member.down is not None:
                failures[node] = member.down
        self._end(batch, quorum_lost(_name(batch), len(self._members), agreed, failures))

    def _end(self, batch: Batch, error: JournalError | None) -> None:
        for ended in batch.ended:
            ended(error)

    def _stepped(self) -> bool:
        while self._waiting and self._countdown.step - self._waiting[0].step > STEPS:
            batch = self._waiting.popleft()
            silence = Unavailable(f"no answer within {self._countdown.seconds:g} s")
            agreed = [n for n, member in self._members.items() if member.acked >= batch.last]
            failures = {
                node: member.down or silence
                for node, member in self._members.items()
                if node not in agreed
            }
            self._end(batch, quorum_lost(_name(batch), len(self._members), agreed, failures))
        if not self._waiting:
            return False
        oldest = self._waiting[0]
        if self._countdown.step - oldest.step == STEPS // 2:
            log.warning(
                "journal.quorum_slow",
                operation=_name(oldest),
                silent=sorted(n for n, m in self._members.items() if m.acked < oldest.last),
                failed={n: str(m.down) for n, m in self._members.items() if m.down is not None},
            )
        return True

    # ---- what is kept ----

    def _batches_are_old(self) -> bool:
        return (
            self._base < self.end_seq
            and self._batches[self._base].segment_first != self.segment_first
        )

    def _trim(self) -> None:
        """Drop edits that no node needs; of the open segment, only those above the limit."""
        needs = [m.needs for m in self._members.values() if m.needs is not None]
        floor = min(needs, default=self.end_seq)
        while self._base < floor and (
            self._held_bytes > self._limit_bytes or self._batches_are_old()
        ):
            self._held_bytes -= len(self._batches.pop(self._base).records)
            self._base += 1


def _name(batch: Batch) -> str:
    return f"writing transactions {batch.first}-{batch.last}"

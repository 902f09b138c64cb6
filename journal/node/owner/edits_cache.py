"""The newest edits in memory, for NameNodes that tail the in-progress segment.  Pure.

See docs/reference/journal-node.md#edits-from-memory.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from ha.record import dataclass, record
from journal.errors import CacheMiss
from journal.frame import scan
from journal.model import Epoch, Segment, TxId

NOTHING_CACHED: Final = 0


@record
class Batch:
    """Consecutive framed edits of one writer, as they were received."""

    first: TxId
    last: TxId
    writer: Epoch
    layout_version: int
    records: bytes


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Framed edits of one layout version; ``writers`` has (last txid, epoch) for each writer."""

    count: int
    layout_version: int
    records: bytes
    writers: tuple[tuple[TxId, Epoch], ...]


class NotCached(CacheMiss):
    """The requested edit is before the cache, which lacks ``missed`` edits; 0 if unknown."""

    def __init__(self, message: str, *, missed: int) -> None:
        super().__init__(message)
        self.missed = missed


class EditsCache:
    """Consecutive edits up to the newest one, limited in bytes.

    It keeps the received bytes, and copies them only for an answer.  The caller must store edits
    only once they are durable (HDFS-17710: Hadoop served edits whose write had failed), and call
    ``keep_only`` when a recovery may replace edits.
    """

    def __init__(self, capacity_bytes: int) -> None:
        if capacity_bytes <= 0:
            raise ValueError("a cache needs room")
        self.capacity_bytes = capacity_bytes
        self.size_bytes = 0
        self._batches: list[Batch] = []
        self._begins: TxId | None = None

    @property
    def range(self) -> tuple[TxId, TxId] | None:
        """The first and the last txid in the cache; None if it is empty."""
        if not self._batches:
            return None
        return self._batches[0].first, self._batches[-1].last

    def store(self, batch: Batch) -> bool:
        """Append a batch and evict the oldest ones; return False if it is larger than the cache.

        The cache is cleared first if the batch does not follow its newest edit, and also if the
        batch is too large: the batches in the cache must be consecutive.
        """
        if self._batches and batch.first != self._batches[-1].last + 1:
            self.clear()
        if self._begins is None:
            self._begins = batch.first
        size = len(batch.records)
        if size > self.capacity_bytes:
            self.clear()
            return False
        evicted = 0
        while self.size_bytes + size > self.capacity_bytes:
            self.size_bytes -= len(self._batches[evicted].records)
            evicted += 1
        del self._batches[:evicted]
        self._batches.append(batch)
        self.size_bytes += size
        return True

    def retrieve(self, since: TxId, *, max_txns: int, max_bytes: int) -> Retrieved:
        """Return whole edits from ``since`` on, up to the next change of the layout version.

        At least one is returned, even if it is larger than ``max_bytes``.

        Raises:
            NotCached: ``since`` is not in the cache; the caller has made sure that it exists.
        """
        return gather(self.batches_from(since), since, max_txns=max_txns, max_bytes=max_bytes)

    def batches_from(self, since: TxId) -> list[Batch]:
        """Return the batch with the edit ``since`` and all later ones; raises NotCached."""
        held = self.range
        if held is None or not held[0] <= since <= held[1]:
            raise self._miss(since)
        at = bisect_right(self._batches, since, key=lambda batch: batch.first) - 1
        return self._batches[at:]

    def keep_only(self, segments: Iterable[Segment]) -> None:
        """Drop the first batch that is in none of these segments, and all later ones."""
        kept = sorted((segment.first, segment.last) for segment in segments)
        for at, batch in enumerate(self._batches):
            if not any(first <= batch.first and batch.last <= last for first, last in kept):
                self.size_bytes -= sum(len(gone.records) for gone in self._batches[at:])
                del self._batches[at:]
                return

    def clear(self) -> None:
        self._batches.clear()
        self.size_bytes = 0
        self._begins = None

    def _miss(self, since: TxId) -> NotCached:
        if not self._batches:
            missed, why = NOTHING_CACHED, "nothing is kept in memory"
        else:
            oldest = self._batches[0].first
            # Edits before the first one ever stored do not count: a larger cache lacks them, too.
            begins = self._begins if self._begins is not None and since < self._begins else oldest
            kept = f"what is kept in memory is {oldest}-{self._batches[-1].last}"
            missed, why = max(0, begins - since), kept
        return NotCached(f"transaction {since}: {why}", missed=missed)


def gather(batches: Sequence[Batch], since: TxId, *, max_txns: int, max_bytes: int) -> Retrieved:
    """Return the answer of ``retrieve`` from consecutive batches; the first contains ``since``."""
    layout, last_wanted = batches[0].layout_version, since + max(1, max_txns) - 1
    parts: list[bytes] = []
    writers: list[tuple[TxId, Epoch]] = []
    reached, room = TxId(since - 1), max_bytes
    for batch in batches:
        if batch.layout_version != layout:
            break
        last, records = _cut(batch, TxId(reached + 1), TxId(last_wanted))
        if len(records) > room:
            last, records = _fitting(records, TxId(reached + 1), room, needed=not parts)
        if last > reached:
            parts.append(records)
            if writers and writers[-1][1] == batch.writer:
                writers.pop()
            writers.append((last, batch.writer))
            reached, room = last, room - len(records)
        if reached != batch.last or reached == last_wanted:
            break
    return Retrieved(reached - since + 1, layout, b"".join(parts), tuple(writers))


def _cut(batch: Batch, first: TxId, last: TxId) -> tuple[TxId, bytes]:
    """Return the last txid and the frames of a batch's edits from ``first`` to ``last``."""
    records, begin, end = batch.records, 0, len(batch.records)
    if first > batch.first:
        begin = scan(records, expected=batch.first, last_wanted=TxId(first - 1)).end
    if last < batch.last:
        end = scan(records, start=begin, expected=first, last_wanted=last).end
    return TxId(min(last, batch.last)), records[begin:end]


def _fitting(records: bytes, first: TxId, room: int, *, needed: bool) -> tuple[TxId, bytes]:
    """Return the whole edits that fit into ``room`` bytes; with ``needed`` at least the first."""
    found = scan(records[: max(0, room)], expected=first)
    if found.last is not None:
        return found.last, records[: found.end]
    if not needed:
        return TxId(first - 1), b""
    return first, records[: scan(records, expected=first, last_wanted=first).end]

"""Updates a journal's edits cache after each durable group, and answers readers from it."""

import threading
from collections.abc import Iterable
from typing import Final

from journal.core.admission import require_formatted
from journal.core.learner import require_vote
from journal.core.replies import Done, Reply
from journal.core.requests import Journal, Request
from journal.core.state import JournalState
from journal.errors import AheadOfNode, BadRequest, CacheMiss, JournalError
from journal.model import NO_TXID, JournalId, Segment, TxId
from journal.node import metrics
from journal.node.owner.edits_cache import Batch, EditsCache, NotCached, Retrieved, gather

MAX_ANSWER_TXNS: Final = 100_000
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Far below gRPC's largest message; a single edit that is longer is sent whole."""


class RecentEdits:
    """The newest edits of one journal in memory; without a cache each read is a miss.

    A lane's thread may store edits while the event loop answers a reader, so a lock protects the
    cache.  It is not held while an answer is built, as batches never change.
    """

    def __init__(self, journal_id: JournalId, cache: EditsCache | None) -> None:
        self._journal_id = journal_id
        self._cache = cache
        self._lock = threading.Lock()
        if cache is not None:
            metrics.watch_cache(journal_id, cache)

    def follow(
        self,
        before: JournalState,
        after: JournalState,
        answered: Iterable[tuple[Request, Reply | JournalError]],
    ) -> None:
        """Store the edits of a group of requests, which must be durable.

        When the node promises a newer epoch or abandons the open segment, that segment's edits
        leave the cache: a recovery may replace them, and they must not be served then
        (docs/reference/quorum-journal.md#durable-reads).
        """
        if self._cache is None:
            return
        with self._lock:
            for request, answer in answered:
                if isinstance(request, Journal) and isinstance(answer, Done):
                    self._store(request, before)
            if not _same_writing(before, after):
                # After the stores: the group may have batches of the writer that it supersedes.
                self._cache.keep_only(_still_true(before, after))

    def answer(self, state: JournalState, since: TxId, max_txns: int) -> Retrieved:
        """Return the answer to GetJournaledEdits.

        Raises:
            CacheMiss: the edits are not in memory.
            NotAdmitted: this node has no vote.
            AheadOfNode: ``since`` is higher than the next txid of this node.
            BadRequest: ``max_txns`` is not positive.
        """
        require_formatted(state)
        require_vote(state)
        if max_txns <= 0:
            raise BadRequest("a reader asks for at least one edit")
        if self._cache is None:
            raise CacheMiss(
                "this node keeps no edits in memory; dfs.ha.tail-edits.in-progress is not set here"
            )
        coming = 1 if state.last_written == NO_TXID else state.last_written + 1
        if since > coming:
            # The reader would count an empty answer for "there is no newer edit" (HDFS-16659).
            raise AheadOfNode(f"this node has edits up to {coming - 1}, not {since}")
        journal = self._journal_id
        if since == coming:
            metrics.EMPTY_ANSWERS.labels(journal).inc()
            return Retrieved(0, 0, b"", ())
        try:
            with self._lock:
                batches = self._cache.batches_from(since)
        except NotCached as miss:
            metrics.CACHE_MISSES.labels(journal).inc()
            metrics.CACHE_MISSED.labels(journal).inc(miss.missed)
            raise
        most = min(max_txns, MAX_ANSWER_TXNS)
        found = gather(batches, since, max_txns=most, max_bytes=MAX_ANSWER_BYTES)
        metrics.SERVED_EDITS.labels(journal).inc(found.count)
        metrics.SERVED_EDIT_BYTES.labels(journal).inc(len(found.records))
        return found

    def _store(self, written: Journal, before: JournalState) -> None:
        assert self._cache is not None
        if before.open is None or written.count == 0:
            return
        last, layout = TxId(written.first + written.count - 1), before.open.layout_version
        self._cache.store(Batch(written.first, last, written.stamp.epoch, layout, written.records))


def _same_writing(before: JournalState, after: JournalState) -> bool:
    """Return whether the promise, the segments and the open segment are unchanged."""
    return (
        before.promised == after.promised
        and before.segments is after.segments
        and _open_first(before) == _open_first(after)
    )


def _still_true(before: JournalState, after: JournalState) -> list[Segment]:
    kept = [segment for segment in after.segments.values() if segment.finalized]
    if (
        before.promised == after.promised
        and after.open is not None
        and after.open.first == _open_first(before)
    ):
        kept.append(after.open.as_segment())
    return kept


def _open_first(state: JournalState) -> TxId | None:
    return None if state.open is None else state.open.first

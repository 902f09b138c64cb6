"""The metrics of a JournalNode; those of a journal have its label."""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, cast

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import Metric

from journal.core.effects import AppendEdits
from journal.core.state import JournalState
from journal.model import JournalId
from journal.node.percentiles import RecentSyncs

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

_LABELS = ("journal",)


class _Folding:
    """Is collected before the counters, and brings them up to date."""

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        fold()
        return ()


REGISTRY.register(cast("Collector", _Folding()))

SYNC_SECONDS = Histogram(
    "nnha_jn_fsync_duration_seconds",
    "Time to write a group of batches and to sync it",
    _LABELS,
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5),
)
BATCHES = Counter("nnha_jn_batches_written_total", "Batches made durable", _LABELS)
TRANSACTIONS = Counter("nnha_jn_transactions_written_total", "Edits made durable", _LABELS)
BYTES = Counter("nnha_jn_bytes_written_total", "Bytes of edits made durable", _LABELS)
GROUPS = Counter("nnha_jn_commit_groups_total", "Syncs, each for one or more batches", _LABELS)
LAST_TXID = Gauge("nnha_jn_last_txid", "The highest edit held", _LABELS)
COMMITTED_TXID = Gauge("nnha_jn_committed_txid", "A lower bound of what a quorum has", _LABELS)
LAG = Gauge("nnha_jn_lag_transactions", "How far this node is behind the quorum", _LABELS)
PROMISED_EPOCH = Gauge("nnha_jn_promised_epoch", "The newest writer promised", _LABELS)
WRITER_EPOCH = Gauge("nnha_jn_writer_epoch", "Who began the newest segment", _LABELS)
SEGMENTS = Gauge("nnha_jn_segments", "Segments held, the open one included", _LABELS)
LEARNER = Gauge("nnha_jn_learner", "1 while this node has no vote", _LABELS)
ADMITTED = Counter(
    "nnha_jn_learner_admissions_total", "Votes given back to this node by the voters' word", _LABELS
)
DAMAGED = Gauge("nnha_jn_damaged_segments", "Segments found damaged and not repaired yet", _LABELS)
FAILED = Gauge("nnha_jn_failed", "1 when the journal has stopped because of its disk", _LABELS)
DISK_FREE = Gauge("nnha_jn_disk_free_bytes", "Free space where the journal lies", _LABELS)
DISK_TOTAL = Gauge("nnha_jn_disk_total_bytes", "Size of the disk where the journal lies", _LABELS)
DISK_LOW = Gauge("nnha_jn_disk_low", "1 while less is free than the operator asks for", _LABELS)
OPEN_SEGMENT = Gauge(
    "nnha_jn_open_segment_first_txid", "Where the segment being written starts; 0 is none", _LABELS
)
LANE_LIMITS = Counter(
    "nnha_jn_lane_limits_met_total", "Write lanes that were closed for a limit", ("limit",)
)
GRPC_LIMITS = Counter(
    "nnha_jn_grpc_limits_met_total", "Calls over gRPC that were ended for a limit", ("limit",)
)
RECOVERY_CALLS = Counter(
    "nnha_jn_recovery_calls_total",
    "Steps of recoveries: epoch, prepare, accept, adopt",
    ("journal", "phase", "result"),
)
REJECTED = Counter("nnha_jn_rejected_requests_total", "Requests refused", ("journal", "reason"))
CORRUPT = Counter(
    "nnha_jn_corrupt_records_total", "Damaged edits received, fetched or found", _LABELS
)
SCRUBBED = Counter(
    "nnha_jn_scrubbed_segments_total", "Finalized segments read again in the background", _LABELS
)
SYNC_SEGMENTS = Counter(
    "nnha_jn_sync_segments_total", "Segments brought from peers in the background", _LABELS
)
SYNC_FAILURES = Counter(
    "nnha_jn_sync_failures_total", "Segments that no peer could be had to give", _LABELS
)
FORKED = Gauge("nnha_jn_forked_segments", "Segments of which a peer has other edits", _LABELS)
RECOVERIES = Counter("nnha_jn_recoveries_total", "Recoveries accepted", ("journal", "result"))
SERVED_BYTES = Counter("nnha_jn_served_bytes_total", "Bytes of segments served", _LABELS)
SERVED_EDITS = Counter("nnha_jn_rpc_served_transactions_total", "Edits served from memory", _LABELS)
SERVED_EDIT_BYTES = Counter(
    "nnha_jn_rpc_served_bytes_total", "Bytes of edits served from memory", _LABELS
)
EMPTY_ANSWERS = Counter(
    "nnha_jn_rpc_empty_responses_total", "Questions for edits when there was none newer", _LABELS
)
CACHE_MISSES = Counter(
    "nnha_jn_rpc_cache_misses_total", "Questions for edits that memory does not keep", _LABELS
)
CACHE_MISSED = Counter(
    "nnha_jn_rpc_cache_missed_transactions_total",
    "By how many edits memory reached too little far back, over all misses",
    _LABELS,
)
CACHE_BYTES = Gauge("nnha_jn_edits_cache_bytes", "Edits kept in memory", _LABELS)


class WriteCounters:
    """The counters of one journal's writes.

    The numbers of each sync are stored, and counted after 1000 syncs or when the metrics are read:
    five counters of prometheus_client cost as much as the decision about a batch.
    """

    def __init__(self, journal_id: JournalId) -> None:
        self._seconds = SYNC_SECONDS.labels(journal_id)
        self._groups = GROUPS.labels(journal_id)
        self._batches = BATCHES.labels(journal_id)
        self._transactions = TRANSACTIONS.labels(journal_id)
        self._bytes = BYTES.labels(journal_id)
        self._recent, self._lock = RecentSyncs(), threading.Lock()
        self._aside: deque[tuple[float, float, int, int, int]] = deque()
        _COUNTED.add(self)

    def synced(self, seconds: float, appends: Sequence[AppendEdits]) -> None:
        """Count a group of batches that has become durable; a lane's thread may call it."""
        edits = size = 0
        for append in appends:
            edits += append.count
            size += len(append.records)
        self._aside.append((time.monotonic(), seconds, len(appends), edits, size))
        if len(self._aside) >= _FOLDED_AT:
            self.fold()

    def fold(self) -> None:
        """Count the stored syncs; may be called from any thread."""
        with self._lock:
            groups = batches = edits = size = 0
            while self._aside:
                at, seconds, *more = self._aside.popleft()
                self._recent.add(at, seconds)
                self._seconds.observe(seconds)
                groups += 1
                batches, edits, size = batches + more[0], edits + more[1], size + more[2]
            self._groups.inc(groups)
            self._batches.inc(batches)
            self._transactions.inc(edits)
            self._bytes.inc(size)

    def recent_syncs(self) -> Mapping[str, int]:
        """Return the latencies of the last syncs, for /jmx."""
        self.fold()
        with self._lock:
            return self._recent.attributes(time.monotonic())


_FOLDED_AT: Final = 1000
_COUNTED: Final["weakref.WeakSet[WriteCounters]"] = weakref.WeakSet()


def fold() -> None:
    """Count the stored syncs of all journals, before the metrics are read."""
    for counts in list(_COUNTED):
        counts.fold()


class Watched(Protocol):
    """A journal whose gauges are read."""

    @property
    def state(self) -> JournalState:
        """The journal's durable state."""

    @property
    def failed_because(self) -> str | None:
        """The reason why the journal has stopped, or None."""


def watch(journal_id: JournalId, journal: Watched) -> None:
    """Read the journal's gauges when they are collected; 0 once the journal was deleted."""
    alive = weakref.ref(journal)

    def read(of: Callable[[Watched], float]) -> Callable[[], float]:
        def value() -> float:
            watched = alive()
            return 0 if watched is None else of(watched)

        return value

    for gauge, of in _GAUGES:
        gauge.labels(journal_id).set_function(read(of))
    # An alert on an increase sees the first one only if the series existed before, at 0.
    for counter in (CORRUPT, SYNC_FAILURES, SYNC_SEGMENTS, SCRUBBED):
        counter.labels(journal_id)
    FORKED.labels(journal_id)


class Sized(Protocol):
    """A cache with its size in bytes."""

    size_bytes: int


def watch_cache(journal_id: JournalId, cache: Sized) -> None:
    """Read the size of a journal's cache when it is collected."""
    alive = weakref.ref(cache)

    def value() -> float:
        watched = alive()
        return 0 if watched is None else watched.size_bytes

    CACHE_BYTES.labels(journal_id).set_function(value)


def _lag(state: JournalState) -> int:
    return max(0, state.claimed - max(0, state.last_written))


def _open_segment(state: JournalState) -> int:
    return 0 if state.open is None else state.open.first


_GAUGES: Final[tuple[tuple[Gauge, Callable[[Watched], float]], ...]] = (
    (LAST_TXID, lambda journal: max(0, journal.state.last_written)),
    (COMMITTED_TXID, lambda journal: max(0, journal.state.committed)),
    (LAG, lambda journal: _lag(journal.state)),
    (OPEN_SEGMENT, lambda journal: _open_segment(journal.state)),
    (PROMISED_EPOCH, lambda journal: journal.state.promised),
    (LEARNER, lambda journal: journal.state.learner),
    (DAMAGED, lambda journal: len(journal.state.damaged)),
    (WRITER_EPOCH, lambda journal: journal.state.writer),
    (SEGMENTS, lambda journal: len(journal.state.segments) + (journal.state.open is not None)),
    (FAILED, lambda journal: journal.failed_because is not None),
)

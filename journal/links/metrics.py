"""The Prometheus metrics of the journal's client."""

from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram

_FAST = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20)

APPEND_SECONDS = Histogram(
    "nnha_journal_append_duration_seconds",
    "From the start of a write to its return, durable on a quorum.",
    buckets=_FAST,
)
QUORUM_SECONDS = Histogram(
    "nnha_journal_quorum_latency_seconds",
    "From the start of any call to all nodes to the answer of a quorum.",
    ["op"],
    buckets=_FAST,
)
LAG_TRANSACTIONS = Gauge(
    "nnha_journal_writer_lag_transactions",
    "Committed transactions that this node has not acknowledged.",
    ["jn"],
)
IN_SYNC = Gauge(
    "nnha_journal_node_in_sync",
    "Whether this node takes part in the open segment (1) or waits for the next one (0).",
    ["jn"],
)
QUEUED_BYTES = Gauge(
    "nnha_journal_queued_bytes",
    "Edits that wait for this node, bounded by dfs.qjournal.queued-edits.limit.mb.",
    ["jn"],
)
ERRORS = Counter(
    "nnha_journal_errors_total",
    "Calls that this node refused or did not answer.",
    ["jn", "code"],
)
UNCONFIRMED = Counter(
    "nnha_journal_unconfirmed_segments_total",
    "Finalized segments that one node alone lists and no other has, by whether they were used.",
    ["result"],
)
LEASE_VALID = Gauge(
    "nnha_journal_read_lease_valid",
    "Whether the writer's read lease runs (1); 0 also where nothing is written.",
)
LEASE_REMAINING = Gauge(
    "nnha_read_lease_remaining_seconds",
    "How long the writer's read lease lasts if nobody renews it; 0 also where nothing is written.",
)
LEASE_WAITS = Counter(
    "nnha_journal_read_lease_waits_total",
    "Answers that had to wait for the read lease to be renewed.",
)

_WATCHED: dict[str, object] = {}


def watch(
    node: str,
    owner: object,
    *,
    lag: Callable[[], int],
    in_sync: Callable[[], bool],
    queued_bytes: Callable[[], int],
) -> None:
    """Read these for the node's gauges when they are collected, until another owner comes."""
    _WATCHED[node] = owner
    LAG_TRANSACTIONS.labels(jn=node).set_function(lag)
    IN_SYNC.labels(jn=node).set_function(in_sync)
    QUEUED_BYTES.labels(jn=node).set_function(queued_bytes)


def forget(node: str, owner: object) -> None:
    """Take the node's gauges away, unless a later writer has taken them over."""
    if _WATCHED.get(node) is not owner:
        return
    del _WATCHED[node]
    for gauge in (LAG_TRANSACTIONS, IN_SYNC, QUEUED_BYTES):
        gauge.remove(node)

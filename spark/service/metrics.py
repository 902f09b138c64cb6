"""What the checkpoint service counts and times."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from spark.service.core import Phase

PHASE: Final = Gauge(
    "nnha_checkpointer_phase", "1 for what the service is doing at present", ["phase"]
)
DECISIONS: Final = Counter(
    "nnha_checkpointer_decisions", "What the service decided, by its log line", ["decision"]
)
MERGES: Final = Counter("nnha_checkpointer_merges", "Merges by their result", ["result"])
MERGE_DURATION: Final = Histogram(
    "nnha_checkpointer_merge_duration_seconds",
    "How long staging and merging took",
    buckets=(1, 3, 10, 30, 100, 300, 1000, 3000),
)
OFFERS: Final = Counter(
    "nnha_checkpointer_offers", "Images offered to the NameNodes, by their verdict", ["verdict"]
)
FETCHED: Final = Counter(
    "nnha_checkpointer_fetched_bytes", "Bytes of images and edits that had to be brought here"
)
FAILURES: Final = Gauge("nnha_checkpointer_failures_in_row", "Failures since the last success")
IMAGE_TXID: Final = Gauge(
    "nnha_checkpointer_image_txid", "The last edit in the active NameNode's newest image"
)
PENDING: Final = Gauge(
    "nnha_checkpointer_transactions_pending", "Edits that are in no image of the active's yet"
)
LAST_TAKEN: Final = Gauge(
    "nnha_checkpointer_last_taken_timestamp_seconds",
    "When a NameNode last took an image of this process; 0 if none has",
)


def enter_phase(present: Phase) -> None:
    """Show this phase as the present one."""
    for phase in Phase:
        PHASE.labels(phase.value).set(1.0 if phase is present else 0.0)

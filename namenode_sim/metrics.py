"""What a NameNode counts and times."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from ha.daemon.notify import SERVICE, clock_time

STATES: Final = (
    "initializing",
    "standby",
    "becoming active",
    "active",
    "becoming standby",
    "stopped",
)

SYNC_BATCH_EDITS = Histogram(
    "nnha_edit_log_batch_edits",
    "Edits that shared one durable write",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096),
)
NODE_STATE = Gauge("nnha_node_state", "1 for the role that the NameNode has", ["state"])
ACTIVE_SINCE = Gauge(
    "nnha_node_active_since_timestamp_seconds",
    "When this NameNode became active; 0 while it is not",
)
EPOCH = Gauge("nnha_epoch", "The journal epoch of this NameNode as writer; 0 while it is none")
LAST_APPLIED_TXID = Gauge("nnha_last_applied_txid", "The last edit in the namespace")
TAIL_LAG_TRANSACTIONS = Gauge(
    "nnha_tail_lag_transactions", "Edits read from the journal and not applied yet"
)
TAIL_LAG_SECONDS = Gauge(
    "nnha_tail_lag_seconds",
    "How long ago a round of following began that applied all there was; 0 on an active",
)
TAIL_APPLIED = Counter("nnha_tail_applied", "Edits applied while following the journal")
TAIL_FAILURES = Counter("nnha_tail_failures", "Rounds of following the journal that failed")
ROLE_CHANGES = Counter("nnha_role_changes", "Changes of role", ["to"])
READS_WITHOUT_LEASE = Counter(
    "nnha_reads_without_lease", "Answers not given because the read lease was not renewed in time"
)
LOCAL_EDITS_FAILED = Gauge(
    "nnha_local_edits_failed_directories", "Local edit directories that are dropped at present"
)
PARKED_CALLS = Counter("nnha_parked_calls", "Client calls held back during a takeover", ["outcome"])
CHECKPOINTS = Counter("nnha_checkpoints", "Images saved as standby", ["result"])
CHECKPOINT_DURATION = Histogram(
    "nnha_checkpoint_duration_seconds",
    "How long saving an image took",
    buckets=(0.01, 0.1, 1, 10, 60, 300, 1800),
)
CHECKPOINT_SUCCESS = Gauge(
    "nnha_checkpoint_last_success_timestamp_seconds",
    "When this process last saved an image; 0 if it has not",
)
CHECKPOINT_PENDING = Gauge(
    "nnha_checkpoint_transactions_pending", "Edits applied since the newest image here"
)
CHECKPOINT_TXID = Gauge("nnha_last_checkpoint_txid", "The last edit in the newest image here")
TOKENS = Gauge("nnha_delegation_tokens", "Delegation tokens that have not ended or been cancelled")
UPLOADS = Counter("nnha_checkpoint_uploads", "Images offered to other NameNodes", ["answer"])
IMAGES_RECEIVED = Counter("nnha_images_received", "Images taken from a standby or a merge")


for _result in ("saved", "failed", "abandoned"):
    CHECKPOINTS.labels(_result)  # an increase is seen only of a counter that was there before
for _state in STATES:
    ROLE_CHANGES.labels(_state)


def enter_state(present: str, epoch: int = 0) -> None:
    """Show this role as the present one; ``epoch``: of the writer, 0 while it is none."""
    writing = f", epoch {epoch}" if epoch else ""
    SERVICE.status(f"{present}{writing}, since {clock_time()}")
    EPOCH.set(epoch)
    for state in STATES:
        NODE_STATE.labels(state).set(1.0 if state == present else 0.0)
    if present == "active":
        ACTIVE_SINCE.set_to_current_time()
    else:
        ACTIVE_SINCE.set(0.0)

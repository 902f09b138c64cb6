"""What a NameNode counts and times (operators E.1)."""

from prometheus_client import Counter, Enum, Gauge, Histogram

SYNC_SECONDS = Histogram(
    "nnha_journal_append_duration_seconds",
    "From sending a batch of edits until a quorum has it",
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 20),
)
SYNC_BATCH_EDITS = Histogram(
    "nnha_journal_append_batch_edits",
    "Edits that shared one durable write",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096),
)
EDITS_DURABLE = Counter("nnha_journal_edits", "Edits that a quorum has acknowledged")
NODE_STATE = Enum(
    "nnha_node_state",
    "The NameNode's role",
    states=["standby", "becoming active", "active", "becoming standby", "stopped"],
)
EPOCH = Gauge("nnha_epoch", "The journal epoch of this NameNode as writer; 0 while it is none")
LAST_APPLIED_TXID = Gauge("nnha_last_applied_txid", "The last edit in the namespace")
TAIL_APPLIED = Counter("nnha_tail_applied", "Edits applied while following the journal")
TAIL_FAILURES = Counter("nnha_tail_failures", "Rounds of following the journal that failed")
ROLE_CHANGES = Counter("nnha_role_changes", "Changes of role", ["to"])
PARKED_CALLS = Counter("nnha_parked_calls", "Client calls held back during a takeover", ["outcome"])

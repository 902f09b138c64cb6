"""The limits and deadlines of the journal's client; Hadoop's defaults.

See docs/reference/quorum-journal.md#deadlines.
"""

from dataclasses import fields
from typing import Final

from ha.record import dataclass

MIB = 1024 * 1024
NODE_PATIENCE: Final = 2
"""A single node gets this many times the quorum's deadline, because the quorum's is the one that
is aware of our own pauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How long a writer waits for a quorum, and how much it keeps for a slow node.

    Each deadline is for the quorum: one slow node among enough good ones never spends it.
    """

    get_journal_state_timeout_seconds: float = 120.0
    new_epoch_timeout_seconds: float = 120.0
    prepare_recovery_timeout_seconds: float = 120.0
    accept_recovery_timeout_seconds: float = 120.0
    finalize_segment_timeout_seconds: float = 120.0
    start_segment_timeout_seconds: float = 20.0
    write_txns_timeout_seconds: float = 20.0
    operations_timeout_seconds: float = 60.0
    queued_edits_limit_bytes: int = 10 * MIB
    merged_write_limit_bytes: int = 512 * 1024
    heartbeat_interval_seconds: float = 1.0
    read_lease_seconds: float = 0.0
    """0: reads without a lease, for ever."""

    def __post_init__(self) -> None:
        """Refuse limits that cannot work."""
        _ensure_positive(self, "queued_edits_limit_bytes", "read_lease_seconds")
        if self.merged_write_limit_bytes > 32 * MIB:
            raise ValueError("merged_write_limit_bytes must stay well below gRPC's 64 MiB")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """How long a reader waits, and how much it hands out at once.

    ``rpc_max_txns`` edits are asked for at once of the nodes' memory; a node behind the majority
    that may hold more durable edits is waited for as long as ``straggler_seconds``.  A node that is
    silent for ``source_patience_seconds`` while a segment is read from it is left for another one
    that has the segment, too; the last one gets the deadlines above.
    """

    select_input_streams_timeout_seconds: float = 20.0
    http_open_timeout_seconds: float = 60.0
    http_read_timeout_seconds: float = 60.0
    chunk_bytes: int = MIB
    rpc_max_txns: int = 5000
    straggler_seconds: float = 0.25
    source_patience_seconds: float = 1.0
    refuse_unconfirmed: bool = False
    """Whether a finalized segment that one node alone lists is refused where no other has it."""

    def __post_init__(self) -> None:
        """Refuse limits that cannot work."""
        _ensure_positive(self, "refuse_unconfirmed")


def _ensure_positive(settings: WriterSettings | ReaderSettings, *may_be_zero: str) -> None:
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value < 0 or (value == 0 and field.name not in may_be_zero):
            raise ValueError(f"{field.name} must be positive, not {value}")

"""The status of one JournalNode, as a writer reports it."""

from ha.record import dataclass
from journal.model import NodeName, TxId


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """One node on a status page.

    ``in_sync``: it takes part in the open segment and has all its edits.  A ``learner`` gets edits
    like the others, but has no vote before it is admitted.  ``via`` is what carries its batches:
    ``lane``, ``stream`` or ``none``.
    """

    node: NodeName
    in_sync: bool
    acked_txid: TxId
    lag_transactions: int
    last_error: str | None
    queued_bytes: int = 0
    learner: bool = False
    via: str = "none"

"""The replies to requests about one journal."""

from ha.record import dataclass, record
from journal.core.state import Decision
from journal.model import NO_TXID, Epoch, Segment, TxId


@record
class Done:
    """The request was carried out."""


@dataclass(frozen=True, slots=True)
class JournalStateReply:
    """The answer to GetJournalState."""

    promised: Epoch


@dataclass(frozen=True, slots=True)
class Manifest:
    """The readable segments in order, and the highest txid known to be on a quorum.

    Edits before ``purged`` were purged here.
    """

    segments: tuple[Segment, ...]
    committed: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class Promised:
    """The answer to NewEpoch: the first txid of our newest segment with an edit."""

    last_segment_first: TxId | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The answer to PrepareRecovery.

    ``segment`` is that of ``decision``, the accepted recovery, if there is one; else our copy.
    """

    segment: Segment | None
    decision: Decision | None
    writer: Epoch
    committed: TxId


@dataclass(frozen=True, slots=True)
class Fetch:
    """Our copy is missing or differs, so the decided segment must be downloaded first."""

    segment: Segment
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class FetchFinalized:
    """The finalized segment must be downloaded from a peer first."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class Resumed:
    """The segment is open, and this is its next edit."""

    next_txid: TxId


@dataclass(frozen=True, slots=True)
class RollBackAnswer:
    """The answer to CanRollBack."""

    possible: bool


@dataclass(frozen=True, slots=True)
class CTime:
    """The answer to GetJournalCTime, in milliseconds since 1970."""

    value: int


Reply = (
    RollBackAnswer
    | CTime
    | FetchFinalized
    | Done
    | JournalStateReply
    | Manifest
    | Promised
    | Prepared
    | Fetch
    | Resumed
)

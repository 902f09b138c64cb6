"""What a writer or a reader is answered about one journal."""

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

    Edits before ``purged`` were let go of here.
    """

    segments: tuple[Segment, ...]
    committed: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class Promised:
    """The answer to NewEpoch: where our newest segment with an edit in it starts."""

    last_segment_first: TxId | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What this node knows about a segment.

    With ``decision`` the segment is what was accepted; otherwise it is what lies on the disk.
    """

    segment: Segment | None
    decision: Decision | None
    writer: Epoch
    committed: TxId


@dataclass(frozen=True, slots=True)
class Fetch:
    """Our copy is missing or differs: the decided bytes must be downloaded first."""

    segment: Segment
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class FetchFinalized:
    """The bytes of that finalized segment must be brought from a peer first."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class Resumed:
    """The segment is open; this edit comes next."""

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

"""The requests to one journal.

The rules of each request: docs/reference/journal-node.md.
"""

from ha.record import dataclass, field, record
from journal.model import NO_TXID, Epoch, NamespaceInfo, Segment, TxId


@record
class Stamp:
    """The writer's stamp in each of its requests (Hadoop's RequestInfo).

    ``committed`` is the highest edit that the writer knows to be on a quorum, or None.
    ``read_lease_micros`` is how long an answer of a majority lets it serve reads.  ``namespace_id``
    is that of the writer's file system; None if the request has none, as Hadoop's.
    """

    epoch: Epoch
    serial: int
    committed: TxId | None = None
    read_lease_micros: int = 0
    namespace_id: int | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """Create an empty journal for a namespace; ``force`` deletes an existing one.

    ``founding``: all nodes of the journal are formatted together; a node that is formatted alone
    has no vote.  ``incarnation`` is a new unique name.  With ``force``, ``seen_promised`` and
    ``seen_namespace_id`` are what the operator saw of the journal to delete.
    """

    namespace: NamespaceInfo
    force: bool = False
    founding: bool = True
    incarnation: str = field(kw_only=True)
    seen_promised: Epoch | None = None
    seen_namespace_id: int | None = None


@dataclass(frozen=True, slots=True)
class GetJournalState:
    """Return the promised epoch."""


@dataclass(frozen=True, slots=True)
class GetEditLogManifest:
    """Return the segments that can be read from a txid on."""

    since: TxId
    in_progress_ok: bool = False


@dataclass(frozen=True, slots=True)
class NewEpoch:
    """Promise an epoch: refuse all writers of older epochs."""

    namespace: NamespaceInfo
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class StartLogSegment:
    """Begin a segment."""

    stamp: Stamp
    first: TxId
    layout_version: int


@record
class Journal:
    """Append a batch of framed edits to the open segment."""

    stamp: Stamp
    segment_first: TxId
    first: TxId
    count: int
    records: bytes


@record
class Heartbeat:
    """Send the committed txid; the writer learns whether it is fenced."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class FinalizeLogSegment:
    """Finalize a segment if it has the end and the digest of the request.

    ``digest`` is None from a writer that computes none, as Hadoop's.
    """

    stamp: Stamp
    first: TxId
    last: TxId
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class PrepareRecovery:
    """Return the node's copy of a segment, and the recovery of it that was accepted."""

    stamp: Stamp
    first: TxId


@dataclass(frozen=True, slots=True)
class PeekRecovery:
    """Return what PrepareRecovery would answer, for the newest segment if none is named.

    It changes nothing, so the answer may be out of date when it arrives.
    """

    first: TxId | None


@dataclass(frozen=True, slots=True)
class AcceptRecovery:
    """Accept the outcome of a recovery for a segment.

    If our copy differs the answer is Fetch; the bytes are then downloaded while other requests
    are served, and AdoptRecovery finishes the acceptance.
    """

    stamp: Stamp
    segment: Segment


@dataclass(frozen=True, slots=True)
class AdoptRecovery:
    """Finish AcceptRecovery (sent by the node itself): the segment was downloaded and verified."""

    epoch: Epoch
    segment: Segment


@dataclass(frozen=True, slots=True)
class LearnDigest:
    """Compute the content digest of a closed segment (sent by the node itself)."""

    first: TxId


@dataclass(frozen=True, slots=True)
class AdoptFinalized:
    """Adopt a segment that a peer has finalized (sent by the node itself).

    If our copy differs or is missing the answer is FetchFinalized; after the download the request
    is sent again with ``fetched``.  ``stalled_at`` is the next txid of our open segment of the same
    start if that has had no edits for a while: then this node has missed its finalization.
    """

    segment: Segment
    fetched: bool = False
    stalled_at: TxId | None = None


@dataclass(frozen=True, slots=True)
class ResumeSegment:
    """Open this writer's segment again after its last edit here."""

    stamp: Stamp
    first: TxId
    layout_version: int


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Open this writer's segment with all edits up to a committed one.

    If we lack some of it the answer is Fetch; AdoptCatchUp finishes it, as for AcceptRecovery.
    """

    stamp: Stamp
    segment: Segment
    layout_version: int


@dataclass(frozen=True, slots=True)
class AdoptCatchUp:
    """Finish CatchUp (sent by the node itself): ``size_bytes`` were downloaded and verified."""

    epoch: Epoch
    segment: Segment
    layout_version: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PurgeLogs:
    """Remove the segments that end before ``minimum``."""

    stamp: Stamp
    minimum: TxId


@dataclass(frozen=True, slots=True)
class Admit:
    """Give a learner its vote back if it holds all edits that it may have acknowledged.

    The writer sends it after a majority of voters, without the learner, has answered a request that
    was sent after the decision to admit.  So no other writer relies on a promise that the learner
    has lost.

    ``incarnation`` is that of the learner.  ``required`` are the finalized segments of the voters
    in order; it must also hold all edits up to ``committed`` (or 0).  ``purged`` is the voters'
    highest purge point: no voter may have edits before it.
    """

    stamp: Stamp
    incarnation: str
    required: tuple[Segment, ...]
    committed: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class AdmitFounding:
    """Give a node its vote on an operator's request, for a journal imported on all nodes."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class AdmitByVoters:
    """Give a learner its vote back by the voters' answers (sent by the node itself).

    A majority of all nodes, without this one, held edits up to ``reached`` when it was a learner
    already; has finalized ``required`` since; and reported ``epoch`` as its promise after that.
    ``purged`` is the highest purge point among them.

    See docs/reference/quorum-journal.md#a-vote-without-the-writers-word.
    """

    incarnation: str
    epoch: Epoch
    required: tuple[Segment, ...]
    reached: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class ReportDamage:
    """Report that a scan found a closed segment damaged (sent by the node itself)."""

    first: TxId
    why: str


@dataclass(frozen=True, slots=True)
class PreUpgrade:
    """Keep a copy of the journal, for a roll-back of the upgrade."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Adopt a layout version and a creation time."""

    stamp: Stamp
    namespace: NamespaceInfo


@dataclass(frozen=True, slots=True)
class FinalizeUpgrade:
    """Delete the copy for a roll-back."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class RollBack:
    """Restore the state before the upgrade."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class DiscardSegments:
    """Rename all segments from ``first`` on to ``.trash``."""

    stamp: Stamp
    first: TxId


@dataclass(frozen=True, slots=True)
class CanRollBack:
    """Return whether a state before an upgrade exists, of a layout that the caller can read."""

    namespace: NamespaceInfo
    target_layout_version: int


@dataclass(frozen=True, slots=True)
class GetJournalCTime:
    """Return when the journal was last upgraded."""


UpgradeStep = PreUpgrade | Upgrade | FinalizeUpgrade | RollBack | DiscardSegments
Stamped = (
    StartLogSegment
    | Journal
    | Heartbeat
    | FinalizeLogSegment
    | PrepareRecovery
    | AcceptRecovery
    | PurgeLogs
    | UpgradeStep
    | ResumeSegment
    | CatchUp
    | Admit
)
Request = (
    Stamped
    | Format
    | GetJournalState
    | GetEditLogManifest
    | NewEpoch
    | AdoptRecovery
    | AdoptCatchUp
    | AdmitFounding
    | AdmitByVoters
    | ReportDamage
    | AdoptFinalized
    | CanRollBack
    | GetJournalCTime
    | LearnDigest
    | PeekRecovery
)

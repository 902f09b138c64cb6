"""What a writer or a reader may ask of one journal.

The rules of each request: docs/reference/journal-node.md.
"""

from ha.record import dataclass, field, record
from journal.model import NO_TXID, Epoch, NamespaceInfo, Segment, TxId


@record
class Stamp:
    """The writer's stamp, which each of its calls carries.

    ``committed`` is the highest edit that the writer knows to be on a quorum, or None.
    ``read_lease_micros`` says how long a majority's yes lets it serve reads.  ``namespace_id`` is
    that of the writer's file system, None where the request lacks it, as Hadoop's do.
    """

    epoch: Epoch
    serial: int
    committed: TxId | None = None
    read_lease_micros: int = 0
    namespace_id: int | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """Make an empty journal for a namespace; ``force`` destroys what is there.

    ``founding`` says that all nodes of the journal are formatted together.  A node that is
    formatted alone has no vote.  ``incarnation`` is a name that no folder ever had.
    By force over a journal the caller says what it saw there: ``seen_promised``, and the id of the
    file system that the journal belongs to.
    """

    namespace: NamespaceInfo
    force: bool = False
    founding: bool = True
    incarnation: str = field(kw_only=True)
    seen_promised: Epoch | None = None
    seen_namespace_id: int | None = None


@dataclass(frozen=True, slots=True)
class GetJournalState:
    """What was promised."""


@dataclass(frozen=True, slots=True)
class GetEditLogManifest:
    """Which segments can be read from a txid on."""

    since: TxId
    in_progress_ok: bool = False


@dataclass(frozen=True, slots=True)
class NewEpoch:
    """Promise never to serve an older writer again."""

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
    """Write a batch of framed ops to the open segment."""

    stamp: Stamp
    segment_first: TxId
    first: TxId
    count: int
    records: bytes


@record
class Heartbeat:
    """Carry the committed txid, and find out whether we are fenced."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class FinalizeLogSegment:
    """Close a segment for good, if its bytes are those that the writer means.

    ``digest`` is None where the writer keeps none, as Hadoop's does.
    """

    stamp: Stamp
    first: TxId
    last: TxId
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class PrepareRecovery:
    """Say what is here of a segment, and what was accepted about it."""

    stamp: Stamp
    first: TxId


@dataclass(frozen=True, slots=True)
class PeekRecovery:
    """Ask what PrepareRecovery would answer, of the newest segment if none is named.

    Nothing is promised and nothing is closed, so the answer may be old when it arrives.
    """

    first: TxId | None


@dataclass(frozen=True, slots=True)
class AcceptRecovery:
    """Accept what a recovery decided about a segment.

    If our copy differs the answer is Fetch; the bytes are then downloaded while other requests
    are served, and AdoptRecovery finishes the acceptance.
    """

    stamp: Stamp
    segment: Segment


@dataclass(frozen=True, slots=True)
class AdoptRecovery:
    """The node's own second half of AcceptRecovery: the verified bytes lie next to our copy."""

    epoch: Epoch
    segment: Segment


@dataclass(frozen=True, slots=True)
class LearnDigest:
    """The node's own: know the content digest of a closed segment from here on."""

    first: TxId


@dataclass(frozen=True, slots=True)
class AdoptFinalized:
    """The node's own: a peer has finalized this segment, so it is final.

    If our bytes differ or are missing the answer is FetchFinalized; when the bytes have been
    fetched and verified it is asked again with ``fetched``.  ``stalled_at`` is the next txid of
    our open segment of the same start, where that has made no progress for a while: a segment
    that is finalized elsewhere gets no more edits, so this node has missed its end.
    """

    segment: Segment
    fetched: bool = False
    stalled_at: TxId | None = None


@dataclass(frozen=True, slots=True)
class ResumeSegment:
    """Go on with the segment that this writer writes, behind what is here of it."""

    stamp: Stamp
    first: TxId
    layout_version: int


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Have the open segment up to a committed edit, and go on behind it.

    If we lack some of it the answer is Fetch; AdoptCatchUp finishes it, as for AcceptRecovery.
    """

    stamp: Stamp
    segment: Segment
    layout_version: int


@dataclass(frozen=True, slots=True)
class AdoptCatchUp:
    """The node's own second half of CatchUp: ``size_bytes`` verified bytes lie next to our copy."""

    epoch: Epoch
    segment: Segment
    layout_version: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PurgeLogs:
    """Let go of the segments that end before ``minimum``."""

    stamp: Stamp
    minimum: TxId


@dataclass(frozen=True, slots=True)
class Admit:
    """Give a learner its vote again, if it holds everything that its vote may be about.

    The writer sends it after a majority of voters, the learner not counted, has answered a call
    that it began after its decision: so no other writer relies on a promise that this learner has
    forgotten.

    ``incarnation`` is the learner that is meant, and no later one; ``required`` is what is
    finalized on the voters, in order; everything up to ``committed`` must be held as well, or 0.
    ``purged`` is the highest purge point of the voters: edits before it may be on none of them.
    """

    stamp: Stamp
    incarnation: str
    required: tuple[Segment, ...]
    committed: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class AdmitFounding:
    """An operator's word for a journal that was imported whole: every node of it is a voter."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class AdmitByVoters:
    """The node's own: the voters have shown that nothing depends on what this learner forgot.

    A majority of all nodes, this one not counted, held edits up to ``reached`` when it was a
    learner already; has finalized ``required`` since; and has promised ``epoch``, and no newer one,
    when it was asked behind that.  ``purged`` is the highest purge point among them.

    See docs/reference/quorum-journal.md#a-vote-without-the-writers-word.
    """

    incarnation: str
    epoch: Epoch
    required: tuple[Segment, ...]
    reached: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class ReportDamage:
    """The node's own: a scan found that a closed segment's bytes are not what was written."""

    first: TxId
    why: str


@dataclass(frozen=True, slots=True)
class PreUpgrade:
    """Keep the journal as it is, so that an upgrade can be taken back."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Adopt a layout version and a creation time."""

    stamp: Stamp
    namespace: NamespaceInfo


@dataclass(frozen=True, slots=True)
class FinalizeUpgrade:
    """Give up the way back."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class RollBack:
    """Go back to the state before the upgrade."""

    stamp: Stamp


@dataclass(frozen=True, slots=True)
class DiscardSegments:
    """Put every segment from ``first`` on out of the way."""

    stamp: Stamp
    first: TxId


@dataclass(frozen=True, slots=True)
class CanRollBack:
    """Is there a state before an upgrade, of a layout that the caller can read?"""

    namespace: NamespaceInfo
    target_layout_version: int


@dataclass(frozen=True, slots=True)
class GetJournalCTime:
    """When was the journal upgraded last?"""


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

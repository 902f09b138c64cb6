"""What a step asks of the disk.  Each is durable when it has been carried out, in order."""

from ha.record import dataclass, record
from journal.core.replies import Reply
from journal.core.state import Decision, JournalState
from journal.errors import JournalError
from journal.model import Epoch, NamespaceInfo, Segment, TxId


@dataclass(frozen=True, slots=True)
class FormatStorage:
    """Destroy what is there and begin an empty journal."""

    namespace: NamespaceInfo
    incarnation: str
    founding: bool


@dataclass(frozen=True, slots=True)
class PersistAdmission:
    """A vote for this incarnation from now on, by a writer's word or, with None, the founders'."""

    incarnation: str
    epoch: Epoch | None


@dataclass(frozen=True, slots=True)
class PersistPromise:
    """Never forget that this epoch was promised."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PersistWriter:
    """Remember whose segment was started last."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PersistReadLease:
    """Remember, also after a restart, for how long some writer may yet serve reads."""

    micros: int


@record
class RememberCommitted:
    """Note a lower bound of what is on a quorum.  The one effect that need not be durable."""

    txid: TxId


@dataclass(frozen=True, slots=True)
class MoveAside:
    """Take an abandoned in-progress file out of the way, for good; its edits are void."""

    first: TxId


@dataclass(frozen=True, slots=True)
class CreateSegment:
    """Begin an empty in-progress file; its writer is recorded before the file gets its name."""

    first: TxId
    layout_version: int
    writer: Epoch


@dataclass(frozen=True, slots=True)
class RecordSegment:
    """Note next to the file its writer and, once they are settled, its end and its digest."""

    segment: Segment


@record
class AppendEdits:
    """Append checked frames to the open file."""

    segment_first: TxId
    count: int
    records: bytes


@dataclass(frozen=True, slots=True)
class AbandonSegment:
    """Close the open file as it is; move it aside if it holds no edit."""

    first: TxId
    empty: bool


@dataclass(frozen=True, slots=True)
class FinalizeSegment:
    """Close the file for good: record end and digest, cut what follows the last edit, rename it."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class PersistDecision:
    """Remember an accepted recovery.  From here on a crash rolls forward.

    See docs/reference/journal-node.md#acceptrecovery.
    """

    decision: Decision


@dataclass(frozen=True, slots=True)
class ForgetDecision:
    """The segment is finalized or begun anew: its recovery is history."""

    first: TxId


@dataclass(frozen=True, slots=True)
class ReopenSegment:
    """Open an in-progress file again: cut what follows the last sound edit, append behind it.

    ``digest`` is the content digest of those edits, or empty where it is not known.
    """

    first: TxId
    layout_version: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class DropDownload:
    """Remove downloaded bytes that are of no use."""

    first: TxId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class AdoptDownload:
    """Put the bytes downloaded for this epoch, and their record, in place of our copy."""

    segment: Segment
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class AdoptFetched:
    """Put a finalized segment, fetched whole from a peer, in place of what we hold of it."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class PurgeFiles:
    """Remove these segments, these decisions, and whatever else was left before ``minimum``."""

    minimum: TxId
    segments: tuple[Segment, ...]
    decisions: tuple[TxId, ...]


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Keep everything as it is in a folder next to the journal."""


@dataclass(frozen=True, slots=True)
class PersistNamespace:
    """Write VERSION; what was kept next to the journal is the way back from here on."""

    namespace: NamespaceInfo


@dataclass(frozen=True, slots=True)
class DropPrevious:
    """Remove what was kept."""


@dataclass(frozen=True, slots=True)
class RestorePrevious:
    """Put what was kept in the journal's place, but for its identity and this promise.

    What the journal holds then must be loaded anew.
    """

    promised: Epoch


@dataclass(frozen=True, slots=True)
class DiscardFiles:
    """Move these segments aside as ``.trash``, and forget the decisions about them."""

    first: TxId
    segments: tuple[Segment, ...]
    decisions: tuple[TxId, ...]


UpgradeEffect = TakeSnapshot | PersistNamespace | DropPrevious | RestorePrevious | DiscardFiles
RareEffect = (
    FormatStorage
    | PersistAdmission
    | PersistPromise
    | PersistWriter
    | PersistReadLease
    | CreateSegment
    | RecordSegment
    | AbandonSegment
    | FinalizeSegment
    | PersistDecision
    | ForgetDecision
    | AdoptDownload
    | ReopenSegment
    | MoveAside
    | DropDownload
    | PurgeFiles
    | AdoptFetched
    | UpgradeEffect
)
Effect = AppendEdits | RememberCommitted | RareEffect
"""A batch has the first two only, which can share a sync; nothing else can."""


@record
class Step:
    """One decision: carry out ``effects``, then remember ``state``, then answer ``reply``.

    ``reply`` is an error where the request was refused but something is to be remembered all
    the same, such as a newer writer's epoch.
    """

    state: JournalState
    effects: tuple[Effect, ...]
    reply: Reply | JournalError

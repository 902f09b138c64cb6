"""The effects of a step on the disk; they are carried out in order, and each is then durable."""

from ha.record import dataclass, record
from journal.core.replies import Reply
from journal.core.state import Decision, JournalState
from journal.errors import JournalError
from journal.model import Epoch, NamespaceInfo, Segment, TxId


@dataclass(frozen=True, slots=True)
class FormatStorage:
    """Delete the journal's files, and begin an empty journal."""

    namespace: NamespaceInfo
    incarnation: str
    founding: bool


@dataclass(frozen=True, slots=True)
class PersistAdmission:
    """Record that this incarnation has a vote, given by a writer or, with None, at the format."""

    incarnation: str
    epoch: Epoch | None


@dataclass(frozen=True, slots=True)
class PersistPromise:
    """Record the promised epoch."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PersistWriter:
    """Record the epoch that started the last segment (last-writer-epoch)."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PersistReadLease:
    """Record the longest read lease that a writer may still hold."""

    micros: int


@record
class RememberCommitted:
    """Note a lower bound of the committed edits; the only effect that need not be durable."""

    txid: TxId


@dataclass(frozen=True, slots=True)
class MoveAside:
    """Rename an abandoned in-progress file for good; its edits are void."""

    first: TxId


@dataclass(frozen=True, slots=True)
class CreateSegment:
    """Create an empty in-progress file; its writer is recorded before the file gets its name."""

    first: TxId
    layout_version: int
    writer: Epoch


@dataclass(frozen=True, slots=True)
class RecordSegment:
    """Record the segment's writer and, once they are final, its end and digest."""

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
    """Record end and digest, truncate the file after the last edit, and rename it."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class PersistDecision:
    """Record an accepted recovery; after a crash it is completed.

    See docs/reference/journal-node.md#acceptrecovery.
    """

    decision: Decision


@dataclass(frozen=True, slots=True)
class ForgetDecision:
    """Delete the accepted recovery: the segment is finalized or begun anew."""

    first: TxId


@dataclass(frozen=True, slots=True)
class ReopenSegment:
    """Open an in-progress file again, truncated after the last sound edit.

    ``digest`` is the content digest of its edits; empty if unknown.
    """

    first: TxId
    layout_version: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class DropDownload:
    """Delete downloaded bytes that are not needed."""

    first: TxId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class AdoptDownload:
    """Replace our copy by the bytes that were downloaded for this epoch, and record them."""

    segment: Segment
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class AdoptFetched:
    """Replace our copy by a finalized segment that was fetched from a peer."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class PurgeFiles:
    """Delete these segments and decisions, and all other files before ``minimum``."""

    minimum: TxId
    segments: tuple[Segment, ...]
    decisions: tuple[TxId, ...]


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Copy the journal to a folder next to it."""


@dataclass(frozen=True, slots=True)
class PersistNamespace:
    """Write VERSION; the copy next to the journal becomes the state for a roll-back."""

    namespace: NamespaceInfo


@dataclass(frozen=True, slots=True)
class DropPrevious:
    """Delete the copy."""


@dataclass(frozen=True, slots=True)
class RestorePrevious:
    """Restore the copy, but keep the journal's identity and this promise.

    The journal must be loaded again after that.
    """

    promised: Epoch


@dataclass(frozen=True, slots=True)
class DiscardFiles:
    """Rename these segments to ``.trash``, and delete the decisions about them."""

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
"""A batch has only the first two, which can share a sync."""


@record
class Step:
    """One decision: carry out ``effects``, then adopt ``state``, then send ``reply``.

    ``reply`` is an error if the request was refused and still changes the state, for instance
    because it has a newer epoch.
    """

    state: JournalState
    effects: tuple[Effect, ...]
    reply: Reply | JournalError

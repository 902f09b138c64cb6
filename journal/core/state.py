"""What one node has promised and holds for one journal."""

from collections.abc import Mapping
from typing import Final

from ha.record import dataclass, field, record, replace
from journal.model import NO_EPOCH, NO_TXID, Epoch, NamespaceInfo, Segment, TxId

NO_SERIAL: Final = -1
"""No request of the promised epoch has been sent yet."""
SERIAL_UNKNOWN: Final = -2
"""Requests of the promised epoch may have been seen, or sent elsewhere, before this one."""


@record
class OpenSegment:
    """The segment that the writer is writing; it does not survive a restart.

    ``digest`` is the content digest up to ``next_txid - 1``, or empty where it was not asked for
    yet. ``writer`` is the epoch that started the segment.
    """

    first: TxId
    next_txid: TxId
    digest: bytes = b""
    writer: Epoch = NO_EPOCH
    layout_version: int = 0

    @property
    def empty(self) -> bool:
        """Whether no edit has been written to it."""
        return self.next_txid == self.first

    def as_segment(self) -> Segment:
        """Return the in-progress segment that it becomes once its writer is gone."""
        return Segment(
            self.first,
            TxId(self.next_txid - 1),
            finalized=False,
            digest=self.digest,
            writer=self.writer,
            layout_version=self.layout_version,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """A recovery that this node accepted: the segment as it must be, and by whose word.

    ``segment`` is a copy of the source's state, so it may say finalized where our file is not.
    """

    segment: Segment
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Damage:
    """A segment whose bytes here are not what was written, as far as it is known, and why.

    ``size_bytes`` is the length of its file where it is not known which edits lie behind the
    damage, else 0.
    """

    segment: Segment
    why: str
    size_bytes: int = 0


@record
class JournalState:
    """Everything that the rules of docs/reference/journal-node.md look at.

    ``segments`` has every segment with at least one edit, by first txid in rising order, and not
    the open one.  It has one entry per first txid, so two live files of one start cannot occur.
    ``damaged`` has segments that a scan found damaged: they are in no list, are not served and have
    no vote, until a recovery or a peer has replaced them. ``committed`` is what is known to be on a
    quorum, as far as the edits are here; ``claimed`` is what the writer last said, and decides
    nothing: the edits behind may never have existed. ``purged`` is the highest txid before which
    edits were let go of; peers may hold them still. A ``learner`` may have forgotten what it
    promised and held: it takes part in everything, and has no vote until a writer has admitted this
    ``incarnation`` of it. ``start_heard`` is the epoch of the writer that last asked this learner,
    since it was loaded, to begin a segment: that writer has finished its recovery.
    ``read_lease_micros`` is the longest read lease that a writer up to now may still hold.
    ``previous`` is what the journal was before an upgrade that can still be taken back, and
    ``upgrade_begun`` says that it is being kept for one that has not happened yet. ``occupied``
    says that an unformatted journal's folder holds files that format would destroy.
    """

    namespace: NamespaceInfo | None = None
    occupied: bool = False
    incarnation: str = ""
    learner: bool = False
    start_heard: Epoch = NO_EPOCH
    promised: Epoch = NO_EPOCH
    writer: Epoch = NO_EPOCH
    serial: int = SERIAL_UNKNOWN
    committed: TxId = NO_TXID
    claimed: TxId = NO_TXID
    purged: TxId = NO_TXID
    read_lease_micros: int = 0
    previous: NamespaceInfo | None = None
    upgrade_begun: bool = False
    open: OpenSegment | None = None
    segments: Mapping[TxId, Segment] = field(default_factory=dict)
    decisions: Mapping[TxId, Decision] = field(default_factory=dict)
    damaged: Mapping[TxId, Damage] = field(default_factory=dict)

    @property
    def last_written(self) -> TxId:
        """The last edit of the open segment, else the highest one held, or NO_TXID.

        What an older writer left above the open segment is nothing that its writer has written.
        """
        if self.open is not None and not self.open.empty:
            return TxId(self.open.next_txid - 1)
        held = [*self.segments.values(), *(damage.segment for damage in self.damaged.values())]
        return max((segment.last for segment in held), default=NO_TXID)

    @property
    def newest(self) -> TxId | None:
        """Where the newest closed segment with an edit starts, damaged or not."""
        return max((*self.segments, *self.damaged), default=None)

    def find(self, first: TxId) -> Segment | None:
        """Return the closed segment that starts at this txid, or None."""
        return self.segments.get(first)

    def after_batch(
        self, serial: int, committed: TxId, claimed: TxId, next_txid: TxId
    ) -> "JournalState":
        """Return the state after a batch of the open segment, at a third of ``replace``'s cost."""
        opened = self.open
        assert opened is not None  # the caller has checked it
        return JournalState(
            self.namespace,
            self.occupied,
            self.incarnation,
            self.learner,
            self.start_heard,
            self.promised,
            self.writer,
            serial,
            committed,
            claimed,
            self.purged,
            self.read_lease_micros,
            self.previous,
            self.upgrade_begun,
            OpenSegment(opened.first, next_txid, b"", opened.writer, opened.layout_version),
            self.segments,
            self.decisions,
            self.damaged,
        )

    def with_segment(self, segment: Segment) -> "JournalState":
        """Put a closed segment into the catalogue, in place of one with the same start."""
        entries = {**self.segments, segment.first: segment}
        damaged = {k: v for k, v in self.damaged.items() if k != segment.first}
        return replace(self, segments=dict(sorted(entries.items())), damaged=damaged)

    def without_segment(self, first: TxId) -> "JournalState":
        """Take a segment out of the catalogue."""
        return replace(
            self,
            segments={k: v for k, v in self.segments.items() if k != first},
            damaged={k: v for k, v in self.damaged.items() if k != first},
        )

    def with_damage(self, first: TxId, why: str) -> "JournalState":
        """Take a closed segment out of the catalogue because its bytes are damaged."""
        segment = self.find(first)
        if segment is None:
            return self
        damaged = {**self.damaged, first: Damage(segment, why)}
        return replace(self.without_segment(first), damaged=damaged)

    def with_decision(self, decision: Decision) -> "JournalState":
        """Remember an accepted recovery."""
        return replace(self, decisions={**self.decisions, decision.segment.first: decision})

    def without_decision(self, first: TxId) -> "JournalState":
        return replace(self, decisions={k: v for k, v in self.decisions.items() if k != first})


def learn_digest(state: JournalState, learned: Segment) -> JournalState:
    """Fill in a content digest that storage has computed; it changes no decision by itself."""
    if state.open is not None and state.open.first == learned.first:
        if state.open.next_txid - 1 != learned.last:
            return state
        return replace(state, open=replace(state.open, digest=learned.digest))
    known = state.find(learned.first)
    if known is None or known.last != learned.last:
        return state
    layout = known.layout_version or learned.layout_version
    return state.with_segment(replace(known, digest=learned.digest, layout_version=layout))


def digest_unknown(state: JournalState, first: TxId) -> bool:
    """Return whether storage must first compute a digest to compare contents at ``first``."""
    if state.open is not None and state.open.first == first:
        return not state.open.empty and not state.open.digest
    known = state.find(first)
    return known is not None and not known.digest

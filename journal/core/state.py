"""The state of one journal on one node: its promises and segments."""

from collections.abc import Mapping
from typing import Final

from ha.record import dataclass, field, record, replace
from journal.model import NO_EPOCH, NO_TXID, Epoch, NamespaceInfo, Segment, TxId

NO_SERIAL: Final = -1
"""No request of the promised epoch has been sent yet."""
SERIAL_UNKNOWN: Final = -2
"""Requests of the promised epoch may have been sent before, here or to other nodes."""


@record
class OpenSegment:
    """The segment that the writer is writing; it does not survive a restart.

    ``digest`` is the content digest up to ``next_txid - 1``, or empty if it was not computed.
    ``writer`` is the epoch that started the segment.
    """

    first: TxId
    next_txid: TxId
    digest: bytes = b""
    writer: Epoch = NO_EPOCH
    layout_version: int = 0

    @property
    def empty(self) -> bool:
        """Whether it has no edits."""
        return self.next_txid == self.first

    def as_segment(self) -> Segment:
        """Return it as a closed in-progress segment."""
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
    """A recovery that this node accepted: the decided segment, and the writer's epoch.

    ``segment`` is a copy of the source's state, so it may be finalized while our file is not.
    """

    segment: Segment
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged segment with its known facts, and the reason.

    ``size_bytes`` is the length of its file if it may hold unknown edits after the damage, else 0.
    """

    segment: Segment
    why: str
    size_bytes: int = 0


@record
class JournalState:
    """All that the rules of docs/reference/journal-node.md depend on.

    ``segments`` has each closed segment with at least one edit, in the order of first txids, of
    which each occurs once.  ``damaged`` has segments that a scan found damaged: they are not
    listed, served or voted on until a recovery or a peer has replaced them.  ``committed`` is the
    highest edit here that is known to be on a quorum; ``claimed`` is the writer's last committed
    txid, which decides nothing, as those edits may not exist.  ``purged`` is the highest txid
    before which edits were purged; peers may still hold them.  A ``learner`` may have lost its
    promises and edits, and has no vote until this ``incarnation`` of it is admitted.
    ``start_heard`` is the epoch that last sent startLogSegment to this learner since it was loaded;
    its writer has finished its recovery.  ``read_lease_micros`` is the longest read lease that a
    writer may still hold.  ``previous`` is the namespace before an upgrade that can be rolled back;
    ``upgrade_begun``: a copy was made for an upgrade that has not happened yet.  ``occupied``: the
    folder of an unformatted journal has files that a format would delete.
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

        An older writer's edits above the open segment do not count.
        """
        if self.open is not None and not self.open.empty:
            return TxId(self.open.next_txid - 1)
        held = [*self.segments.values(), *(damage.segment for damage in self.damaged.values())]
        return max((segment.last for segment in held), default=NO_TXID)

    @property
    def newest(self) -> TxId | None:
        """The first txid of the newest closed segment with an edit, damaged or not."""
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
        """Return the state with this closed segment, instead of one with the same start."""
        entries = {**self.segments, segment.first: segment}
        damaged = {k: v for k, v in self.damaged.items() if k != segment.first}
        return replace(self, segments=dict(sorted(entries.items())), damaged=damaged)

    def without_segment(self, first: TxId) -> "JournalState":
        """Return the state without this segment."""
        return replace(
            self,
            segments={k: v for k, v in self.segments.items() if k != first},
            damaged={k: v for k, v in self.damaged.items() if k != first},
        )

    def with_damage(self, first: TxId, why: str) -> "JournalState":
        """Return the state with this closed segment as damaged."""
        segment = self.find(first)
        if segment is None:
            return self
        damaged = {**self.damaged, first: Damage(segment, why)}
        return replace(self.without_segment(first), damaged=damaged)

    def with_decision(self, decision: Decision) -> "JournalState":
        """Return the state with an accepted recovery."""
        return replace(self, decisions={**self.decisions, decision.segment.first: decision})

    def without_decision(self, first: TxId) -> "JournalState":
        return replace(self, decisions={k: v for k, v in self.decisions.items() if k != first})


def learn_digest(state: JournalState, learned: Segment) -> JournalState:
    """Return the state with a content digest that storage has computed."""
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
    """Return whether storage must compute the digest of the segment at ``first``."""
    if state.open is not None and state.open.first == first:
        return not state.open.empty and not state.open.digest
    known = state.find(first)
    return known is not None and not known.digest

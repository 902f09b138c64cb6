"""Which copy of an unclosed segment wins: the choice a new writer makes before it writes.

The order is that of Hadoop's SegmentRecoveryComparator
(docs/reference/quorum-journal.md#segment-recovery).  Beyond Hadoop, equal lengths do not pass for
equal contents: the decision carries a digest, and the sources are only those nodes whose bytes have
it.

Pure.
"""

from collections.abc import Mapping

from ha.record import dataclass
from journal.errors import ensure
from journal.model import NO_EPOCH, Epoch, NodeName, Segment, TxId


@dataclass(frozen=True, slots=True)
class Empty:
    """A node that has no edit of the segment."""

    committed: TxId | None = None


@dataclass(frozen=True, slots=True)
class HeldSegment:
    """A node that has the segment, and what it knows about it.

    ``accepted_in`` is the epoch of a recovery that this node has accepted for the segment, or
    NO_EPOCH.  The writer of the copy stands in the segment itself: unlike Hadoop we do not take the
    last epoch that started any segment on the node for it.
    """

    segment: Segment
    accepted_in: Epoch = NO_EPOCH
    committed: TxId | None = None


Answer = Empty | HeldSegment


@dataclass(frozen=True, slots=True)
class Copy:
    """Every node shall hold this segment.  ``sources`` hold exactly its bytes, best first."""

    segment: Segment
    sources: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True)
class Skip:
    """The segment never reached a majority, and no node that answered has it."""


def choose(first: TxId, answers: Mapping[NodeName, Answer]) -> Copy | Skip:
    """Decide the recovery of the segment that starts at ``first`` from a majority's answers.

    A finalized copy wins; then the one of the newest writer or recovery; then the longest.
    Equals are ordered by node name, so that the same answers always give the same decision.

    Raises:
        InvariantBroken: if two copies that must be equal differ, or the winner lacks an edit
            that some node knows to be committed.
    """
    held = {node: answer for node, answer in answers.items() if isinstance(answer, HeldSegment)}
    for node, answer in held.items():
        ensure(answer.segment.first == first, f"{node} was asked for the segment at {first}")
        ensure(answer.segment.last >= first, f"{node} reports a segment with an edit in it")
    if not held:
        _ensure_keeps_committed(TxId(first - 1), answers)
        return Skip()
    _ensure_equals_agree(held)
    best = max(sorted(held), key=lambda node: _rank(held[node]))
    winner = held[best].segment
    _ensure_keeps_committed(winner.last, answers)
    others = [n for n in sorted(held) if n != best and _same_bytes(held[n].segment, winner)]
    others.sort(key=lambda node: _rank(held[node]), reverse=True)
    return Copy(winner, (best, *others))


def _rank(answer: HeldSegment) -> tuple[bool, Epoch, TxId]:
    segment = answer.segment
    if segment.finalized:
        # All finalized copies are equal, whoever wrote last on their nodes.
        return (True, NO_EPOCH, segment.last)
    return (False, max(answer.accepted_in, segment.writer), segment.last)


def _same_bytes(one: Segment, other: Segment) -> bool:
    return one.last == other.last and one.digest == other.digest and one.digest != b""


def _ensure_equals_agree(held: Mapping[NodeName, HeldSegment]) -> None:
    """Check that copies of one rank are the same bytes.

    Finalized ones are, because a segment is finalized once.  In-progress ones are, because one
    epoch writes, and decides, one thing for each txid.
    """
    seen: dict[tuple[bool, Epoch, TxId], NodeName] = {}
    finalized = [node for node in sorted(held) if held[node].segment.finalized]
    for node in finalized[1:]:
        ours, theirs = held[finalized[0]].segment, held[node].segment
        ensure(
            ours.last == theirs.last,
            f"{finalized[0]} finalized {_range(ours)}, {node} finalized {_range(theirs)}",
        )
    for node in sorted(held):
        answer = held[node]
        peer = seen.setdefault(_rank(answer), node)
        digests = {answer.segment.digest, held[peer].segment.digest} - {b""}
        ensure(
            len(digests) <= 1,
            f"{peer} and {node} both hold {_range(answer.segment)} with the same standing,"
            " and the bytes differ",
        )


def _ensure_keeps_committed(last: TxId, answers: Mapping[NodeName, Answer]) -> None:
    for node in sorted(answers):
        committed = answers[node].committed
        ensure(
            committed is None or committed <= last,
            f"recovery would end at transaction {last},"
            f" but {node} knows that {committed} was committed",
        )


def _range(segment: Segment) -> str:
    return f"{segment.first}-{segment.last}"

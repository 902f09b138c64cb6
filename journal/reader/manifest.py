"""Merges the nodes' lists of segments into one list without gaps.  Pure."""

from collections.abc import Mapping, Sequence

from ha.record import dataclass
from journal.errors import GapFound, ensure
from journal.model import NodeName, Segment, TxId


@dataclass(frozen=True, slots=True)
class Redundant:
    """One finalized segment, and the nodes that list it, sorted by name."""

    segment: Segment
    sources: tuple[NodeName, ...]


def merge(manifests: Mapping[NodeName, Sequence[Segment]], first: TxId) -> tuple[Redundant, ...]:
    """Return the finalized segments from the one with the edit ``first`` on.

    The result is empty if no edit from ``first`` on is finalized yet.

    Raises:
        GapFound: the next segment is in no list, but a later one is.
        InvariantBroken: two nodes have finalized different segments of the same edits.
    """
    copies: dict[TxId, list[tuple[NodeName, Segment]]] = {}
    for node in sorted(manifests):
        for segment in manifests[node]:
            if segment.finalized and segment.last >= first:
                copies.setdefault(segment.first, []).append((node, segment))
    merged: list[Redundant] = []
    expected = first
    for start in sorted(copies):
        segment = _agree(copies[start])
        names = tuple(node for node, _ in copies[start])
        if start > expected:
            raise GapFound(
                f"transactions {expected}-{start - 1} are missing: the next finalized segment"
                f" ({segment.name()}, on {', '.join(names)}) starts behind them",
                missing_first=expected,
                missing_last=TxId(start - 1),
            )
        ensure(
            start == expected or not merged,
            f"the segments {merged[-1].segment.name() if merged else ''} on"
            f" {', '.join(merged[-1].sources) if merged else ''} and {segment.name()} on"
            f" {', '.join(names)} overlap",
        )
        merged.append(Redundant(segment, names))
        expected = TxId(segment.last + 1)
    return tuple(merged)


def _agree(copies: Sequence[tuple[NodeName, Segment]]) -> Segment:
    known, chosen = copies[0]
    for node, segment in copies[1:]:
        ensure(
            segment.last == chosen.last,
            f"{known} has finalized {chosen.first}-{chosen.last},"
            f" and {node} {segment.first}-{segment.last}",
        )
        ensure(
            not (chosen.digest and segment.digest) or segment.digest == chosen.digest,
            f"{known} and {node} have finalized {chosen.first}-{chosen.last} with different bytes",
        )
        if segment.digest and not chosen.digest:
            known, chosen = node, segment
    return chosen

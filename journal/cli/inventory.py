"""Which segment lies where, and what is wrong with that, from the nodes' own lists.  Pure."""

from collections.abc import Mapping, Sequence

from ha.record import dataclass
from journal.model import NodeName, Segment, TxId
from journal.quorum import majority
from journal.reader.audit import Finding, FindingKind


@dataclass(frozen=True, slots=True)
class Row:
    """All copies of the segment that starts at ``first``; ``damaged`` ones are in no list."""

    first: TxId
    copies: Mapping[NodeName, Segment]
    damaged: tuple[NodeName, ...] = ()

    @property
    def finalized(self) -> dict[NodeName, Segment]:
        """The copies that are closed for good."""
        return {node: copy for node, copy in self.copies.items() if copy.finalized}

    @property
    def last(self) -> TxId:
        """The segment's end: as finalized, else as far as any copy goes."""
        held = self.finalized or self.copies
        return max((copy.last for copy in held.values()), default=self.first)

    @property
    def forked(self) -> tuple[NodeName, ...]:
        """Nodes whose finalized copy is not the one that most have, or whose bytes differ."""
        kinds: dict[tuple[TxId, bytes], list[NodeName]] = {}
        for node, copy in sorted(self.finalized.items()):
            kinds.setdefault((copy.last, copy.digest), []).append(node)
        if len({last for last, _ in kinds}) == 1:
            # Copies without a digest are left out: there is nothing to compare.
            kinds = {key: nodes for key, nodes in kinds.items() if key[1]}
        ranked = sorted(kinds.values(), key=lambda nodes: (-len(nodes), nodes))
        return tuple(node for nodes in ranked[1:] for node in nodes)


def rows(
    lists: Mapping[NodeName, Sequence[Segment]], damaged: Mapping[NodeName, Sequence[TxId]]
) -> tuple[Row, ...]:
    """Merge the nodes' lists of segments into one row per first txid, in rising order."""
    copies: dict[TxId, dict[NodeName, Segment]] = {}
    for node in sorted(lists):
        for segment in lists[node]:
            copies.setdefault(segment.first, {})[node] = segment
    bad: dict[TxId, list[NodeName]] = {}
    for node in sorted(damaged):
        for first in damaged[node]:
            bad.setdefault(first, []).append(node)
            copies.setdefault(first, {})
    return tuple(Row(first, copies[first], tuple(bad.get(first, ()))) for first in sorted(copies))


def judge(held: Sequence[Row], *, silent: int, answering: int) -> tuple[Finding, ...]:
    """Return what is wrong, as far as the lists show; no bytes are read."""
    needed = majority(answering + silent)
    findings: list[Finding] = []
    before: Row | None = None
    for row in held:
        name = f"the segment at {row.first}"
        if row.damaged:
            nodes = ", ".join(row.damaged)
            findings.append(
                Finding(FindingKind.DAMAGE, row.first, row.damaged, f"{name} is damaged on {nodes}")
            )
        if row.forked:
            others = ", ".join(row.forked)
            findings.append(
                Finding(
                    FindingKind.DIFFERENCE,
                    row.first,
                    row.forked,
                    f"{name} is finalized on {others} with other bytes or another end",
                )
            )
        whole = [node for node, copy in row.copies.items() if copy.last >= row.last]
        if row.finalized and len(whole) + silent < needed:
            findings.append(
                Finding(
                    FindingKind.TOO_FEW_COPIES,
                    row.first,
                    tuple(whole),
                    f"{name} lies whole on {', '.join(whole)} only; {needed} copies are a majority",
                )
            )
        if before is not None and row.first > before.last + 1:
            missing = TxId(before.last + 1)
            findings.append(
                Finding(FindingKind.GAP, missing, (), f"no node lists {missing}-{row.first - 1}")
            )
        if before is not None and row.first <= before.last and row.finalized and before.finalized:
            findings.append(
                Finding(
                    FindingKind.DUPLICATE,
                    row.first,
                    (),
                    f"{name} and that at {before.first} overlap",
                )
            )
        if before is None or row.last > before.last:
            before = row
    return tuple(findings)

"""Compares the nodes' copies of the journal: same bytes, no gap, enough copies.

The caller reads all copies in lock-step, and passes each range of transactions with the bytes of
each node to ``compare``; ``report`` returns the result.

Pure.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from ha.record import dataclass, field
from journal.frame import scan
from journal.model import NodeName, Segment, TxId
from journal.quorum import majority

Range = tuple[TxId, TxId]


class FindingKind(StrEnum):
    """The kinds of faults."""

    DIFFERENCE = "difference"
    GAP = "gap"
    DUPLICATE = "duplicate"
    DAMAGE = "damage"
    TOO_FEW_COPIES = "too few copies"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, its first txid and its nodes."""

    kind: FindingKind
    first: TxId
    nodes: tuple[NodeName, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive edits of one node's copy; ``open``: a writer has that segment open."""

    first: TxId
    last: TxId
    records: bytes
    segment: Segment
    open: bool = False

    def cut(self, last: TxId) -> tuple["Piece", "Piece | None"]:
        """Return the edits up to ``last``, and the rest if there are any."""
        if last >= self.last:
            return self, None
        end = scan(self.records, expected=self.first, last_wanted=last).end
        head = Piece(self.first, last, self.records[:end], self.segment, self.open)
        return head, Piece(TxId(last + 1), self.last, self.records[end:], self.segment, self.open)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result; ``missing`` and ``stale`` are about one node's copy, and no faults."""

    held: tuple[Range, ...]
    missing: Mapping[NodeName, tuple[Range, ...]]
    stale: Mapping[NodeName, tuple[str, ...]]
    unconfirmed: tuple[Range, ...]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class Audit:
    """Collects the faults during a walk over all copies.

    Args:
        nodes: the nodes that are read.
        silent: the number of the journal's other nodes, which could not be asked.
        settled: a majority must have each txid up to this one, as it is finalized or committed.
    """

    nodes: tuple[NodeName, ...]
    silent: int
    settled: TxId
    _runs: list[tuple[TxId, TxId, frozenset[NodeName]]] = field(default_factory=list)
    _findings: list[Finding] = field(default_factory=list)
    _stale: dict[NodeName, list[str]] = field(default_factory=dict)
    _told: set[tuple[NodeName, TxId]] = field(default_factory=set)

    @property
    def needed(self) -> int:
        """The number of copies that is a majority of the journal's nodes."""
        return majority(len(self.nodes) + self.silent)

    def found(self, finding: Finding) -> None:
        """Add a fault that the comparison cannot find."""
        self._findings.append(finding)

    def compare(self, pieces: Mapping[NodeName, Piece]) -> None:
        """Compare the nodes' bytes of one range; all pieces have the same first and last txid."""
        groups: dict[bytes, list[NodeName]] = {}
        for node in sorted(pieces):
            groups.setdefault(pieces[node].records, []).append(node)
        ranked = sorted(groups.values(), key=lambda nodes: (-len(nodes), nodes))
        right = ranked[0]
        sample = pieces[right[0]]
        for others in ranked[1:]:
            for node in others:
                self._differs(node, pieces[node], right, sample)
        self._hold(sample.first, sample.last, frozenset(right))

    def duplicates(self, node: NodeName, segments: Sequence[Segment]) -> None:
        """Add a fault for each txid at which a node has two segments."""
        before: Segment | None = None
        for segment in sorted(segments, key=lambda s: (s.first, s.last)):
            if before is not None and segment.first <= before.last:
                self._findings.append(
                    Finding(
                        FindingKind.DUPLICATE,
                        segment.first,
                        (node,),
                        f"{node} has transaction {segment.first} in {before.name()}"
                        f" and in {segment.name()}",
                    )
                )
            if before is None or segment.last > before.last:
                before = segment

    def report(self) -> AuditReport:
        held: list[Range] = []
        unconfirmed: list[Range] = []
        missing: dict[NodeName, list[Range]] = {node: [] for node in self.nodes}
        findings = list(self._findings)
        for first, last, nodes in self._runs:
            if held and held[-1][1] + 1 < first:
                findings.append(_gap(TxId(held[-1][1] + 1), TxId(first - 1)))
            _extend(held, first, last)
            for node in self.nodes:
                if node not in nodes:
                    _extend(missing[node], first, last)
            due = min(last, self.settled)
            if due >= first and len(nodes) < self.needed:
                if len(nodes) + self.silent >= self.needed:
                    _extend(unconfirmed, first, due)
                else:
                    findings.append(_too_few(first, due, nodes, self.needed))
        findings.sort(key=lambda finding: (finding.first, finding.kind))
        return AuditReport(
            tuple(held),
            {node: tuple(ranges) for node, ranges in missing.items()},
            {node: tuple(told) for node, told in self._stale.items()},
            tuple(unconfirmed),
            tuple(findings),
        )

    def _hold(self, first: TxId, last: TxId, nodes: frozenset[NodeName]) -> None:
        if self._runs and self._runs[-1][1] + 1 == first and self._runs[-1][2] == nodes:
            first = self._runs.pop()[0]
        self._runs.append((first, last, nodes))

    def _differs(
        self, node: NodeName, piece: Piece, right: Sequence[NodeName], sample: Piece
    ) -> None:
        if (node, piece.segment.first) in self._told:
            return
        self._told.add((node, piece.segment.first))
        txid = first_difference(piece, sample)
        if len(right) >= self.needed and not piece.segment.finalized and not piece.open:
            # A superseded writer left these edits, which never reached a majority.  They are never
            # read, and a recovery of this segment would replace them.
            self._stale.setdefault(node, []).append(
                f"{piece.segment.name()} differs from transaction {txid} on; a majority agrees"
                " on other edits, and nobody reads this copy"
            )
            return
        self._findings.append(
            Finding(
                FindingKind.DIFFERENCE,
                txid,
                (node, *right),
                f"transaction {txid} on {node} is not the one on {', '.join(right)}",
            )
        )


def first_difference(one: Piece, other: Piece) -> TxId:
    """Return the first txid at which two different pieces of the same range differ."""
    low, high = one.first, one.last
    while low < high:
        middle = TxId((low + high) // 2)
        if one.cut(middle)[0].records == other.cut(middle)[0].records:
            low = TxId(middle + 1)
        else:
            high = middle
    return low


def _extend(ranges: list[Range], first: TxId, last: TxId) -> None:
    if ranges and ranges[-1][1] + 1 == first:
        first = ranges.pop()[0]
    ranges.append((first, last))


def _gap(first: TxId, last: TxId) -> Finding:
    return Finding(FindingKind.GAP, first, (), f"no node has transactions {first}-{last}")


def _too_few(first: TxId, last: TxId, nodes: frozenset[NodeName], needed: int) -> Finding:
    who = ", ".join(sorted(nodes))
    return Finding(
        FindingKind.TOO_FEW_COPIES,
        first,
        tuple(sorted(nodes)),
        f"transactions {first}-{last} lie on {who} only; {needed} copies are a majority",
    )

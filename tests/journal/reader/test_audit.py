"""Copies of the journal on several nodes, judged."""

from collections.abc import Mapping

import pytest

from journal.model import NodeName, Segment, TxId
from journal.reader.audit import Audit, Finding, FindingKind, Piece, first_difference
from tests.journal.writer.journal_cluster import edits

A, B, C = NodeName("a:1"), NodeName("b:1"), NodeName("c:1")
D, E = NodeName("d:1"), NodeName("e:1")
ALL = (A, B, C)
Ranges = tuple[tuple[int, int], ...]


def piece(
    first: int, last: int, tag: str = "", *, closed: bool = True, open_now: bool = False
) -> Piece:
    segment = Segment(TxId(first), TxId(last), closed)
    return Piece(TxId(first), TxId(last), edits(first, last, tag), segment, open_now)


def audit(*stretches: Mapping[NodeName, Piece], settled: int, silent: int = 0) -> Audit:
    made = Audit(ALL[: 3 - silent], silent, TxId(settled))
    for stretch in stretches:
        made.compare(stretch)
    return made


def test_equal_copies_are_well() -> None:
    same = {A: piece(1, 9), B: piece(1, 9), C: piece(1, 9)}
    report = audit(same, {A: piece(10, 12), B: piece(10, 12)}, settled=12).report()
    assert report.findings == ()
    assert report.held == ((1, 12),)
    assert report.missing == {A: (), B: (), C: ((10, 12),)}


def test_a_difference_names_the_edit_and_who_is_outvoted() -> None:
    odd = piece(1, 9)
    records = edits(1, 4) + edits(5, 6, "X") + edits(7, 9)
    bad = Piece(odd.first, odd.last, records, odd.segment)
    (finding,) = audit({A: odd, B: bad, C: odd}, settled=9).report().findings
    assert (finding.kind, finding.first, finding.nodes) == (FindingKind.DIFFERENCE, 5, (B, A, C))
    assert "transaction 5 on b:1 is not the one on a:1, c:1" in finding.message


def test_an_abandoned_copy_that_lost_the_vote_is_only_told() -> None:
    stale = piece(4, 6, "old", closed=False)
    report = audit({A: stale, B: piece(4, 6), C: piece(4, 6)}, settled=6).report()
    assert report.findings == ()
    assert report.missing[A] == ((4, 6),)
    assert "from transaction 4 on" in report.stale[A][0]


@pytest.mark.parametrize("odd", [piece(4, 6, "x"), piece(4, 6, "x", closed=False, open_now=True)])
def test_a_finalized_or_open_copy_that_differs_is_wrong(odd: Piece) -> None:
    report = audit({A: odd, B: piece(4, 6), C: piece(4, 6)}, settled=6).report()
    assert [f.kind for f in report.findings] == [FindingKind.DIFFERENCE]


def test_a_gap_in_all_copies_is_found() -> None:
    both = {A: piece(1, 3), B: piece(1, 3)}
    report = audit(both, {A: piece(7, 9), B: piece(7, 9)}, settled=9).report()
    assert [(f.kind, f.message) for f in report.findings] == [
        (FindingKind.GAP, "no node has transactions 4-6")
    ]
    assert report.held == ((1, 3), (7, 9))


def test_a_settled_edit_on_a_minority_is_wrong_a_new_one_is_not() -> None:
    everywhere = {A: piece(1, 3), B: piece(1, 3), C: piece(1, 3)}
    alone = {C: piece(4, 6, closed=False)}
    assert audit(everywhere, alone, settled=3).report().findings == ()
    (finding,) = audit(everywhere, alone, settled=5).report().findings
    assert finding.kind is FindingKind.TOO_FEW_COPIES
    assert "4-5 lie on c:1 only" in finding.message


def test_what_a_silent_node_may_have_is_left_open() -> None:
    report = audit({A: piece(1, 3)}, settled=3, silent=1).report()
    assert report.findings == ()
    assert report.unconfirmed == ((1, 3),)


def on(first: int, last: int, *nodes: NodeName) -> dict[NodeName, Piece]:
    """Give a stretch to these nodes, all with the same bytes."""
    return dict.fromkeys(nodes, piece(first, last))


HELD: dict[str, tuple[list[dict[NodeName, Piece]], Ranges, Ranges, list[str]]] = {
    "stretches that touch": ([on(1, 3, *ALL), on(4, 6, A, B)], ((1, 6),), ((4, 6),), []),
    "one edit is lacking": ([on(1, 3, A, B), on(5, 6, *ALL)], ((1, 3), (5, 6)), ((1, 3),), ["4-4"]),
    "two gaps": (
        [on(1, 3, A, B), on(5, 6, *ALL), on(9, 9, A, B)],
        ((1, 3), (5, 6), (9, 9)),
        ((1, 3), (9, 9)),
        ["4-4", "7-8"],
    ),
    "more behind a gap": (
        [on(1, 3, A, B), on(7, 9, A, B), on(10, 12, A, B, D), on(13, 14, *ALL)],
        ((1, 3), (7, 14)),
        ((1, 3), (7, 12)),
        ["4-6"],
    ),
}


@pytest.mark.parametrize(("stretches", "held", "missing", "gaps"), HELD.values(), ids=list(HELD))
def test_what_is_held_and_what_one_node_lacks(
    stretches: list[dict[NodeName, Piece]], held: Ranges, missing: Ranges, gaps: list[str]
) -> None:
    report = audit(*stretches, settled=0).report()
    assert report.held == held
    assert report.missing == {A: (), B: (), C: missing}
    assert [f.message for f in report.findings] == [f"no node has transactions {g}" for g in gaps]
    assert report.unconfirmed == ()


MINORITIES: dict[str, tuple[list[dict[NodeName, Piece]], int, list[str]]] = {
    "settled to its end": ([on(1, 3, *ALL), on(4, 6, C)], 6, ["4-6 lie on c:1 only"]),
    "settled beyond it": ([on(1, 3, *ALL), on(4, 6, C)], 9, ["4-6 lie on c:1 only"]),
    "its first edit settled": ([on(1, 3, *ALL), on(4, 6, C)], 4, ["4-4 lie on c:1 only"]),
    "nothing of it settled": ([on(1, 3, *ALL), on(4, 6, C)], 3, []),
    "one node alone in two stretches": (
        [on(1, 3, *ALL), on(4, 6, C), on(7, 9, C)],
        9,
        ["4-9 lie on c:1 only"],
    ),
    "one node alone, then another": (
        [on(1, 3, *ALL), on(4, 6, C), on(7, 9, B)],
        9,
        ["4-6 lie on c:1 only", "7-9 lie on b:1 only"],
    ),
    "one node alone on both sides of a majority": (
        [on(1, 3, C), on(4, 6, A, B), on(7, 9, C)],
        9,
        ["1-3 lie on c:1 only", "7-9 lie on c:1 only"],
    ),
    "one node alone on both sides of a gap": (
        [on(1, 3, C), on(5, 6, C)],
        9,
        ["1-3 lie on c:1 only", "no node has transactions 4-4", "5-6 lie on c:1 only"],
    ),
    "the settled part of two stretches": ([on(1, 3, C), on(4, 6, C)], 5, ["1-5 lie on c:1 only"]),
}


@pytest.mark.parametrize(("stretches", "settled", "say"), MINORITIES.values(), ids=list(MINORITIES))
def test_what_is_settled_and_lies_on_a_minority_is_told_once(
    stretches: list[dict[NodeName, Piece]], settled: int, say: list[str]
) -> None:
    report = audit(*stretches, settled=settled).report()
    for finding, part in zip(report.findings, say, strict=True):
        assert part in finding.message
    assert report.unconfirmed == ()


#   nodes that have 4-9, of five; how many are silent; settled; left open; too few
COPIES: dict[str, tuple[tuple[NodeName, ...], int, int, Ranges, bool]] = {
    "a majority has it": ((A, B, C), 1, 9, (), False),
    "more than a majority": ((A, B, C, D), 1, 9, (), False),
    "the silent one may make a majority": ((B, A), 1, 9, ((4, 9),), False),
    "of what is settled only": ((B, A), 1, 6, ((4, 6),), False),
    "the silent one is not enough": ((A,), 1, 9, (), True),
    "two silent ones would be": ((A,), 2, 9, ((4, 9),), False),
    "nobody is silent": ((B, A), 0, 9, (), True),
}


@pytest.mark.parametrize(
    ("nodes", "silent", "settled", "unconfirmed", "too_few"), COPIES.values(), ids=list(COPIES)
)
def test_silent_nodes_count_for_a_majority_and_may_have_a_copy(
    nodes: tuple[NodeName, ...], silent: int, settled: int, unconfirmed: Ranges, *, too_few: bool
) -> None:
    made = Audit((A, B, C, D, E)[: 5 - silent], silent, TxId(settled))
    made.compare(on(4, 9, *nodes))
    report = made.report()
    assert made.needed == 3
    assert report.unconfirmed == unconfirmed
    told = [(f.kind, f.first, f.nodes) for f in report.findings]
    few = (FindingKind.TOO_FEW_COPIES, 4, tuple(sorted(nodes)))
    assert told == ([few] if too_few else [])


def test_what_was_left_open_on_both_sides_of_a_majority_is_two_ranges() -> None:
    stretches = (on(1, 3, A), on(4, 6, A, B), on(7, 9, A), on(10, 12, B))
    assert audit(*stretches, settled=12, silent=1).report().unconfirmed == ((1, 3), (7, 12))


def test_findings_are_in_the_order_of_the_journal() -> None:
    made = audit(on(1, 3, *ALL), on(7, 9, C), settled=9)
    for kind, first in ((FindingKind.DUPLICATE, 8), (FindingKind.DAMAGE, 7), (FindingKind.GAP, 2)):
        made.found(Finding(kind, TxId(first), (A,), "seen"))
    assert [(f.first, f.kind) for f in made.report().findings] == [
        (2, FindingKind.GAP),
        (4, FindingKind.GAP),
        (7, FindingKind.DAMAGE),
        (7, FindingKind.TOO_FEW_COPIES),
        (8, FindingKind.DUPLICATE),
    ]


def finalized(first: int, last: int) -> Segment:
    return Segment(TxId(first), TxId(last), finalized=True)


#   segments of one node; of each duplicate where it begins and which two segments have it
DUPLICATES: dict[str, tuple[list[Segment], list[tuple[int, Segment, Segment]]]] = {
    "none": ([finalized(1, 3), finalized(4, 5)], []),
    "the last edit again": (
        [finalized(1, 3), finalized(3, 5)],
        [(3, finalized(1, 3), finalized(3, 5))],
    ),
    "listed in another order": (
        [finalized(3, 5), finalized(1, 3)],
        [(3, finalized(1, 3), finalized(3, 5))],
    ),
    "two inside a longer one": (
        [finalized(1, 9), finalized(2, 3), finalized(4, 5)],
        [(2, finalized(1, 9), finalized(2, 3)), (4, finalized(1, 9), finalized(4, 5))],
    ),
    "one inside, and one that follows": (
        [finalized(1, 9), finalized(2, 3), finalized(10, 12)],
        [(2, finalized(1, 9), finalized(2, 3))],
    ),
    "one beginning, two ends": (
        [finalized(1, 5), finalized(1, 3), finalized(5, 6)],
        [(1, finalized(1, 3), finalized(1, 5)), (5, finalized(1, 5), finalized(5, 6))],
    ),
    "two beginnings, one end": (
        [finalized(1, 5), finalized(3, 5), finalized(4, 6)],
        [(3, finalized(1, 5), finalized(3, 5)), (4, finalized(1, 5), finalized(4, 6))],
    ),
}


@pytest.mark.parametrize(("segments", "twice"), DUPLICATES.values(), ids=list(DUPLICATES))
def test_what_one_node_has_in_two_segments_is_a_duplicate(
    segments: list[Segment], twice: list[tuple[int, Segment, Segment]]
) -> None:
    made = audit(settled=0)
    made.duplicates(A, segments)
    made.duplicates(B, [])
    findings = made.report().findings
    assert [(f.kind, f.first, f.nodes) for f in findings] == [
        (FindingKind.DUPLICATE, first, (A,)) for first, _, _ in twice
    ]
    for finding, (_, one, other) in zip(findings, twice, strict=True):
        assert f"in {one.name()} and in {other.name()}" in finding.message


def part(first: int, last: int, tag: str, segment: Segment) -> Piece:
    return Piece(TxId(first), TxId(last), edits(first, last, tag), segment)


def test_a_segment_that_differs_is_told_once_of_each_node() -> None:
    one, next_one = finalized(1, 9), finalized(10, 12)
    stretches = [
        {
            A: part(first, last, "", segment),
            B: part(first, last, "", segment),
            C: part(first, last, "", segment),
            D: part(first, last, "d", segment),
            E: part(first, last, "e", segment),
        }
        for first, last, segment in ((1, 4, one), (5, 9, one), (10, 12, next_one))
    ]
    made = Audit((A, B, C, D, E), 0, TxId(12))
    for stretch in stretches:
        made.compare(stretch)
    assert [(f.first, f.nodes[0]) for f in made.report().findings] == [
        (1, D),
        (1, E),
        (10, D),
        (10, E),
    ]


#   segments of the outvoted node and of the others; each stretch that is compared, by which segment
#   of either side it belongs to; where a difference is reported
OUTVOTED: dict[str, tuple[list[tuple[int, int, Segment, Segment]], list[int]]] = {
    "two segments against one": (
        [(1, 4, finalized(1, 4), finalized(1, 9)), (5, 9, finalized(5, 9), finalized(1, 9))],
        [1, 5],
    ),
    "one segment against two": (
        [(3, 4, finalized(3, 9), finalized(1, 4)), (5, 9, finalized(3, 9), finalized(5, 9))],
        [3],
    ),
}


@pytest.mark.parametrize(("stretches", "firsts"), OUTVOTED.values(), ids=list(OUTVOTED))
def test_a_difference_is_told_once_of_each_segment_of_the_outvoted(
    stretches: list[tuple[int, int, Segment, Segment]], firsts: list[int]
) -> None:
    made = audit(settled=9)
    for first, last, theirs, others in stretches:
        right = part(first, last, "", others)
        made.compare({A: right, B: part(first, last, "b", theirs), C: right})
    assert [(f.kind, f.first) for f in made.report().findings] == [
        (FindingKind.DIFFERENCE, first) for first in firsts
    ]


def test_every_abandoned_segment_of_a_node_is_told() -> None:
    report = audit(
        {A: piece(1, 3, "old", closed=False), B: piece(1, 3), C: piece(1, 3)},
        {A: piece(4, 6, "old", closed=False), B: piece(4, 6), C: piece(4, 6)},
        settled=6,
    ).report()
    assert [told.split(" differs ")[0] for told in report.stale[A]] == [
        piece(1, 3, closed=False).segment.name(),
        piece(4, 6, closed=False).segment.name(),
    ]


def test_without_a_majority_nobody_is_outvoted() -> None:
    """Compare one abandoned copy with another: the first by name stands for the rest."""
    old, new = piece(4, 6, "old", closed=False), piece(4, 6, closed=False)
    report = audit({B: old, A: new}, settled=3).report()
    assert report.stale == {}
    assert [(f.kind, f.nodes) for f in report.findings] == [(FindingKind.DIFFERENCE, (B, A))]
    assert report.missing == {A: (), B: ((4, 6),), C: ((4, 6),)}


@pytest.mark.parametrize("open_now", [True, False])
@pytest.mark.parametrize("last", range(3, 10))
def test_a_piece_is_cut_between_two_edits(last: int, *, open_now: bool) -> None:
    whole = piece(3, 7, "x" * 5, closed=False, open_now=open_now)
    segment = whole.segment
    if last >= 7:
        assert whole.cut(TxId(last)) == (whole, None)
    else:
        head = Piece(TxId(3), TxId(last), edits(3, last, "x" * 5), segment, open_now)
        rest = Piece(TxId(last + 1), TxId(7), edits(last + 1, 7, "x" * 5), segment, open_now)
        assert whole.cut(TxId(last)) == (head, rest)


@pytest.mark.parametrize("at", range(1, 10))
def test_the_first_difference_is_found_wherever_it_is(at: int) -> None:
    one = piece(1, 9)
    other = Piece(one.first, one.last, edits(1, at - 1) + edits(at, 9, "Z"), one.segment)
    assert first_difference(one, other) == at

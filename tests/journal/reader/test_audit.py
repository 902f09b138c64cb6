"""Copies of the journal on several nodes, judged."""

from collections.abc import Mapping

import pytest

from journal.model import NodeName, Segment, TxId
from journal.reader.audit import Audit, FindingKind, Piece, first_difference
from tests.journal.writer.journal_cluster import edits

A, B, C = NodeName("a:1"), NodeName("b:1"), NodeName("c:1")


def piece(
    first: int, last: int, tag: str = "", *, closed: bool = True, open_now: bool = False
) -> Piece:
    segment = Segment(TxId(first), TxId(last), closed)
    return Piece(TxId(first), TxId(last), edits(first, last, tag), segment, open_now)


def audit(*stretches: Mapping[NodeName, Piece], settled: int, silent: int = 0) -> Audit:
    made = Audit((A, B, C)[: 3 - silent], silent, TxId(settled))
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


def test_duplicates_inside_one_node_are_found() -> None:
    made = audit(settled=0)
    made.duplicates(A, [Segment(TxId(1), TxId(3), True), Segment(TxId(3), TxId(5), False)])
    made.duplicates(B, [Segment(TxId(1), TxId(3), True), Segment(TxId(4), TxId(5), False)])
    (finding,) = made.report().findings
    assert (finding.kind, finding.first, finding.nodes) == (FindingKind.DUPLICATE, 3, (A,))


@pytest.mark.parametrize("at", range(1, 10))
def test_the_first_difference_is_found_wherever_it_is(at: int) -> None:
    one = piece(1, 9)
    other = Piece(one.first, one.last, edits(1, at - 1) + edits(at, 9, "Z"), one.segment)
    assert first_difference(one, other) == at

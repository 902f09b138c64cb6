"""Segment recovery: Hadoop's tables, and every combination against an independent oracle."""

from collections.abc import Iterator, Mapping
from itertools import product

import pytest

from journal.errors import InvariantBroken
from journal.model import Epoch, NodeName, Segment, TxId
from journal.recovery import Answer, Copy, Empty, HeldSegment, Skip, choose

FIRST = TxId(101)
N1, N2, N3 = NodeName("jn1"), NodeName("jn2"), NodeName("jn3")


def held(
    last: int,
    *,
    closed: bool = False,
    writer: int = 1,
    accepted: int = 0,
    committed: int | None = None,
    digest: str = "",
) -> HeldSegment:
    """Make a copy of 101..last; by default its bytes are those of the one history there is."""
    content = b"" if digest == "none" else (digest or f"history to {last}").encode()
    return HeldSegment(
        Segment(FIRST, TxId(last), closed, content, Epoch(writer)),
        accepted_in=Epoch(accepted),
        committed=None if committed is None else TxId(committed),
    )


CASES: dict[str, tuple[list[Answer], int | None, list[NodeName]]] = {
    "2.10.1 longest of one writer wins": ([held(150), held(153), held(153)], 153, [N2, N3]),
    "2.10.2 a minority's longer copy is adopted": ([held(150), held(153)], 153, [N2]),
    "2.10.2 the shortest is never chosen": ([held(150), held(125)], 150, [N1]),
    "2.10.3 finalized wins": ([held(150, closed=True), held(145)], 150, [N1]),
    "2.10.4 finalized first, an equal copy helps": (
        [held(125), held(150), held(150, closed=True)],
        150,
        [N3, N2],
    ),
    "2.10.5 nobody has an edit": ([Empty(), Empty()], None, []),
    "2.10.6 a newer writer beats a longer copy": (
        [held(153), held(151, writer=2, digest="second")],
        151,
        [N2],
    ),
    "2.10.6' of equal length the newer writer's bytes win": (
        [held(153, digest="stale"), held(153, writer=2), held(153, writer=2)],
        153,
        [N2, N3],
    ),
    "2.10.7 an accepted recovery beats a longer copy": (
        [held(150, accepted=2), held(153)],
        150,
        [N1],
    ),
    "the better of the other copies is the next source": (
        [held(150, writer=3), held(150), held(150, writer=2)],
        150,
        [N1, N3, N2],
    ),
    "a copy whose bytes nobody knows is no source": (
        [held(150, digest="none"), held(150, digest="none")],
        150,
        [N1],
    ),
    "one empty node does not matter": ([Empty(), held(103), Empty()], 103, [N2]),
    "finalized beats longer": ([held(103, closed=True), held(104)], 103, [N1]),
    "finalized beats an accepted recovery": (
        [held(104, accepted=9), held(103, closed=True)],
        103,
        [N2],
    ),
}


@pytest.mark.row("8.5 SegmentRecoveryComparator.Comparisons")
@pytest.mark.parametrize(("answers", "last", "sources"), CASES.values(), ids=CASES.keys())
def test_comparisons_of_known_cases(
    answers: list[Answer], last: int | None, sources: list[NodeName]
) -> None:
    decision = choose(FIRST, dict(zip([N1, N2, N3], answers, strict=False)))
    if last is None:
        assert decision == Skip()
        return
    assert isinstance(decision, Copy)
    assert decision.segment.last == last
    assert list(decision.sources) == sources


def test_a_copy_whose_bytes_are_not_known_yet_contradicts_nobody() -> None:
    answers = {N1: held(150, digest="none"), N2: held(150)}
    assert isinstance(choose(FIRST, answers), Copy)


BROKEN: dict[str, list[Answer]] = {
    "two finalized ends": [held(150, closed=True), held(151, closed=True)],
    "two finalized contents": [held(150, closed=True), held(150, closed=True, digest="other")],
    "one writer, one end, two contents": [held(150), held(150, digest="other")],
    "a committed edit would be dropped": [held(150, writer=2), held(153, committed=151)],
    "a node without the segment knows it committed": [Empty(committed=TxId(150)), held(149)],
    "nobody has what was committed": [Empty(committed=TxId(101)), Empty()],
    "another segment was answered": [HeldSegment(Segment(TxId(99), TxId(150), finalized=False))],
    "a segment without an edit": [held(100)],
}


@pytest.mark.parametrize("answers", BROKEN.values(), ids=BROKEN.keys())
def test_facts_that_cannot_both_hold_stop_the_recovery(answers: list[Answer]) -> None:
    with pytest.raises(InvariantBroken):
        choose(FIRST, dict(zip([N1, N2, N3], answers, strict=False)))


def test_the_order_of_the_answers_decides_nothing() -> None:
    answers = {N3: held(150), N1: held(150), N2: held(149)}
    expected = choose(FIRST, answers)
    for names in ([N1, N2, N3], [N2, N3, N1], [N3, N2, N1]):
        assert choose(FIRST, {name: answers[name] for name in names}) == expected
    assert isinstance(expected, Copy)
    assert expected.sources == (N1, N3)


# ---- every combination, against an oracle that shares no code with the product ----


def compare(left: HeldSegment, right: HeldSegment) -> int:
    """SegmentRecoveryComparator, row by row: positive if ``left`` is the better one."""
    one, two = left.segment, right.segment
    if one.finalized != two.finalized:
        return 1 if one.finalized else -1
    if one.finalized:
        if one.last != two.last:
            raise InvariantBroken("finalized with two ends")
        return 0
    for a, b in (
        (max(left.accepted_in, one.writer), max(right.accepted_in, two.writer)),
        (one.last, two.last),
    ):
        if a != b:
            return 1 if a > b else -1
    return 0


def oracle(answers: Mapping[NodeName, Answer]) -> tuple[int, bytes, set[NodeName]] | str:
    """Return the end, the bytes and the nodes that have them; or "skip", or "broken"."""
    copies = {n: a for n, a in answers.items() if isinstance(a, HeldSegment)}
    known = [a.committed for a in answers.values() if a.committed is not None]
    try:
        for one, two in product(copies.values(), repeat=2):
            if compare(one, two) == 0 and one.segment.digest != two.segment.digest:
                return "broken"
        best = [a for a in copies.values() if all(compare(a, b) >= 0 for b in copies.values())]
    except InvariantBroken:
        return "broken"
    end = best[0].segment.last if best else FIRST - 1
    if any(c > end for c in known):
        return "broken"
    if not best:
        return "skip"
    chosen = best[0].segment
    alike = {
        n
        for n, a in copies.items()
        if (a.segment.last, a.segment.digest) == (chosen.last, chosen.digest)
    }
    return chosen.last, chosen.digest, alike


def every_answer(committed: list[TxId | None]) -> Iterator[Answer]:
    for known in committed:
        yield Empty(committed=known)
        for closed, last, digest, accepted, writer in product(
            [False, True], [101, 102], [b"a", b"b"], [0, 2], [1, 2]
        ):
            segment = Segment(FIRST, TxId(last), closed, digest, Epoch(writer))
            yield HeldSegment(segment, Epoch(accepted), known)


def check(answers: dict[NodeName, Answer]) -> str:
    expected = oracle(answers)
    try:
        decision = choose(FIRST, answers)
    except InvariantBroken:
        assert expected == "broken", answers
        return "broken"
    if isinstance(decision, Skip):
        assert expected == "skip", answers
        return "skip"
    assert not isinstance(expected, str), answers
    assert (decision.segment.last, decision.segment.digest) == expected[:2], answers
    assert set(decision.sources) == expected[2], answers
    assert len(decision.sources) == len(expected[2]), answers
    assert answers[decision.sources[0]].segment == decision.segment, answers  # type: ignore[union-attr]
    return "copy"


def test_every_pair_of_answers_is_decided_as_the_design_says() -> None:
    options = list(every_answer([None, TxId(101), TxId(102)]))
    seen = {check({N1: one, N2: two}) for one, two in product(options, repeat=2)}
    assert seen == {"copy", "skip", "broken"}


def test_every_triple_of_answers_is_decided_as_the_design_says() -> None:
    options = list(every_answer([None]))
    seen = {
        check(dict(zip([N1, N2, N3], three, strict=True))) for three in product(options, repeat=3)
    }
    assert seen == {"copy", "skip", "broken"}

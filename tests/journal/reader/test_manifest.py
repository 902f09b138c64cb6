"""Many nodes' lists of segments become one list without gaps."""

import pytest

from journal.errors import GapFound, InvariantBroken
from journal.model import NodeName, Segment, TxId
from journal.reader.manifest import merge

A, B, C = NodeName("a:1"), NodeName("b:1"), NodeName("c:1")


def closed(first: int, last: int, digest: bytes = b"") -> Segment:
    return Segment(TxId(first), TxId(last), finalized=True, digest=digest)


def open_at(first: int, last: int) -> Segment:
    return Segment(TxId(first), TxId(last), finalized=False)


def ranges(manifests: dict[NodeName, list[Segment]], first: int) -> list[tuple[int, int, str]]:
    merged = merge(manifests, TxId(first))
    return [(r.segment.first, r.segment.last, "".join(s[0] for s in r.sources)) for r in merged]


def test_each_segment_lists_everyone_who_has_it() -> None:
    manifests = {A: [closed(1, 3), closed(4, 6)], B: [closed(4, 6), closed(7, 9)]}
    assert ranges(manifests, 1) == [(1, 3, "a"), (4, 6, "ab"), (7, 9, "b")]


def test_reading_may_begin_inside_a_segment() -> None:
    assert ranges({A: [closed(1, 3), closed(4, 6)], B: []}, 5) == [(4, 6, "a")]


def test_an_open_segment_is_not_read() -> None:
    assert ranges({A: [closed(1, 3), open_at(4, 9)], B: [open_at(1, 3)]}, 1) == [(1, 3, "a")]


def test_nothing_new_is_no_gap() -> None:
    assert ranges({A: [closed(1, 3)], B: [closed(1, 3)]}, 4) == []
    assert ranges({A: [], B: []}, 1) == []


def test_a_gap_is_named() -> None:
    with pytest.raises(GapFound, match=r"transactions 4-6 are missing") as gap:
        merge({A: [closed(1, 3), closed(7, 9)], B: [closed(1, 3)]}, TxId(1))
    assert (gap.value.missing_first, gap.value.missing_last) == (4, 6)


def test_edits_that_were_purged_are_a_gap() -> None:
    with pytest.raises(GapFound, match=r"transactions 1-3 are missing"):
        merge({A: [closed(4, 6)], B: []}, TxId(1))


FORKS = {
    "two ends": ({A: [closed(1, 3)], B: [closed(1, 4)]}, "1-3.*1-4"),
    "two contents": ({A: [closed(1, 3, b"x")], B: [], C: [closed(1, 3, b"y")]}, "different bytes"),
    "overlap": ({A: [closed(1, 5)], B: [closed(4, 6)]}, "overlap"),
}


@pytest.mark.parametrize(("manifests", "says"), FORKS.values(), ids=FORKS.keys())
def test_a_forked_history_stops_the_reader(
    manifests: dict[NodeName, list[Segment]], says: str
) -> None:
    with pytest.raises(InvariantBroken, match=says):
        merge(manifests, TxId(1))


def test_an_unknown_digest_contradicts_nobody() -> None:
    manifests = {A: [closed(1, 3)], B: [closed(1, 3, b"y")], C: [closed(1, 3, b"y")]}
    assert ranges(manifests, 1) == [(1, 3, "abc")]
    with pytest.raises(InvariantBroken, match="different bytes"):
        merge({**manifests, C: [closed(1, 3, b"z")]}, TxId(1))

"""Many nodes' lists of segments become one list without gaps."""

import pytest

from journal.errors import GapFound, InvariantBroken
from journal.model import Epoch, NodeName, Segment, TxId
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


#   digests on A, B and C; whose copy stands for all
STANDS: dict[str, tuple[tuple[bytes, bytes, bytes], NodeName]] = {
    "nobody has a digest": ((b"", b"", b""), A),
    "all have one": ((b"y", b"y", b"y"), A),
    "the first has one": ((b"y", b"", b""), A),
    "the second has one": ((b"", b"y", b""), B),
    "the first and the last have one": ((b"y", b"", b"y"), A),
    "the second and the last have one": ((b"", b"y", b"y"), B),
    "the last has one": ((b"", b"", b"y"), C),
}


@pytest.mark.parametrize(("digests", "whose"), STANDS.values(), ids=list(STANDS))
def test_the_first_copy_with_a_digest_stands_for_all(
    digests: tuple[bytes, bytes, bytes], whose: NodeName
) -> None:
    copies = {
        node: Segment(TxId(1), TxId(3), True, digest, Epoch(number))
        for number, (node, digest) in enumerate(zip((A, B, C), digests, strict=True), 1)
    }
    (merged,) = merge({node: [copy] for node, copy in copies.items()}, TxId(1))
    assert merged.segment == copies[whose]
    assert merged.sources == (A, B, C)


#   where reading begins, with 1-3 and 4-6 finalized
BEGINS = {1: [(1, 3), (4, 6)], 3: [(1, 3), (4, 6)], 4: [(4, 6)], 6: [(4, 6)], 7: []}


@pytest.mark.parametrize(("first", "read"), BEGINS.items())
def test_reading_begins_with_the_segment_that_has_the_first_edit(
    first: int, read: list[tuple[int, int]]
) -> None:
    manifests = {A: [closed(1, 3), closed(4, 6)], B: [closed(1, 3)]}
    assert [(one, last) for one, last, _ in ranges(manifests, first)] == read


def test_a_gap_of_one_edit_behind_a_segment_in_which_reading_begins() -> None:
    with pytest.raises(GapFound, match=r"transactions 4-4 are missing") as gap:
        merge({A: [closed(1, 3), closed(5, 9)], B: []}, TxId(2))
    assert (gap.value.missing_first, gap.value.missing_last) == (4, 4)


def test_two_segments_that_both_hold_the_first_edit_overlap() -> None:
    with pytest.raises(InvariantBroken, match=r"on a:1 and .* on b:1 overlap"):
        merge({A: [closed(1, 9)], B: [closed(4, 6)]}, TxId(5))

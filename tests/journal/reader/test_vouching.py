"""What another's copy vouches for: no byte that the one copy has not, none that it alone has."""

from hypothesis import given
from hypothesis import strategies as st

from journal.model import NodeName, Segment, TxId
from journal.reader.frame_stream import Chunk, split
from journal.reader.vouching import confirmed_by, copy_in
from tests.journal.writer.journal_cluster import edit

TAGS = st.sampled_from(["", "a", "bb"])
COPIES = st.lists(st.lists(TAGS, min_size=1, max_size=6), min_size=0, max_size=4)
FIRST = 5


def chunk(tags: list[str], layout: int = -66) -> Chunk:
    records = b"".join(edit(FIRST + at, tag) for at, tag in enumerate(tags))
    return Chunk(TxId(FIRST), TxId(FIRST + len(tags) - 1), layout, records)


def name(number: int) -> NodeName:
    return NodeName(f"n{number}:1")


@given(st.lists(TAGS, min_size=1, max_size=6), COPIES)
def test_it_is_the_longest_common_stretch_of_the_one_copy(
    lone: list[str], others: list[list[str]]
) -> None:
    heads = {name(number): chunk(tags) for number, tags in enumerate(others)}
    found = confirmed_by(chunk(lone), heads)
    length = min([len(lone), *map(len, others)])
    same = {name(n) for n, tags in enumerate(others) if tags[:length] == lone[:length]}
    assert set(found.agreeing) == same
    assert (found.chunk is not None) == bool(same)
    given = b"" if found.chunk is None else found.chunk.records
    rest = b"" if found.rest is None else found.rest.records
    assert given + rest == chunk(lone).records  # nothing is another's, nothing is lost
    for node, behind in found.agreeing.items():
        assert given + (b"" if behind is None else behind.records) == heads[node].records


@given(st.lists(TAGS, min_size=1, max_size=6), COPIES)
def test_step_by_step_everything_given_out_is_in_some_other_copy(
    lone: list[str], others: list[list[str]]
) -> None:
    left: Chunk | None = chunk(lone)
    heads = {name(number): chunk(tags) for number, tags in enumerate(others)}
    given: list[bytes] = []
    while left is not None and heads:
        found = confirmed_by(left, heads)
        if found.chunk is None:
            break
        given += split(found.chunk.records)
        left, heads = found.rest, {n: rest for n, rest in found.agreeing.items() if rest}
    assert given == split(chunk(lone).records)[: len(given)]
    if given:
        assert any(split(chunk(tags).records)[: len(given)] == given for tags in others)
    # And it gives out all that can be confirmed.
    reach = [
        next((at for at, (x, y) in enumerate(zip(tags, lone, strict=False)) if x != y), None)
        or (0 if tags[0] != lone[0] else min(len(tags), len(lone)))
        for tags in others
    ]
    assert len(given) <= max(reach, default=0)


def test_the_same_bytes_under_another_layout_are_other_edits() -> None:
    assert confirmed_by(chunk(["a"]), {name(1): chunk(["a"], layout=-63)}).chunk is None


def test_which_copies_can_have_the_same_edits() -> None:
    def segment(first: int, last: int, *, finalized: bool) -> Segment:
        return Segment(TxId(first), TxId(last), finalized=finalized)

    wanted = segment(5, 9, finalized=True)
    for one, can in (
        (segment(5, 9, finalized=True), True),
        (segment(5, 9, finalized=False), True),
        (segment(5, 12, finalized=False), True),
        (segment(5, 12, finalized=True), False),  # a fork: it ends elsewhere
        (segment(5, 8, finalized=False), False),
        (segment(4, 12, finalized=False), False),
    ):
        assert (copy_in([segment(1, 4, finalized=True), one], wanted) == one) is can

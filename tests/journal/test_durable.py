"""The rule for what readers may be shown of the open segment, against all that could be chosen."""

from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal.durable import Tail, durable_prefix
from journal.model import NO_EPOCH, Epoch, NodeName, TxId

A, B, C = NodeName("a"), NodeName("b"), NodeName("c")


def tail(text: str, writers: str = "", committed: int | None = None) -> Tail:
    """Make one edit for each letter; writers are digits, the last one goes on."""
    edits = [letter.encode() for letter in text]
    epochs = [Epoch(int(digit)) for digit in writers.ljust(len(text), writers[-1:] or "1")]
    return Tail(edits, epochs, None if committed is None else TxId(committed))


def durable(tails: Mapping[NodeName, Tail], members: int = 3, first: int = 1) -> tuple[int, str]:
    found = durable_prefix(tails, first=TxId(first), members=members)
    return found.count, "".join(found.holders)


def test_counts_of_a_majority() -> None:
    """Unit.ReadRpcInputStreams, Mismatched, OneSlow, OneException and NoNewEdits."""
    assert durable({A: tail("xyz"), B: tail("xyz"), C: tail("xyz")}) == (3, "abc")
    assert durable({A: tail("x"), B: tail("xy"), C: tail("xyz")}) == (2, "bc")
    assert durable({A: tail("x"), B: tail("xy")}) == (1, "ab")
    assert durable({A: tail(""), B: tail(""), C: tail("")}) == (0, "")


def test_a_majority_is_one_of_all_nodes_not_of_those_that_answer() -> None:
    assert durable({A: tail("xyz")}) == (0, "")
    assert durable({A: tail("xyz"), B: tail("xyz")}, members=5) == (0, "")


def test_other_bytes_under_the_same_numbers_do_not_count() -> None:
    """Give b edits of epoch 1 that were never acknowledged."""
    tails = {A: tail("new", "2"), B: tail("old", "1"), C: tail("new", "2")}
    assert durable(tails) == (3, "ac")
    assert durable({A: tail("new", "2"), B: tail("old", "1")}) == (0, "")


def test_equal_bytes_of_a_half_finished_recovery_are_not_durable() -> None:
    """Play the schedule of the module's docstring: c's newer edit may still win."""
    half = {A: tail("x", "1"), B: tail("x", "0"), C: tail("y", "2")}
    assert durable(half) == (0, "")
    known = {A: tail("x", "1", 1), B: tail("x", "0", 1)}
    assert durable(known) == (1, "ab")
    assert durable({A: tail("x", "1", 1), B: tail("x", "0")}) == (0, "")


@pytest.mark.parametrize(
    ("a", "b", "other", "found"),
    [
        ("1", "1", "2", (0, "")),
        ("1", "1", "1", (1, "ab")),
        ("2", "2", "1", (1, "ab")),
        ("1", "3", "2", (1, "ab")),
        ("3", "1", "2", (1, "ab")),
        ("1", "3", "3", (1, "ab")),
        ("1", "3", "4", (0, "")),
        ("0", "0", "0", (1, "ab")),
        ("0", "0", "1", (0, "")),
    ],
)
def test_what_a_newer_writer_contradicts_is_not_handed_out(
    a: str, b: str, other: str, found: tuple[int, str]
) -> None:
    """Compare with the newest writer of the edit, which is known to be committed."""
    tails = {A: tail("x", a, 1), B: tail("x", b, 1), C: tail("y", other)}
    assert durable(tails) == found


@pytest.mark.parametrize(
    ("a", "b", "first", "count"),
    [
        (None, None, 1, 0),
        (0, 3, 1, 0),
        (1, 3, 1, 1),
        (3, 2, 1, 2),
        (3, 3, 1, 3),
        (9, 9, 1, 3),
        (4, 9, 5, 0),
        (5, 9, 5, 1),
        (7, 9, 5, 3),
        (None, 9, 1, 0),
    ],
)
def test_edits_of_nobody_count_as_far_as_a_majority_knows_them_committed(
    a: int | None, b: int | None, first: int, count: int
) -> None:
    tails = {A: tail("xyz", "0", a), B: tail("xyz", "0", b), C: tail("")}
    assert durable(tails, first=first) == (count, "ab" if count else "")


def test_each_edit_needs_a_majority_of_one_writer() -> None:
    """Other nodes may have it from others; what a majority has last ends it."""
    assert durable({A: tail("xyz", "112"), B: tail("xyz", "112"), C: tail("xyz", "1")}) == (
        3,
        "abc",
    )
    assert durable({A: tail("xyz", "112"), B: tail("xyz", "113"), C: tail("xyz", "114")}) == (
        2,
        "abc",
    )
    five = {A: tail("x", "1"), B: tail("x", "2"), C: tail("x", "2"), NodeName("d"): tail("x", "2")}
    assert durable(five, members=5) == (1, "abcd")
    assert durable({**five, C: tail("x", "1")}, members=5) == (0, "")


def brute_force(tails: Mapping[NodeName, Tail], first: int, members: int) -> tuple[int, str]:
    """Find the longest sequence of edits of which each one, by some majority, cannot vanish."""
    needed = members // 2 + 1
    best: tuple[int, str] = (0, "")
    for proposer in tails.values():
        for length in range(1, len(proposer.edits) + 1):
            wanted = list(proposer.edits[:length])
            if all(_safe(tails, wanted[: k + 1], first, needed) for k in range(length)):
                holders = [n for n in sorted(tails) if list(tails[n].edits[:length]) == wanted]
                best = max(best, (length, "".join(holders)))
    return best


def _safe(tails: Mapping[NodeName, Tail], prefix: list[bytes], first: int, needed: int) -> bool:
    at = len(prefix) - 1
    having = [t for t in tails.values() if list(t.edits[: at + 1]) == prefix]
    newest = max((t.writers[at] for t in having), default=NO_EPOCH)
    for other in tails.values():
        if len(other.edits) > at and other.edits[at] != prefix[at] and other.writers[at] > newest:
            return False
    for group in combinations(having, needed):
        if all(t.committed is not None and t.committed >= first + at for t in group):
            return True
        writers = {t.writers[at] for t in group}
        if len(writers) == 1 and writers != {NO_EPOCH}:
            return True
    return False


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[NodeName, Tail], int, int]:
    members = draw(st.integers(1, 5))
    first = draw(st.integers(1, 3))
    tails = {}
    for name in "abcde"[: draw(st.integers(0, members))]:
        text = draw(st.text("xy", max_size=4))
        writers = draw(st.lists(st.integers(0, 2), min_size=len(text), max_size=len(text)))
        committed = draw(st.none() | st.integers(0, 6))
        tails[NodeName(name)] = Tail(
            [letter.encode() for letter in text],
            [Epoch(writer) for writer in writers],
            None if committed is None else TxId(committed),
        )
    return tails, first, members


@given(answers())
@settings(max_examples=1000, deadline=None)
def test_the_rule_is_the_brute_force_model(given_: tuple[dict[NodeName, Tail], int, int]) -> None:
    tails, first, members = given_
    assert durable(tails, members, first) == brute_force(tails, first, members)

"""The tally of a majority call against an obviously right, slow version."""

from itertools import permutations, product

import pytest

from journal.errors import InvariantBroken
from journal.model import MAX_EPOCH_LEAP, Epoch, NodeName
from journal.quorum import CallOutcome, Tally, majority, majority_of, next_epoch

NAMES = [NodeName(f"n{i}") for i in range(5)]


def slow_verdict(members: int, answers: dict[NodeName, bool]) -> CallOutcome:
    """Play every possible future; certain is what holds in all of them."""
    silent = [name for name in NAMES[:members] if name not in answers]
    futures = set()
    for rest in product([True, False], repeat=len(silent)):
        final = {**answers, **dict(zip(silent, rest, strict=True))}
        futures.add(sum(final.values()) * 2 > members)
    if futures == {True}:
        return CallOutcome.WON
    return CallOutcome.LOST if futures == {False} else CallOutcome.PENDING


@pytest.mark.row("8.5 QuorumCall.Quorums")
@pytest.mark.parametrize("members", [1, 2, 3, 4, 5])
def test_quorums_the_verdict_is_what_every_possible_future_agrees_on(members: int) -> None:
    for order in permutations(NAMES[:members]):
        for votes in product([True, False], repeat=members):
            tally = majority_of(NAMES[:members])
            answers: dict[NodeName, bool] = {}
            assert tally.verdict is slow_verdict(members, answers)
            for node, vote in zip(order, votes, strict=True):
                tally = tally.yes(node) if vote else tally.no(node)
                answers[node] = vote
                assert tally.verdict is slow_verdict(members, answers), answers


@pytest.mark.parametrize(
    ("members", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)]
)
def test_any_two_majorities_meet(members: int, needed: int) -> None:
    assert majority(members) == needed
    assert 2 * needed > members


def test_two_failures_of_three_are_certain_at_once() -> None:
    """Hadoop waits for the third answer here."""
    tally = majority_of(NAMES[:3]).no(NAMES[0]).no(NAMES[2])
    assert tally.verdict is CallOutcome.LOST
    assert tally.silent == {NAMES[1]}


def test_a_node_answers_once() -> None:
    tally: Tally = majority_of(NAMES[:3]).yes(NAMES[0])
    with pytest.raises(InvariantBroken):
        tally.yes(NAMES[0])
    with pytest.raises(InvariantBroken):
        tally.no(NAMES[0])
    with pytest.raises(InvariantBroken):
        tally.yes(NodeName("stranger"))


def test_a_journal_without_nodes_has_no_majority() -> None:
    with pytest.raises(InvariantBroken):
        majority_of([])


NEXT: dict[str, tuple[list[int], int, int | None]] = {
    "one above the highest": ([3, 5, 4], 3, 6),
    "of a majority": ([7, 7], 3, 8),
    "one node was made to promise an absurd number": ([3, 2**40, 4], 3, 5),
    "a large leap": ([5, 5 + MAX_EPOCH_LEAP // 2 - 1, 5], 3, 5 + MAX_EPOCH_LEAP // 2),
    "one more": ([5, 5 + MAX_EPOCH_LEAP // 2, 5], 3, 6),
    "two were, and one is left out": ([3, 2**40, 2**40], 3, 2**40 + 1),
    "the first two to answer differ too much": ([3, 2**40], 3, None),
    "two of five": ([3, 2**40, 4, 5, 2**41], 5, 6),
}


@pytest.mark.parametrize(("promises", "nodes", "wanted"), NEXT.values(), ids=list(NEXT))
def test_an_absurd_promise_of_a_minority_does_not_stop_the_next_claim(
    promises: list[int], nodes: int, wanted: int | None
) -> None:
    assert next_epoch([Epoch(promise) for promise in promises], nodes) == wanted


def test_silent_is_who_has_said_neither() -> None:
    assert majority_of(NAMES[:4]).yes(NAMES[0]).no(NAMES[1]).silent == {NAMES[2], NAMES[3]}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_a_node_answers_once_whatever_it_says(first: bool, second: bool) -> None:
    tally = majority_of(NAMES[:3])
    tally = tally.yes(NAMES[0]) if first else tally.no(NAMES[0])
    with pytest.raises(InvariantBroken, match="answers once"):
        tally.yes(NAMES[0]) if second else tally.no(NAMES[0])

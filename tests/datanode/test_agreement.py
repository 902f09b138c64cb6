"""What a recovery ends with, from what the DataNodes have."""

import pytest

from datanode.model import ReplicaState
from datanode.replicas.agreement import Agreed, Disagreement, Empty, Found, agree
from tests.datanode.stores import block

F, RBW, RWR = ReplicaState.FINALIZED, ReplicaState.RBW, ReplicaState.RWR
TMP, RUR = ReplicaState.TEMPORARY, ReplicaState.RUR
Replica = tuple[str, ReplicaState, int]

CASES: dict[str, tuple[list[Replica], int | None, tuple[str, int] | str]] = {
    "all finalized": ([("a", F, 9), ("b", F, 9)], None, ("ab", 9)),
    "finalized of two lengths": ([("a", F, 9), ("b", F, 8)], None, "have lengths [8, 9]"),
    "an open one as long takes part": ([("a", F, 9), ("b", RBW, 9)], None, ("ab", 9)),
    "an open one of another length does not": ([("a", F, 9), ("b", RBW, 12)], None, ("a", 9)),
    "one that waits does not, even as long": ([("a", F, 9), ("b", RWR, 9)], None, ("a", 9)),
    "the shortest of the open ones": ([("a", RBW, 9), ("b", RBW, 7)], None, ("ab", 7)),
    "open ones before those that wait": ([("a", RWR, 9), ("b", RBW, 7)], None, ("b", 7)),
    "those that wait, if there are no others": ([("a", RWR, 9), ("b", RWR, 5)], None, ("ab", 5)),
    "nothing at all": ([], None, "empty"),
    "no bytes": ([("a", RBW, 0), ("b", RBW, 0)], None, "empty"),
    "empty ones do not count": ([("a", RBW, 0), ("b", RWR, 5)], None, ("b", 5)),
    "a single byte counts": ([("a", RBW, 1), ("b", RWR, 5)], None, ("a", 1)),
    "unusable states only": ([("a", TMP, 5), ("b", RUR, 5)], None, "in a usable state"),
    "cut": ([("a", F, 9), ("b", F, 9)], 4, ("ab", 4)),
    "cut, where one is too short": ([("a", RBW, 9), ("b", RBW, 3)], 4, ("a", 4)),
    "cut, where another truncation has begun": ([("a", F, 9), ("b", F, 4)], 4, ("ab", 4)),
    "cut beyond all": ([("a", F, 3)], 4, "has the 4 bytes to keep"),
}


@pytest.mark.row("B25")
@pytest.mark.parametrize("case", CASES)
def test_b25_agreements(case: str) -> None:
    replicas, truncate_to, expected = CASES[case]
    found = [Found(node, state, block(), length) for node, state, length in replicas]
    match agree(block(), found, truncate_to):
        case Agreed(replicas=part, length=length):
            assert ("".join(sorted(one.node for one in part)), length) == expected
        case Empty():
            assert expected == "empty"
        case Disagreement(why=why):
            assert isinstance(expected, str)
            assert expected in why


def test_older_replicas_do_not_count() -> None:
    old = Found("a", F, block(stamp=1000), 9)
    assert agree(block(), [old], None) == Empty()


def test_a_block_does_not_go_while_somebody_is_silent() -> None:
    nothing = Found("a", RBW, block(), 0)
    assert agree(block(), [nothing], None) == Empty()
    answer = agree(block(), [nothing], None, silent=1)
    assert isinstance(answer, Disagreement)
    assert "1 do not answer" in answer.why
    whole = Found("b", RBW, block(), 9)
    assert agree(block(), [nothing, whole], None, silent=1) == Agreed((whole,), 9)

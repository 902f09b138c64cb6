"""Aimed worlds: nothing is lost in them, recovery meets copies that differ, and nodes catch up."""

from collections import Counter
from collections.abc import Mapping
from unittest.mock import patch

import pytest

from journal.core import rejoin
from journal.core.effects import Step
from journal.core.requests import AdoptCatchUp
from journal.core.state import JournalState
from journal.model import NodeName, TxId
from journal.recovery import Answer, Copy, HeldSegment, Skip, choose
from journal.writer import writer
from tests.simulation.journal.ambush import FIRST, FIRST_LATE, FIRST_LONG
from tests.simulation.journal.comebacks import FIRST_REJOIN
from tests.simulation.journal.simulation import SIMULATION

WORLDS = 25
LEAST_DIFFER = 5
LEAST_EQUAL_ENDS = 1
"""`./run soak journal --aimed` has one world in three, and one in ten."""
LEAST_CATCH_UP = 2
"""`./run soak journal --long` has one world in ten."""
LEAST_AGAIN = 10
"""`./run soak journal --late` has three worlds in four."""
LEAST_REJOIN = 10
"""`./run soak journal --rejoin` has nearly each world."""


def test_recovery_meets_copies_that_differ_and_loses_nothing() -> None:
    met: set[str] = set()

    def watched(first: TxId, answers: Mapping[NodeName, Answer]) -> Copy | Skip:
        held = [answer.segment for answer in answers.values() if isinstance(answer, HeldSegment)]
        ends = {(segment.last, segment.digest) for segment in held}
        if len(ends) > 1:
            met.add("they differ")
        if len({last for last, _ in ends}) < len(ends):
            met.add("equal end, other bytes")
        return choose(first, answers)

    worlds: Counter[str] = Counter()
    with patch.object(writer, "choose", watched):
        for seed in range(FIRST + 1, FIRST + 1 + WORLDS):
            met.clear()
            outcome = SIMULATION.run(seed)
            assert outcome.violation is None, SIMULATION.replay_command(outcome)
            worlds.update(met)
    assert worlds["they differ"] >= LEAST_DIFFER
    assert worlds["equal end, other bytes"] >= LEAST_EQUAL_ENDS


def test_nodes_fetch_what_their_writer_does_not_keep_and_lose_nothing() -> None:
    adopted: list[AdoptCatchUp] = []

    def watched(state: JournalState, request: AdoptCatchUp) -> Step:
        adopted.append(request)
        return adopt(state, request)

    adopt, worlds = rejoin.adopt, 0
    with patch.object(rejoin, "adopt", watched):
        for seed in range(FIRST_LONG + 1, FIRST_LONG + 1 + WORLDS):
            adopted.clear()
            outcome = SIMULATION.run(seed)
            assert outcome.violation is None, SIMULATION.replay_command(outcome)
            worlds += bool(adopted)
    assert worlds >= LEAST_CATCH_UP


@pytest.mark.parametrize(
    ("first", "told", "least"),
    [(FIRST_LATE, " again ", LEAST_AGAIN), (FIRST_REJOIN, "journal.node_rejoined", LEAST_REJOIN)],
    ids=["old requests come once more", "nodes come back amid trouble"],
)
def test_what_a_family_is_about_happens_in_it_and_loses_nothing(
    first: int, told: str, least: int
) -> None:
    worlds = 0
    for seed in range(first + 1, first + 1 + WORLDS):
        outcome = SIMULATION.run(seed, keep_trace=True)
        assert outcome.violation is None, SIMULATION.replay_command(outcome)
        worlds += any(told in line for line in outcome.lines)
    assert worlds >= least


def test_an_aimed_world_is_the_same_again() -> None:
    first, second = (SIMULATION.run(FIRST + 7, keep_trace=True) for _ in range(2))
    assert first.digest == second.digest
    assert any(" aim " in line for line in first.lines)

"""Aimed worlds of the control plane: what strikes at a place in a takeover does no harm."""

from tests.simulation.failover.places import FIRST
from tests.simulation.failover.simulation import SIMULATION

WORLDS = 25


def test_what_comes_at_a_place_harms_nobody() -> None:
    struck = 0
    for seed in range(FIRST + 1, FIRST + 1 + WORLDS):
        outcome = SIMULATION.run(seed)
        assert outcome.violation is None, SIMULATION.replay_command(outcome)
        struck += any(" at " in name for name in outcome.fired)
    assert struck > WORLDS // 2


def test_an_aimed_world_is_the_same_again() -> None:
    first, second = (SIMULATION.run(FIRST + 7, keep_trace=True) for _ in range(2))
    assert first.digest == second.digest

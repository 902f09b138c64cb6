"""The checks see planted bugs of the control plane, at the seeds that are known to show them."""

import pytest

from tests.simulation.failover.hunting import hunt, known_seeds
from tests.simulation.failover.killers import KILLERS
from tests.simulation.failover.mutants import MUTANTS, Mutant, planted
from tests.simulation.failover.shrinking import replay_command, smallest
from tests.simulation.failover.world import run

LEAST_FOUND = 34
OFTEN = [mutant for mutant in MUTANTS if mutant.name not in KILLERS]
"""Each of these is shown by so many worlds that one is always near."""


def test_enough_planted_bugs_are_found() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert known_seeds().keys() <= set(names)
    assert len(known_seeds()) >= LEAST_FOUND


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", OFTEN, ids=[mutant.name for mutant in OFTEN])
def test_a_drawn_world_finds_a_planted_bug(mutant: Mutant) -> None:
    """At the seed that is noted, or near it: timing in the product moves them."""
    found = hunt(mutant)
    assert found.seed, f"survived {found.worlds} worlds"


def test_a_failing_seed_is_made_smaller() -> None:
    """Shrunk runs fail in the same way with fewer faults, and their command says which."""
    replaced = next(
        mutant for mutant in MUTANTS if mutant.name == "the breadcrumb is only replaced"
    )
    with planted(replaced):
        failing = next(
            outcome
            for seed in range(1, 100)
            if (outcome := run(seed)).violation is not None and len(outcome.fired) > 3
        )
        smaller = smallest(failing)
        assert smaller.violation is not None
        assert failing.violation is not None
        assert smaller.violation.invariant == failing.violation.invariant
        assert len(smaller.fired) < len(failing.fired)
        again = run(smaller.seed, only=frozenset(smaller.fired))
        assert str(again.violation) == str(smaller.violation)
    for fault in smaller.fired:
        assert fault in replay_command(smaller)

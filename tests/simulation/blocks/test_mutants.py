"""Planted bugs of blocks and DataNodes that drawn worlds are known to show, and do."""

import pytest

from tests.simulation.blocks.mutants import MUTANTS
from tests.simulation.blocks.simulation import SIMULATION
from tests.simulation.engine.mutants import Mutant

LEAST_FOUND = 11
SHOWN = [mutant for mutant in MUTANTS if mutant.name in SIMULATION.known_seeds()]
"""For the others ``./run soak blocks --mutants --from-first`` looks further."""


def test_enough_planted_bugs_are_found() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert SIMULATION.known_seeds().keys() <= set(names)
    assert len(SHOWN) >= LEAST_FOUND


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", SHOWN, ids=[mutant.name for mutant in SHOWN])
def test_a_drawn_world_finds_a_planted_bug(mutant: Mutant) -> None:
    """At the seed that is noted, or near it: timing in the product moves them."""
    found = SIMULATION.hunt(mutant)
    assert found.seed, f"survived {found.worlds} worlds"

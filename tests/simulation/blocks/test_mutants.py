"""Each planted bug of blocks and DataNodes is shown by a drawn world."""

import pytest

from tests.simulation.blocks.mutants import MUTANTS
from tests.simulation.blocks.simulation import SIMULATION
from tests.simulation.engine.mutants import Mutant

LEAST_FOUND = 15


def test_every_planted_bug_has_its_seed() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= LEAST_FOUND
    assert set(names) == SIMULATION.known_seeds().keys()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_drawn_world_finds_a_planted_bug(mutant: Mutant) -> None:
    """At the seed that is noted, or near it: timing in the product moves them."""
    found = SIMULATION.hunt(mutant)
    assert found.seed, f"survived {found.worlds} worlds"

"""Each planted bug is shown by what clients hear in a drawn world."""

import pytest

from tests.in_turn import in_turn
from tests.simulation.engine.mutants import Mutant
from tests.simulation.engine.walks import Record, found
from tests.simulation.whole.mutants import MUTANTS
from tests.simulation.whole.simulation import SIMULATION


def test_each_planted_bug_has_a_seed() -> None:
    assert SIMULATION.known_seeds().keys() == {mutant.name for mutant in MUTANTS}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", in_turn(MUTANTS))
def test_a_drawn_world_finds_a_planted_bug(mutant: Mutant, record_property: Record) -> None:
    found(SIMULATION, mutant, record_property)

"""Each planted bug of blocks and DataNodes is shown by a drawn world, or killed by a named test."""

import pytest

from tests.in_turn import in_turn
from tests.simulation.blocks.mutants import MUTANTS
from tests.simulation.blocks.simulation import SIMULATION
from tests.simulation.engine.killing import Killing, kill
from tests.simulation.engine.mutants import Mutant
from tests.simulation.engine.walks import Record, chosen, found, killed

LEAST_FOUND = 28
SHOWN = [mutant for mutant in MUTANTS if not mutant.killer]
"""Each of these is shown by enough worlds that one is always near."""
NAMED = [mutant for mutant in MUTANTS if mutant.killer]


def test_enough_planted_bugs_are_found() -> None:
    names = [mutant.name for mutant in MUTANTS]
    known = SIMULATION.known_seeds()
    assert len(set(names)) == len(names)
    assert set(names) == known.keys() | {mutant.name for mutant in NAMED}
    assert len(known) >= LEAST_FOUND
    assert all(mutant.why for mutant in NAMED)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", in_turn(SHOWN))
def test_a_drawn_world_finds_a_planted_bug(mutant: Mutant, record_property: Record) -> None:
    found(SIMULATION, mutant, record_property)


@pytest.fixture(scope="module")
def killings(request: pytest.FixtureRequest) -> dict[str, Killing]:
    """Run them all in one process."""
    return kill("blocks", chosen(request, NAMED))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", in_turn(NAMED))
def test_the_named_test_kills_the_bug(
    mutant: Mutant, killings: dict[str, Killing], record_property: Record
) -> None:
    killed(mutant, killings, record_property)

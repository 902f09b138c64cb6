"""The checkers see planted bugs: drawn worlds within their budget, or the test that is named."""

import pytest

from tests.in_turn import in_turn
from tests.simulation.engine.killing import Killing, kill
from tests.simulation.engine.mutants import Mutant
from tests.simulation.engine.walks import Record, chosen, found, killed, made_smaller
from tests.simulation.journal.mutants import MUTANTS
from tests.simulation.journal.simulation import SIMULATION

DRAWN = [mutant for mutant in MUTANTS if not mutant.killer]
NAMED = [mutant for mutant in MUTANTS if mutant.killer]


def _names(mutants: list[Mutant]) -> list[str]:
    return [mutant.name for mutant in mutants]


def test_every_rule_has_a_planted_bug_that_can_be_found() -> None:
    assert len(MUTANTS) >= 45
    assert len(set(_names(list(MUTANTS)))) == len(MUTANTS)
    assert not [mutant.name for mutant in MUTANTS if not (mutant.seeds or mutant.killer)]
    assert not [mutant.name for mutant in MUTANTS if not (mutant.seeds or mutant.why)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", in_turn(DRAWN))
def test_drawn_worlds_find_a_planted_bug(mutant: Mutant, record_property: Record) -> None:
    found(SIMULATION, mutant, record_property)


@pytest.fixture(scope="module")
def killings(request: pytest.FixtureRequest) -> dict[str, Killing]:
    """Run them all in one process."""
    return kill("journal", chosen(request, NAMED))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", in_turn(NAMED))
def test_a_named_test_kills_a_planted_bug(
    mutant: Mutant, killings: dict[str, Killing], record_property: Record
) -> None:
    killed(mutant, killings, record_property)


def test_a_failing_seed_is_made_smaller() -> None:
    made_smaller(SIMULATION, SIMULATION.mutant("no sync before the answer"))

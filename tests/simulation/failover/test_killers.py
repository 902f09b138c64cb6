"""Each planted bug is shown by a drawn world, or killed by a test that is named for it."""

import pytest

from tests.simulation.failover.hunting import known_seeds
from tests.simulation.failover.killers import KILLERS
from tests.simulation.failover.mutants import MUTANTS, Mutant, planted

NAMED = [mutant for mutant in MUTANTS if mutant.name in KILLERS]


def test_no_planted_bug_is_without_a_check() -> None:
    names = {mutant.name for mutant in MUTANTS}
    assert names == {*KILLERS, *known_seeds()}
    assert KILLERS.keys() <= names


@pytest.mark.parametrize("mutant", NAMED, ids=[mutant.name for mutant in NAMED])
def test_the_named_test_kills_the_bug(mutant: Mutant) -> None:
    killer = KILLERS[mutant.name]
    killer.run()
    with planted(mutant), pytest.raises((AssertionError, pytest.fail.Exception)):
        killer.run()

"""The checkers see planted bugs: drawn worlds within their budget, or the test that is named."""

import pytest

from tests.simulation.engine.shrink import replay_command, shrink
from tests.simulation.journal.hunting import hunt
from tests.simulation.journal.killing import Killing, kill
from tests.simulation.journal.mutants import MUTANTS, Mutant, planted
from tests.simulation.journal.world import run

DRAWN = [mutant for mutant in MUTANTS if not mutant.killer]
NAMED = [mutant for mutant in MUTANTS if mutant.killer]


def _names(mutants: list[Mutant]) -> list[str]:
    return [mutant.name for mutant in mutants]


def test_every_rule_has_a_planted_bug_that_can_be_found() -> None:
    assert len(MUTANTS) >= 45
    assert len(set(_names(list(MUTANTS)))) == len(MUTANTS)
    assert not [mutant.name for mutant in MUTANTS if not (mutant.seeds or mutant.killer)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", DRAWN, ids=_names(DRAWN))
def test_drawn_worlds_find_a_planted_bug(mutant: Mutant) -> None:
    """A few seeds are enough, or the search begins near one that is known to find it."""
    found = hunt(mutant)
    assert found.seed, f"survived {found.worlds} worlds, up to seed {mutant.seeds}"


@pytest.fixture(scope="module")
def killings() -> dict[str, Killing]:
    """One process runs them all."""
    return kill()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", NAMED, ids=_names(NAMED))
def test_a_named_test_kills_a_planted_bug(mutant: Mutant, killings: dict[str, Killing]) -> None:
    """It passes without the bug and fails with it."""
    killing = killings[mutant.name]
    assert killing.ran, f"{mutant.killer} was not run"
    assert killing.sound, f"{mutant.killer} fails without the bug"
    assert killing.failed, f"{mutant.killer} does not see it"


def test_a_failing_seed_is_made_smaller() -> None:
    """Shrunk runs fail in the same way with fewer faults, and their command says which."""
    no_sync = next(mutant for mutant in MUTANTS if mutant.name == "no sync before the answer")
    with planted(no_sync):
        failing = next(
            outcome
            for seed in range(1, no_sync.seeds + 1)
            if (outcome := run(seed)).violation is not None and len(outcome.fired) > 3
        )
        smaller = shrink(failing, lambda seed, only: run(seed, only=only))
        assert smaller.violation is not None
        assert failing.violation is not None
        assert smaller.violation.invariant == failing.violation.invariant
        assert len(smaller.fired) < len(failing.fired)
        again = run(smaller.seed, only=frozenset(smaller.fired))
        assert str(again.violation) == str(smaller.violation)
    for fault in smaller.fired:
        assert fault in replay_command(smaller)

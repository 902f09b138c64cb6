"""The checkers see planted bugs: each must be found within its seeds."""

import os

import pytest

from tests.simulation.mutants import MUTANTS, Mutant, planted
from tests.simulation.shrink import replay_command, shrink
from tests.simulation.world import run

QUICK = [mutant for mutant in MUTANTS if mutant.found <= 20]
RARE = [mutant for mutant in MUTANTS if mutant.found > 20]
NEIGHBOURS = 8


def _names(mutants: list[Mutant]) -> list[str]:
    return [mutant.name for mutant in mutants]


@pytest.mark.parametrize("mutant", QUICK, ids=_names(QUICK))
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    """These need a few seeds, whichever they are."""
    with planted(mutant):
        for seed in range(1, mutant.seeds + 1):
            if run(seed).violation is not None:
                return
    pytest.fail(f"{mutant.name}: survived {mutant.seeds} seeds")


@pytest.mark.parametrize("mutant", RARE, ids=_names(RARE))
def test_a_planted_bug_that_needs_many_seeds_is_found(mutant: Mutant) -> None:
    """Begin near a seed that is known to find it, or with NNHA_ALL_SEEDS at the first one."""
    first = 1 if os.environ.get("NNHA_ALL_SEEDS") else max(1, mutant.found - NEIGHBOURS)
    with planted(mutant):
        for seed in range(first, mutant.seeds + 1):
            if run(seed).violation is not None:
                return
    pytest.fail(f"{mutant.name}: survived the seeds up to {mutant.seeds}")


def test_a_failing_seed_is_made_smaller() -> None:
    """Shrunk runs fail in the same way with fewer faults, and their command says which."""
    digest_ignored = next(mutant for mutant in MUTANTS if mutant.name == "digest ignored")
    with planted(digest_ignored):
        failing = next(
            outcome
            for seed in range(digest_ignored.found - NEIGHBOURS, digest_ignored.seeds)
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

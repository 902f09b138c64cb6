"""A few seeds of `./run soak checkpoint`, and every planted bug at a seed that shows it."""

from pathlib import Path

import pytest

from spark.engine.outcome import InlineEngine
from tests.campaigns.soak.checkpoint import play, replay_command
from tests.campaigns.soak.checkpoint_mutants import MUTANTS, Mutant, hunt
from tests.in_turn import in_turn


@pytest.mark.parametrize("seed", range(101, 106))
def test_a_divided_merge_gives_what_one_process_gives(seed: int, tmp_path: Path) -> None:
    outcome = play(seed, InlineEngine(), tmp_path)
    assert not outcome.problems, f"{outcome.problems[0]}\n{replay_command(outcome)}"


@pytest.mark.parametrize("mutant", in_turn(MUTANTS))
def test_a_planted_bug_shows(mutant: Mutant) -> None:
    hunted = hunt(mutant)
    assert hunted.seed is not None, f"{mutant.name} survived {hunted.worlds} worlds"

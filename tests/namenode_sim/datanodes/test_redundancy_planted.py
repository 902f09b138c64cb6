"""Each planted bug is shown by a random world of test_redundancy_random."""

from contextlib import ExitStack
from typing import Final

import pytest

from namenode_sim.blocks.errors import MapBroken
from tests.namenode_sim.datanodes.redundancy_planted import BUGS, Bug
from tests.namenode_sim.datanodes.test_redundancy_random import play

MOST_SEEDS: Final = 100


def seed_that_shows() -> int | None:
    for seed in range(MOST_SEEDS):
        try:
            play(seed)
        except (AssertionError, MapBroken):
            return seed
    return None


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_bug_is_found(bug: Bug) -> None:
    with ExitStack() as planted:
        bug.plant(planted)
        assert seed_that_shows() is not None

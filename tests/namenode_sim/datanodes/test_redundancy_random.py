"""Random troubles: no replica goes that is needed, and in the end every block is whole."""

import os
from random import Random
from typing import Final

import pytest

from tests.namenode_sim.datanodes.redundancy_oracle import Oracle
from tests.namenode_sim.datanodes.redundancy_world import HAPPENINGS, World

SEEDS: Final = int(os.environ.get("NNHA_REDUNDANCY_SEEDS", "60"))


def play(seed: int, steps: int = 150) -> None:
    chance = Random(seed)
    world = World(chance)
    oracle = Oracle(world)
    oracle.settle()
    for step in range(steps):
        happening = chance.choice(HAPPENINGS)
        try:
            happening(world, chance)
            oracle.settle()
        except Exception as failure:
            failure.add_note(f"seed {seed}, step {step}: {happening.__name__}")
            raise
    oracle.ends_well()


@pytest.mark.row("B5")
def test_worlds() -> None:
    for seed in range(SEEDS):
        play(seed)

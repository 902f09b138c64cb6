"""Random edits and reports: the map says what plain dictionaries say, after each step."""

import os
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.namenode_sim.blocks.map_world import HAPPENINGS, Happening, World

SEEDS = int(os.environ.get("NNHA_BLOCKS_SEEDS", "30"))
"""How many long random programs are tried in addition to hypothesis's short ones."""

NUMBERS = st.integers(0, 2**32)


class Machine(RuleBasedStateMachine):
    """Short programs, which hypothesis makes shorter still when one fails."""

    world: World | None = None

    @initialize(seed=NUMBERS)
    def begin(self, seed: int) -> None:
        self.world = World(Random(seed))

    @rule(happening=st.sampled_from(HAPPENINGS), seed=NUMBERS)
    def happens(self, happening: Happening, seed: int) -> None:
        assert self.world is not None
        happening(self.world, Random(seed))

    @invariant()
    def the_map_is_the_model(self) -> None:
        if self.world is not None:
            self.world.ensure()

    def teardown(self) -> None:
        if self.world is not None:
            self.world.ensure_loads()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def play(seed: int, steps: int = 120) -> None:
    chance = Random(seed)
    world = World(chance)
    for step in range(steps):
        happening = chance.choice(HAPPENINGS)
        try:
            happening(world, chance)
            world.ensure()
        except Exception as failure:
            failure.add_note(f"seed {seed}, step {step}: {happening.__name__}")
            raise
    world.ensure_loads()


def test_long_programs() -> None:
    for seed in range(SEEDS):
        play(seed)

"""How a failing life of failover is made small, and shown again."""

from collections.abc import Set

from tests.simulation.engine.shrink import shrink
from tests.simulation.failover.world import run
from tests.simulation.journal.world import Outcome


def smallest(failing: Outcome) -> Outcome:
    """The same seed with as few faults as still break the same invariant."""

    def play(seed: int, only: Set[str]) -> Outcome:
        return run(seed, only=only)

    return shrink(failing, play)


def replay_command(outcome: Outcome) -> str:
    """What shows this very run again."""
    only = ",".join(outcome.fired)
    return f"python -m tests.simulation.failover --seed {outcome.seed} --only '{only}'"

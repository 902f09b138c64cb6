"""A bounded walk through simulated failovers; `./run soak failover` walks much further."""

import time

import pytest
from click.testing import CliRunner

from tests.failover_sim.__main__ import main as show
from tests.failover_sim.nemesis import (
    EVENT_KINDS,
    MESSAGE_KINDS,
    NODE_KINDS,
    OPERATOR_KINDS,
    ZOOKEEPER_KINDS,
)
from tests.failover_sim.shrinking import replay_command
from tests.failover_sim.world import run

PORTION_SECONDS = 8.0
LEAST_SEEDS = 40
MOST_SEEDS = 200


@pytest.mark.parametrize("first", [1, 50_000])
def test_one_active_at_a_time_and_service_returns(first: int) -> None:
    """Seeds until the time is up; on a failure the trace is the message."""
    began = time.process_time()
    seed, takeovers = first, 0
    while seed < first + LEAST_SEEDS or time.process_time() < began + PORTION_SECONDS:
        outcome = run(seed)
        if outcome.violation is not None:
            told = "\n".join(run(seed, keep_trace=True).lines[-60:])
            pytest.fail(f"{told}\n{outcome.violation}\n{replay_command(outcome)}")
        takeovers += outcome.acknowledged
        seed += 1
        if seed == first + MOST_SEEDS:
            break
    assert takeovers > 1.5 * (seed - first), "hardly anything fails over in these worlds"


def test_the_same_seed_leaves_the_same_trace() -> None:
    seeds = range(500, 506)
    first = [run(seed, keep_trace=True) for seed in seeds]
    assert [run(seed, keep_trace=True).digest for seed in reversed(seeds)] == [
        outcome.digest for outcome in reversed(first)
    ]
    assert len({outcome.digest for outcome in first}) == len(first)


def test_a_trace_does_not_depend_on_being_kept() -> None:
    for seed in range(510, 516):
        quiet, told = run(seed), run(seed, keep_trace=True)
        assert (quiet.steps, quiet.fired, quiet.seconds) == (told.steps, told.fired, told.seconds)


def test_every_kind_of_fault_strikes_somewhere() -> None:
    kinds = {*MESSAGE_KINDS, *ZOOKEEPER_KINDS, *NODE_KINDS, *EVENT_KINDS, *OPERATOR_KINDS}
    struck: set[str] = set()
    for seed in range(1, 300):
        struck.update(name.partition("@")[0] for name in run(seed).fired)
        if struck >= kinds:
            return
    pytest.fail(f"never seen: {sorted(kinds - struck)}")


def test_without_faults_nothing_fails_over() -> None:
    outcome = run(7, only=frozenset())
    assert outcome.violation is None
    assert not outcome.fired
    assert outcome.acknowledged == 1


def test_a_seed_can_be_shown() -> None:
    shown = CliRunner().invoke(show, ["--seed", "5"])
    assert shown.exit_code == 0, shown.output
    assert "liveness: all faults end" in shown.output
    assert shown.output.splitlines()[-1].startswith("seed 5: no invariant broke")

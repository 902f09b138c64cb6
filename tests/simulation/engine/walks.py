"""What every kind of simulated world must keep, whatever it simulates: for the tests of each."""

import time
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import count
from typing import Final

import pytest

from tests.pytest_report import BUGS_FOUND, SEEDS_PLAYED
from tests.simulation.engine.killing import Killing
from tests.simulation.engine.mutants import Mutant, planted
from tests.simulation.engine.runs import Run
from tests.simulation.engine.simulation import Simulation

_struck: Final[dict[tuple[Run, int], tuple[str, ...]]] = {}
"""The faults that have struck in a world that was played here."""

Record = Callable[[str, object], None]
"""pytest's ``record_property``: ``./run test`` adds up what it is given."""


def walk(
    simulation: Simulation,
    first: int,
    record: Record,
    *,
    least: int,
    most: int,
    cpu_seconds: float,
) -> float:
    """Play seeds until the time is up; on a failure the trace is the message.

    Returns:
        What a world acknowledged on average.
    """
    ends = time.process_time() + cpu_seconds
    acknowledged = 0
    for seed in count(first):
        outcome = simulation.run(seed)
        if outcome.violation is not None:
            told = "\n".join(simulation.run(seed, keep_trace=True).lines[-60:])
            pytest.fail(f"{told}\n{outcome.violation}\n{simulation.replay_command(outcome)}")
        _struck[simulation.run, seed] = outcome.fired
        acknowledged += outcome.acknowledged
        played = seed + 1 - first
        if played >= most or (played >= least and time.process_time() >= ends):
            record(SEEDS_PLAYED, played)
            return acknowledged / played
    raise AssertionError("unreachable")


def same_seed_same_trace(run: Run, seeds: Iterable[int]) -> None:
    """Play seeds forwards and backwards: a trace depends on nothing that was played before it."""
    chosen = list(seeds)
    first = [run(seed, keep_trace=True) for seed in chosen]
    again = [run(seed, keep_trace=True) for seed in reversed(chosen)]
    assert [outcome.digest for outcome in reversed(again)] == [each.digest for each in first]
    assert len({outcome.digest for outcome in first}) == len(first)


def told_or_not_is_the_same(run: Run, seeds: Iterable[int]) -> None:
    """Check that a walk goes the same way with a trace, so that failures can be shown."""
    for seed in seeds:
        quiet, told = run(seed), run(seed, keep_trace=True)
        assert (quiet.steps, quiet.fired, quiet.seconds) == (told.steps, told.fired, told.seconds)


def every_kind_strikes(run: Run, kinds: Set[str], seeds: Iterable[int]) -> None:
    """Check that each kind of fault is drawn: one that never is finds nothing."""
    struck: set[str] = set()
    for seed in seeds:
        fired = _struck.get((run, seed)) or run(seed).fired
        struck.update(name.partition("@")[0] for name in fired)
        if struck >= kinds:
            return
    pytest.fail(f"never seen: {sorted(kinds - struck)}")


def made_smaller(simulation: Simulation, mutant: Mutant) -> None:
    """Check that shrunk runs fail alike with fewer faults, and their command says which."""
    with planted(mutant):
        failing = next(
            outcome
            for seed in range(1, 101)
            if (outcome := simulation.run(seed)).violation is not None and len(outcome.fired) > 3
        )
        smaller = simulation.smallest(failing)
        assert smaller.violation is not None
        assert failing.violation is not None
        assert smaller.violation.invariant == failing.violation.invariant
        assert len(smaller.fired) < len(failing.fired)
        again = simulation.run(smaller.seed, only=frozenset(smaller.fired))
        assert str(again.violation) == str(smaller.violation)
    for fault in smaller.fired:
        assert fault in simulation.replay_command(smaller)


def found(simulation: Simulation, mutant: Mutant, record: Record) -> None:
    """Check that a drawn world shows it, at the noted seed or near: changes of timing move it."""
    hunted = simulation.hunt(mutant)
    assert hunted.seed, f"survived {hunted.worlds} worlds, up to seed {mutant.seeds}"
    record(BUGS_FOUND, 1)


def killed(mutant: Mutant, killings: Mapping[str, Killing], record: Record) -> None:
    """Check that the test that is named for a bug passes without it and fails with it."""
    killing = killings[mutant.name]
    assert killing.ran, f"{mutant.killer} was not run"
    assert not killing.failed_without, (
        f"{mutant.killer} fails without the bug: {killing.failed_without}"
    )
    assert killing.failed, f"{mutant.killer} does not see it"
    record(BUGS_FOUND, 1)

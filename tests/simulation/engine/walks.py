"""What every kind of simulated world must keep, whatever it simulates: for the tests of each."""

import time
from collections.abc import Callable, Iterable, Set
from itertools import count
from typing import Protocol

import pytest

from tests.simulation.journal.world import Outcome


class Run(Protocol):
    """Plays one seed."""

    def __call__(
        self, seed: int, *, only: Set[str] | None = None, keep_trace: bool = False
    ) -> Outcome:
        """What became of it; ``only`` names the faults that may happen."""


def walk(
    run: Run, first: int, *, least: int, most: int, cpu_seconds: float, replay: Callable[..., str]
) -> float:
    """Play seeds until the time is up; on a failure the trace is the message.

    Returns:
        What a world acknowledged on average.
    """
    ends = time.process_time() + cpu_seconds
    acknowledged = 0
    for seed in count(first):
        outcome = run(seed)
        if outcome.violation is not None:
            told = "\n".join(run(seed, keep_trace=True).lines[-60:])
            pytest.fail(f"{told}\n{outcome.violation}\n{replay(outcome)}")
        acknowledged += outcome.acknowledged
        played = seed + 1 - first
        if played >= most or (played >= least and time.process_time() >= ends):
            return acknowledged / played
    raise AssertionError("unreachable")


def same_seed_same_trace(run: Run, seeds: Iterable[int]) -> None:
    """Whatever was played before it."""
    chosen = list(seeds)
    first = [run(seed, keep_trace=True) for seed in chosen]
    again = [run(seed, keep_trace=True) for seed in reversed(chosen)]
    assert [outcome.digest for outcome in reversed(again)] == [each.digest for each in first]
    assert len({outcome.digest for outcome in first}) == len(first)


def told_or_not_is_the_same(run: Run, seeds: Iterable[int]) -> None:
    """A walk goes the same way with a trace and without; else no failure could be told."""
    for seed in seeds:
        quiet, told = run(seed), run(seed, keep_trace=True)
        assert (quiet.steps, quiet.fired, quiet.seconds) == (told.steps, told.fired, told.seconds)


def every_kind_strikes(run: Run, kinds: Set[str], seeds: Iterable[int]) -> None:
    """A kind of fault that is never drawn finds nothing."""
    struck: set[str] = set()
    for seed in seeds:
        struck.update(name.partition("@")[0] for name in run(seed).fired)
        if struck >= kinds:
            return
    pytest.fail(f"never seen: {sorted(kinds - struck)}")

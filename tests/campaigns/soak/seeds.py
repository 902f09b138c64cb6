"""Seed after seed of simulated worlds on all cores: the failures are kept, the first one shrunk."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

import click

from ha.daemon.process import calm_collector
from tests.campaigns.workers import workers
from tests.simulation.engine.runs import Outcome, Run
from tests.simulation.engine.simulation import Simulation

_PORTION: Final = 25
_REPORT_EVERY: Final = 20 * _PORTION
MOST_SHOWN: Final = 10
_TWICE_EVERY: Final = 100
"""One seed in this number is played twice, and must leave the same trace."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a portion of seeds gave."""

    seeds: int
    failures: tuple[tuple[int, str], ...]
    steps: int
    checks: int
    achieved: int
    cpu_seconds: float


def soak(simulation: Simulation, seeds: range, jobs: int, *, as_object: bool) -> int:
    """Play all these seeds and print what was found; return 0 only if no invariant broke."""
    began = time.monotonic()
    found: list[Findings] = []
    # The collector need not look at the modules again behind each world.
    with workers(jobs, calm_collector) as pool:
        for part in pool.map(partial(play, simulation.run), _portions(seeds)):
            found.append(part)
            for seed, why in part.failures:
                click.echo(f"seed {seed}: {why}", err=True)
            _progress(sum(each.seeds for each in found), len(seeds), began)
    facts = _facts(simulation, seeds, found, time.monotonic() - began) | {"jobs": jobs}
    failures = [failure for each in found for failure in each.failures]
    if failures:
        least = simulation.smallest(simulation.run(failures[0][0]))
        facts["replay"] = simulation.replay_command(least)
        click.echo(f"{least.violation}\n  {facts['replay']}", err=True)
    click.echo(
        f"{len(seeds)} seeds, {len(failures)} failed, {facts['seeds_per_minute']} seeds per minute"
        f" with {jobs} jobs, {facts[simulation.achieved]} {simulation.achieved.replace('_', ' ')}",
        err=True,
    )
    if as_object:
        click.echo(json.dumps(facts))
    return 1 if failures else 0


def play(run: Run, seeds: Sequence[int]) -> Findings:
    began = time.process_time()
    outcomes = [_play_one(run, seed) for seed in seeds]
    return Findings(
        len(outcomes),
        tuple((o.seed, str(o.violation)) for o in outcomes if o.violation is not None),
        sum(o.steps for o in outcomes),
        sum(o.checks for o in outcomes),
        sum(o.acknowledged for o in outcomes),
        time.process_time() - began,
    )


def _play_one(run: Run, seed: int) -> Outcome:
    if seed % _TWICE_EVERY:
        return run(seed)
    first, second = run(seed, keep_trace=True), run(seed, keep_trace=True)
    if first.digest != second.digest:
        raise AssertionError(f"seed {seed} gave two different traces")
    return second


def _facts(
    simulation: Simulation, seeds: range, found: Sequence[Findings], took: float
) -> dict[str, object]:
    failures = [failure for each in found for failure in each.failures]
    return {
        "seeds": len(seeds),
        "first_seed": seeds.start,
        "failures": [{"seed": seed, "why": why} for seed, why in failures[:MOST_SHOWN]],
        "failed": len(failures),
        "seeds_per_minute": round(60 * len(seeds) / took),
        "seeds_per_minute_and_core": round(60 * len(seeds) / sum(e.cpu_seconds for e in found)),
        "steps": sum(each.steps for each in found),
        "states_checked": sum(each.checks for each in found),
        simulation.achieved: sum(each.achieved for each in found),
        "seconds": round(took, 1),
    }


def _portions(seeds: range) -> Iterator[list[int]]:
    rest = iter(seeds)
    while portion := list(islice(rest, _PORTION)):
        yield portion


def _progress(done: int, seeds: int, began: float) -> None:
    if done % _REPORT_EVERY < _PORTION and done < seeds:
        rate = 60 * done / (time.monotonic() - began)
        click.echo(f"{done} of {seeds} seeds, {rate:.0f} per minute", err=True)

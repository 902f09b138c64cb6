"""`./run soak journal`: one simulated life of the journal after another, and every failure kept."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Final

import click

from tests.simulation.exhaustive import Scope, Tally, first_strikes
from tests.simulation.shrink import replay_command, shrink
from tests.simulation.world import Outcome, run
from tests.soak.exhaustive import DEPTHS, explore_all, facts
from tests.soak.mutants import find_all

_PORTION: Final = 25
_MOST_SHOWN: Final = 10
_TWICE_EVERY: Final = 100
"""One seed in so many is played twice, and must leave the same trace."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a portion of seeds gave."""

    seeds: int
    failures: tuple[tuple[int, str], ...]
    steps: int
    checks: int
    acknowledged: int


def play(seeds: Sequence[int]) -> Findings:
    """Run these seeds."""
    outcomes = [_play_one(seed) for seed in seeds]
    return Findings(
        len(outcomes),
        tuple((o.seed, str(o.violation)) for o in outcomes if o.violation is not None),
        sum(o.steps for o in outcomes),
        sum(o.checks for o in outcomes),
        sum(o.acknowledged for o in outcomes),
    )


def _play_one(seed: int) -> Outcome:
    if seed % _TWICE_EVERY:
        return run(seed)
    first, second = run(seed, keep_trace=True), run(seed, keep_trace=True)
    if first.digest != second.digest:
        raise AssertionError(f"seed {seed} gave two different traces")
    return second


@click.command()
@click.option("--seeds", default=2000, show_default=True, type=click.IntRange(min=1))
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--exhaustive", type=click.Choice(list(DEPTHS)), help="Instead of seeds: all of them."
)
@click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug.")
@click.option("--from-first", is_flag=True, help="Mutants: begin at seed 1, not near known ones.")
@click.option("--note-seeds", is_flag=True, help="Mutants: write down which seeds found them.")
@click.option("--symmetric/--every-node", help="Exhaustive: up to the names of the nodes.")
@click.option("--silent", is_flag=True, help="Exhaustive: lost messages break no connection.")
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(3, 7))
@click.option("--part", default="1/1", show_default=True, help="Exhaustive: every n-th tree.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def journal(
    *,
    seeds: int,
    first_seed: int,
    jobs: int,
    exhaustive: str | None,
    mutants: bool,
    from_first: bool,
    note_seeds: bool,
    symmetric: bool,
    silent: bool,
    nodes: int,
    part: str,
    as_object: bool,
) -> None:
    """Simulate the journal under drawn faults; exit code 0 only if no invariant broke.

    The first failure is made as small as possible and printed with its replay command.  With
    --exhaustive nothing is drawn: every combination of faults over one scripted workload.  With
    --mutants the product has one bug after another, and each must be found.
    """
    if mutants:
        raise SystemExit(
            find_all(jobs, from_first=from_first, note=note_seeds, as_object=as_object)
        )
    if exhaustive is not None:
        scope = Scope(DEPTHS[exhaustive], nodes, symmetric, rest=symmetric, silent=silent)
        raise SystemExit(_exhaust(scope, jobs, part, as_object=as_object))
    raise SystemExit(_seeds(seeds, first_seed, jobs, as_object=as_object))


def _exhaust(scope: Scope, jobs: int, part: str, *, as_object: bool) -> int:
    began = time.monotonic()
    number, _, of = part.partition("/")
    roots = first_strikes(scope)[int(number) - 1 :: int(of)]

    def progress(tally: Tally, done: int, trees: int) -> None:
        runs = sum(tally.worlds.values())
        rate = runs / (time.monotonic() - began)
        click.echo(f"{done} of {trees} trees, {runs} worlds, {rate:.0f} per second", err=True)

    tally = explore_all(scope, jobs, roots=roots, progress=progress)
    for names, why in tally.failures[:_MOST_SHOWN]:
        click.echo(f"{why}\n  python -m tests.simulation --strikes '{names}'", err=True)
    found = facts(tally, scope, began)
    click.echo(
        f"{found['worlds']} worlds, {found['failed']} failed, {found['seconds']} s", err=True
    )
    if as_object:
        click.echo(json.dumps({**found, "part": part, "jobs": jobs}))
    return 1 if tally.failures else 0


def _seeds(seeds: int, first_seed: int, jobs: int, *, as_object: bool) -> int:
    began = time.monotonic()
    found: list[Findings] = []
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(play, _portions(range(first_seed, first_seed + seeds))):
            found.append(part)
            for seed, why in part.failures:
                click.echo(f"seed {seed}: {why}", err=True)
            _progress(sum(each.seeds for each in found), seeds, began)
    took = time.monotonic() - began
    failures = [failure for each in found for failure in each.failures]
    facts: dict[str, object] = {
        "seeds": seeds,
        "first_seed": first_seed,
        "failures": [{"seed": seed, "why": why} for seed, why in failures[:_MOST_SHOWN]],
        "failed": len(failures),
        "seeds_per_minute": round(60 * seeds / took),
        "jobs": jobs,
        "steps": sum(each.steps for each in found),
        "states_checked": sum(each.checks for each in found),
        "edits_acknowledged": sum(each.acknowledged for each in found),
        "seconds": round(took, 1),
    }
    if failures:
        smallest = shrink(run(failures[0][0]), lambda seed, only: run(seed, only=only))
        facts["replay"] = replay_command(smallest)
        click.echo(f"{smallest.violation}\n  {replay_command(smallest)}", err=True)
    click.echo(
        f"{seeds} seeds, {len(failures)} failed, {facts['seeds_per_minute']} seeds per minute with"
        f" {jobs} jobs, {facts['edits_acknowledged']} edits acknowledged",
        err=True,
    )
    if as_object:
        click.echo(json.dumps(facts))
    return 1 if failures else 0


def _portions(seeds: range) -> Iterator[list[int]]:
    rest = iter(seeds)
    while portion := list(islice(rest, _PORTION)):
        yield portion


def _progress(done: int, seeds: int, began: float) -> None:
    if done % (_PORTION * 40) < _PORTION and done < seeds:
        rate = 60 * done / (time.monotonic() - began)
        click.echo(f"{done} of {seeds} seeds, {rate:.0f} per minute", err=True)


def main(arguments: Sequence[str]) -> int:
    """Run the soak with these command-line arguments."""
    try:
        journal.main(args=list(arguments), prog_name="./run soak journal", standalone_mode=False)
    except SystemExit as end:
        return int(end.code or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

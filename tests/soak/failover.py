"""`./run soak failover`: one simulated life of the control plane after another, failures kept."""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

import click

from tests.failover_sim.hunting import SEEDS, Found, hunt_by_name, known_seeds
from tests.failover_sim.mutants import MUTANTS
from tests.failover_sim.shrinking import replay_command, smallest
from tests.failover_sim.world import run
from tests.simulation.world import Outcome

_PORTION: Final = 25
_MOST_SHOWN: Final = 10
_TWICE_EVERY: Final = 100
"""One seed in so many is played twice, and must leave the same trace."""
_WIDEST: Final = max(len(mutant.name) for mutant in MUTANTS)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a portion of seeds gave."""

    seeds: int
    failures: tuple[tuple[int, str], ...]
    steps: int
    checks: int
    takeovers: int
    cpu_seconds: float


def play(seeds: Sequence[int]) -> Findings:
    """Run these seeds."""
    began = time.process_time()
    outcomes = [_play_one(seed) for seed in seeds]
    return Findings(
        len(outcomes),
        tuple((o.seed, str(o.violation)) for o in outcomes if o.violation is not None),
        sum(o.steps for o in outcomes),
        sum(o.checks for o in outcomes),
        sum(o.acknowledged for o in outcomes),
        time.process_time() - began,
    )


def _play_one(seed: int) -> Outcome:
    if seed % _TWICE_EVERY:
        return run(seed)
    first, second = run(seed, keep_trace=True), run(seed, keep_trace=True)
    if first.digest != second.digest:
        raise AssertionError(f"seed {seed} gave two different traces")
    return second


@click.command()
@click.option("--seeds", default=1000, show_default=True, type=click.IntRange(min=1))
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug.")
@click.option("--from-first", is_flag=True, help="Mutants: begin at seed 1, not near known ones.")
@click.option("--note-seeds", is_flag=True, help="Mutants: write down which seeds found them.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def failover(
    *,
    seeds: int,
    first_seed: int,
    jobs: int,
    mutants: bool,
    from_first: bool,
    note_seeds: bool,
    as_object: bool,
) -> None:
    """Simulate failovers under drawn faults; exit code 0 only if no invariant broke.

    The first failure is made as small as possible and printed with its replay command.  With
    --mutants the control plane has one bug after another; each for which a seed was noted must be
    found again.
    """
    if mutants:
        raise SystemExit(
            _mutants(jobs, from_first=from_first, note=note_seeds, as_object=as_object)
        )
    raise SystemExit(_seeds(seeds, first_seed, jobs, as_object=as_object))


def _seeds(seeds: int, first_seed: int, jobs: int, *, as_object: bool) -> int:
    began = time.monotonic()
    found: list[Findings] = []
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(play, _portions(range(first_seed, first_seed + seeds))):
            found.append(part)
            for seed, why in part.failures:
                click.echo(f"seed {seed}: {why}", err=True)
            _progress(sum(each.seeds for each in found), seeds, began)
    failures = [failure for each in found for failure in each.failures]
    facts: dict[str, object] = {
        "seeds": seeds,
        "first_seed": first_seed,
        "failures": [{"seed": seed, "why": why} for seed, why in failures[:_MOST_SHOWN]],
        "failed": len(failures),
        "seeds_per_minute": round(60 * seeds / (time.monotonic() - began)),
        "seeds_per_minute_and_core": round(60 * seeds / sum(e.cpu_seconds for e in found)),
        "jobs": jobs,
        "steps": sum(each.steps for each in found),
        "states_checked": sum(each.checks for each in found),
        "takeovers": sum(each.takeovers for each in found),
        "seconds": round(time.monotonic() - began, 1),
    }
    if failures:
        least = smallest(run(failures[0][0]))
        facts["replay"] = replay_command(least)
        click.echo(f"{least.violation}\n  {replay_command(least)}", err=True)
    click.echo(
        f"{seeds} seeds, {len(failures)} failed, {facts['seeds_per_minute']} seeds per minute with"
        f" {jobs} jobs, {facts['takeovers']} takeovers",
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
    if done % (_PORTION * 20) < _PORTION and done < seeds:
        rate = 60 * done / (time.monotonic() - began)
        click.echo(f"{done} of {seeds} seeds, {rate:.0f} per minute", err=True)


def _mutants(jobs: int, *, from_first: bool, note: bool, as_object: bool) -> int:
    began = time.monotonic()
    rows: list[Found] = []
    work = partial(hunt_by_name, first=1 if from_first else None)
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(work, [mutant.name for mutant in MUTANTS]):
            rows.append(found)
            where = f"seed {found.seed} ({found.worlds} worlds): {found.why}"
            # Some have other guards before them, and no seed of theirs is known.
            lost = "SURVIVED" if found.name in known_seeds() else "not seen in"
            verdict = where if found.seed else f"{lost} {found.worlds} worlds"
            click.echo(f"{found.name:{_WIDEST}}  {verdict[:130]}", err=True)
    unseen = [found.name for found in rows if not found.seed]
    survived = [name for name in unseen if name in known_seeds()]
    seconds = round(time.monotonic() - began, 1)
    click.echo(
        f"{len(rows)} planted bugs, {len(rows) - len(unseen)} found, {len(survived)} survived "
        f"where they were found before, {seconds} s",
        err=True,
    )
    if note:
        seeds = {**known_seeds(), **{found.name: found.seed for found in rows if found.seed}}
        names = {mutant.name for mutant in MUTANTS}
        kept = {name: seed for name, seed in sorted(seeds.items()) if name in names}
        SEEDS.write_text(json.dumps(kept, indent=2) + "\n")
    if as_object:
        bugs = [
            {"bug": f.name, "seed": f.seed or None, "worlds": f.worlds, "invariant": f.why or None}
            for f in rows
        ]
        facts = {
            "planted": len(rows),
            "survived": survived,
            "unseen": unseen,
            "seconds": seconds,
            "bugs": bugs,
        }
        click.echo(json.dumps(facts))
    return 1 if survived else 0


def main(arguments: Sequence[str]) -> int:
    """Run the soak with these command-line arguments."""
    try:
        failover.main(args=list(arguments), prog_name="./run soak failover", standalone_mode=False)
    except SystemExit as end:
        return int(end.code or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

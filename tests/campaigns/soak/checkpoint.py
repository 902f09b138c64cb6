"""`./run soak checkpoint`: random namespaces merged in parts, against a replay by one process.

Most seeds run in this process, some on a pool of processes and some on Spark; each result is
compared inode by inode with the single process's.
"""

import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from ha.daemon.logs import configure_logging
from spark.engine.model import Engine
from spark.engine.outcome import InlineEngine
from spark.engine.pool import PoolEngine
from spark.engine.session import SparkSettings, spark_started
from tests.campaigns.soak.checkpoint_judge import judge
from tests.campaigns.workers import workers
from tests.worlds.checkpoint import make_world

POOL_EVERY: Final = 7
SPARK_EVERY: Final = 10
_MOST_SHOWN: Final = 10
_MOST_PROBLEMS: Final = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a seed.  ``problems`` is empty if the merge was right."""

    seed: int
    engine: str
    world: str
    alone_because: str | None
    problems: tuple[str, ...]
    seconds: float


def play(seed: int, engine: Engine, folder: Path) -> Outcome:
    began, told, because = time.monotonic(), "", None
    try:
        world = make_world(seed, folder)
        told = str(world)
        because, found = judge(world, engine, folder)
    except Exception as failure:  # noqa: BLE001 - a crash of the merge is a finding, too
        where = traceback.extract_tb(failure.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        found = [f"{type(failure).__name__} at {place}: {failure}"]
    return Outcome(seed, engine.name, told, because, tuple(found), time.monotonic() - began)


def engine_of(seed: int) -> str:
    if seed % SPARK_EVERY == 0:
        return "spark"
    return "pool" if seed % POOL_EVERY == 0 else "inline"


def _play_inline(seed: int) -> Outcome:
    configure_logging("soak", level="error")
    with tempfile.TemporaryDirectory(prefix="nnha-soak-") as folder:
        return play(seed, InlineEngine(), Path(folder))


def _play_on(engine: Engine, seeds: Sequence[int]) -> Iterator[Outcome]:
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="nnha-soak-") as folder:
            yield play(seed, engine, Path(folder))


def outcomes(seeds: Sequence[int], jobs: int, only: str | None = None) -> Iterator[Outcome]:
    """Yield each seed's outcome, as they come; ``only``: all of them on that engine."""
    by_engine: dict[str, list[int]] = {"inline": [], "pool": [], "spark": []}
    for seed in seeds:
        by_engine[only or engine_of(seed)].append(seed)
    if by_engine["inline"]:
        if jobs == 1:
            yield from map(_play_inline, by_engine["inline"])
        else:
            with workers(jobs) as processes:
                yield from processes.map(_play_inline, by_engine["inline"])
    with ExitStack() as running:
        if by_engine["pool"]:
            yield from _play_on(running.enter_context(PoolEngine(2)), by_engine["pool"])
    with ExitStack() as running:
        if by_engine["spark"]:
            scratch = running.enter_context(tempfile.TemporaryDirectory(prefix="nnha-soak-"))
            settings = SparkSettings("local[2]", Path(scratch))
            started = running.enter_context(spark_started(settings))
            yield from _play_on(started.engine, by_engine["spark"])


@click.command()
@click.option("--seeds", default=200, show_default=True, type=click.IntRange(min=1))
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option("--engine", type=click.Choice(["inline", "pool", "spark"]), help="For all seeds.")
@click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def checkpoint(
    *, seeds: int, first_seed: int, jobs: int, engine: str | None, mutants: bool, as_object: bool
) -> None:
    """Merge random namespaces in parts; exit code 0 only if each is as one process makes it.

    A failing seed is printed with its replay command.  With --mutants the merge has one bug after
    another, and each must be found.
    """
    configure_logging("soak", level="error")
    if mutants:
        from tests.campaigns.soak.checkpoint_mutants import hunt_all

        raise SystemExit(hunt_all(jobs, as_object=as_object))
    raise SystemExit(_seeds(range(first_seed, first_seed + seeds), jobs, engine, as_object))


def _seeds(seeds: range, jobs: int, only: str | None, as_object: bool) -> int:
    began, failed = time.monotonic(), list[Outcome]()
    engines: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for done, outcome in enumerate(outcomes(seeds, jobs, only), start=1):
        engines[outcome.engine] += 1
        alone[outcome.engine] += outcome.alone_because is not None
        if outcome.problems:
            failed.append(outcome)
            _tell(outcome)
        if done % 25 == 0:
            click.echo(f"{done} of {len(seeds)} seeds, {len(failed)} failed", err=True)
    seconds = time.monotonic() - began
    facts: dict[str, object] = {
        "seeds": len(seeds),
        "first_seed": seeds[0],
        "failed": len(failed),
        "failures": [
            {"seed": each.seed, "why": each.problems[0], "replay": replay_command(each)}
            for each in failed[:_MOST_SHOWN]
        ],
        "engines": dict(engines),
        "by_a_single_process": sum(alone.values()),
        "jobs": jobs,
        "seconds": round(seconds, 1),
    }
    click.echo(
        f"{len(seeds)} seeds, {len(failed)} failed, {sum(alone.values())} by a single process, "
        f"{dict(engines)}, {seconds:.0f} s",
        err=True,
    )
    if as_object:
        click.echo(json.dumps(facts))
    return 1 if failed else 0


def replay_command(outcome: Outcome) -> str:
    return f"./run soak checkpoint --first-seed {outcome.seed} --seeds 1 --engine {outcome.engine}"


def _tell(outcome: Outcome) -> None:
    click.echo(f"seed {outcome.seed} on {outcome.engine} ({outcome.world}):", err=True)
    for problem in outcome.problems[:_MOST_PROBLEMS]:
        click.echo(f"  {problem[:600]}", err=True)
    if len(outcome.problems) > _MOST_PROBLEMS:
        click.echo(f"  and {len(outcome.problems) - _MOST_PROBLEMS} more", err=True)
    click.echo(f"  {replay_command(outcome)}", err=True)


def main(arguments: Sequence[str]) -> int:
    try:
        checkpoint.main(args=list(arguments), prog_name="./run soak checkpoint",
                        standalone_mode=False)  # fmt: skip
    except SystemExit as end:
        return int(end.code or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

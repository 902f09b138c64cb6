"""`./run soak journal`: one simulated life of the journal after another, and every failure kept."""

import json
import os
import sys
import time
from collections.abc import Sequence

import click

from tests.campaigns.soak.exhaustive import DEPTHS, explore_all, facts
from tests.campaigns.soak.invoked import exit_code
from tests.campaigns.soak.mutants import find_all
from tests.campaigns.soak.reach import tell_reach
from tests.campaigns.soak.seeds import MOST_SHOWN, soak
from tests.simulation.journal.ambush import FIRST, FIRST_LATE, FIRST_LONG
from tests.simulation.journal.comebacks import FIRST_REJOIN
from tests.simulation.journal.exhaustive import Scope, Tally, first_strikes
from tests.simulation.journal.simulation import SIMULATION


@click.command()
@click.option("--seeds", default=2000, show_default=True, type=click.IntRange(min=1))
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--exhaustive", type=click.Choice(list(DEPTHS)), help="Instead of seeds: all of them."
)
@click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug.")
@click.option("--reach", is_flag=True, help="Tell which branches of the cores the seeds run.")
@click.option("--from-first", is_flag=True, help="Mutants: begin at seed 1, not near known ones.")
@click.option("--note-seeds", is_flag=True, help="Mutants: write down which seeds found them.")
@click.option("--aimed", is_flag=True, help="Worlds whose faults wait for places.")
@click.option("--long", "long_segments", is_flag=True, help="Worlds with long segments.")
@click.option("--late", is_flag=True, help="Worlds in which old requests come once more.")
@click.option("--rejoin", is_flag=True, help="Worlds in which nodes come back amid trouble.")
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
    reach: bool,
    from_first: bool,
    note_seeds: bool,
    aimed: bool,
    long_segments: bool,
    late: bool,
    rejoin: bool,
    symmetric: bool,
    silent: bool,
    nodes: int,
    part: str,
    as_object: bool,
) -> None:
    """Simulate the journal under drawn faults; exit code 0 only if no invariant broke.

    The first failure is made as small as possible and printed with its replay command.  With
    --exhaustive nothing is drawn: every combination of faults over one scripted workload.  With
    --mutants the product has one bug after another, and each must be found.  --reach plays as many
    aimed worlds, with long segments, with late requests and with comebacks as others, unless an
    option says which.
    """
    if mutants:
        raise SystemExit(
            find_all(SIMULATION, jobs, from_first=from_first, note=note_seeds, as_object=as_object)
        )
    if exhaustive is not None:
        scope = Scope(DEPTHS[exhaustive], nodes, symmetric, rest=symmetric, silent=silent)
        raise SystemExit(_exhaust(scope, jobs, part, as_object=as_object))
    if first_seed < FIRST:
        families = {FIRST_REJOIN: rejoin, FIRST_LATE: late, FIRST_LONG: long_segments, FIRST: aimed}
        first_seed += next((place for place, meant in families.items() if meant), 0)
    chosen = range(first_seed, first_seed + seeds)
    if reach:
        everywhere = (0, FIRST, FIRST_LONG, FIRST_LATE, FIRST_REJOIN)
        places = everywhere if first_seed < FIRST else (0,)
        played = [seed + place for place in places for seed in chosen]
        raise SystemExit(tell_reach(SIMULATION, played, jobs, as_object=as_object))
    raise SystemExit(soak(SIMULATION, chosen, jobs, as_object=as_object))


def _exhaust(scope: Scope, jobs: int, part: str, *, as_object: bool) -> int:
    began = time.monotonic()
    number, _, of = part.partition("/")
    roots = first_strikes(scope)[int(number) - 1 :: int(of)]

    def progress(tally: Tally, done: int, trees: int) -> None:
        runs = sum(tally.worlds.values())
        rate = runs / (time.monotonic() - began)
        click.echo(f"{done} of {trees} trees, {runs} worlds, {rate:.0f} per second", err=True)

    tally = explore_all(scope, jobs, roots=roots, progress=progress)
    for names, why in tally.failures[:MOST_SHOWN]:
        click.echo(f"{why}\n  python -m tests.simulation.journal --strikes '{names}'", err=True)
    found = facts(tally, scope, began)
    click.echo(
        f"{found['worlds']} worlds, {found['failed']} failed, {found['seconds']} s", err=True
    )
    if as_object:
        click.echo(json.dumps({**found, "part": part, "jobs": jobs}))
    return 1 if tally.failures else 0


def main(arguments: Sequence[str]) -> int:
    return exit_code(journal, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

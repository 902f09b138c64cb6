"""`./run soak journal`: one simulated life of the journal after another, and every failure kept."""

import json
import time

import click

from tests.campaigns.soak.exhaustive import DEPTHS, explore_all, facts
from tests.campaigns.soak.reach import tell_reach
from tests.campaigns.soak.seeds import MOST_SHOWN, soak
from tests.campaigns.soak.simulated import simulated
from tests.simulation.journal.ambush import FIRST, FIRST_LATE, FIRST_LONG
from tests.simulation.journal.comebacks import FIRST_REJOIN
from tests.simulation.journal.exhaustive import Scope, Tally, first_strikes
from tests.simulation.journal.simulation import SIMULATION


@simulated(SIMULATION, 2000)
@click.option(
    "--exhaustive", type=click.Choice(list(DEPTHS)), help="Instead of seeds: all of them."
)
@click.option("--reach", is_flag=True, help="Tell which branches of the cores the seeds run.")
@click.option("--aimed", is_flag=True, help="Worlds whose faults wait for places.")
@click.option("--long", "long_segments", is_flag=True, help="Worlds with long segments.")
@click.option("--late", is_flag=True, help="Worlds in which old requests come once more.")
@click.option("--rejoin", is_flag=True, help="Worlds in which nodes come back amid trouble.")
@click.option("--symmetric/--every-node", help="Exhaustive: up to the names of the nodes.")
@click.option("--silent", is_flag=True, help="Exhaustive: lost messages break no connection.")
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(3, 7))
@click.option("--part", default="1/1", show_default=True, help="Exhaustive: every n-th tree.")
def journal(
    chosen: range,
    *,
    jobs: int,
    exhaustive: str | None,
    reach: bool,
    aimed: bool,
    long_segments: bool,
    late: bool,
    rejoin: bool,
    symmetric: bool,
    silent: bool,
    nodes: int,
    part: str,
    as_object: bool,
) -> int:
    """Simulate the journal under drawn faults; exit code 0 only if no invariant broke.

    The first failure is made as small as possible and printed with its replay command.  With
    --exhaustive nothing is drawn: every combination of faults over one scripted workload.  With
    --mutants the product has one bug after another, and each must be found.  --reach plays as many
    aimed worlds, with long segments, with late requests and with comebacks as others, unless an
    option says which.
    """
    if exhaustive is not None:
        scope = Scope(DEPTHS[exhaustive], nodes, symmetric, rest=symmetric, silent=silent)
        return _exhaust(scope, jobs, part, as_object=as_object)
    if chosen.start < FIRST:
        families = {FIRST_REJOIN: rejoin, FIRST_LATE: late, FIRST_LONG: long_segments, FIRST: aimed}
        place = next((place for place, meant in families.items() if meant), 0)
        chosen = range(chosen.start + place, chosen.stop + place)
    if reach:
        everywhere = (0, FIRST, FIRST_LONG, FIRST_LATE, FIRST_REJOIN)
        places = everywhere if chosen.start < FIRST else (0,)
        played = [seed + place for place in places for seed in chosen]
        return tell_reach(SIMULATION, played, jobs, as_object=as_object)
    return soak(SIMULATION, chosen, jobs, as_object=as_object)


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

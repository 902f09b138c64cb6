"""`./run soak journal --mutants`, `failover --mutants`: which check catches which planted bug."""

import json
import time
from functools import partial
from operator import attrgetter

import click

from tests.campaigns.workers import workers
from tests.simulation.engine.killing import Killing, kill
from tests.simulation.engine.mutants import Mutant
from tests.simulation.engine.simulation import Found, Simulation, named


def find_all(
    simulation: Simulation, jobs: int, *, from_first: bool, note: bool, as_object: bool
) -> int:
    """Hunt every bug in drawn worlds, run the tests that are to kill them, and say who did.

    Returns:
        0 only if none survives both.
    """
    began = time.monotonic()
    found = _hunted(simulation, jobs, from_first=from_first)
    killed, mutants = kill(simulation.name), simulation.mutants
    rows = [_row(mutant, found.get(mutant.name), killed.get(mutant.name)) for mutant in mutants]
    widest = max(len(mutant.name) for mutant in mutants)
    for row in rows:
        click.echo(_line(row, widest), err=True)
    survived = [row["bug"] for row in rows if not row["found"]]
    seconds = round(time.monotonic() - began, 1)
    click.echo(f"{len(rows)} planted bugs, {len(survived)} survived, {seconds} s", err=True)
    if note:
        simulation.note(found.values())
    if as_object:
        facts = {"planted": len(rows), "survived": survived, "seconds": seconds, "bugs": rows}
        click.echo(json.dumps(facts))
    return 1 if survived else 0


def _hunted(simulation: Simulation, jobs: int, *, from_first: bool) -> dict[str, Found]:
    known = simulation.known_seeds()
    # One that a test kills, and no world is known to show, is looked for from the first seed only.
    drawn = [
        mutant
        for mutant in simulation.mutants
        if mutant.seeds and (from_first or not mutant.killer or mutant.name in known)
    ]
    # The longest searches first, so that no process is left alone with one at the end.
    drawn.sort(key=attrgetter("seeds"), reverse=True)
    work = partial(_hunt_by_name, simulation.name, 1 if from_first else None)
    with workers(jobs) as pool:
        return {found.name: found for found in pool.map(work, [mutant.name for mutant in drawn])}


def _hunt_by_name(simulation: str, first: int | None, name: str) -> Found:
    hunted = named(simulation)
    found = hunted.hunt(hunted.mutant(name), first=first)
    where = f"seed {found.seed}: {found.why}" if found.seed else f"not in {found.worlds} worlds"
    click.echo(f"{name}: {where}"[:150], err=True)
    return found


def _row(mutant: Mutant, found: Found | None, killing: Killing | None) -> dict[str, object]:
    by_world = found is not None and found.seed > 0
    by_test = killing is not None and killing.proven
    return {
        "bug": mutant.name,
        # A named test that does not see its bug is a failure, whatever the worlds say.
        "found": by_test if mutant.killer else by_world,
        "budget": mutant.seeds,
        "seed": found.seed if found is not None and by_world else None,
        "worlds": found.worlds if found is not None else 0,
        "invariant": found.why if found is not None and by_world else None,
        "test": mutant.killer or None,
        "case": killing.failed if killing is not None and by_test else None,
    }


def _line(row: dict[str, object], widest: int) -> str:
    by = []
    if row["seed"]:
        by.append(f"seed {row['seed']} ({row['worlds']} worlds): {str(row['invariant'])[:60]}")
    elif row["budget"]:
        by.append(f"no world of {row['worlds']}")
    if row["test"]:
        test = str(row["test"]).rpartition("/")[2]
        by.append(test if row["case"] else f"NOT by {test}")
    verdict = "found   " if row["found"] else "SURVIVED"
    return f"{row['bug']!s:{widest}}  {verdict}  {'; '.join(by)}"

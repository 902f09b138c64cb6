"""`./run soak journal --mutants`: which check catches which planted bug, and where."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from operator import attrgetter

import click

from tests.simulation.journal.hunting import SEEDS, Found, hunt, known_seeds
from tests.simulation.journal.killing import Killing, kill
from tests.simulation.journal.mutants import MUTANTS, Mutant

_WIDEST = max(len(mutant.name) for mutant in MUTANTS)


def find_all(jobs: int, *, from_first: bool, note: bool, as_object: bool) -> int:
    """Hunt every bug in drawn worlds, run the tests that are to kill them, and say who did.

    Returns:
        0 only if none survives both.
    """
    began = time.monotonic()
    found = _hunted(jobs, from_first=from_first)
    killed = kill()
    rows = [_row(mutant, found.get(mutant.name), killed.get(mutant.name)) for mutant in MUTANTS]
    for row in rows:
        click.echo(_line(row), err=True)
    survived = [row["bug"] for row in rows if not row["found"]]
    seconds = round(time.monotonic() - began, 1)
    click.echo(f"{len(rows)} planted bugs, {len(survived)} survived, {seconds} s", err=True)
    if note:
        _note(list(found.values()))
    if as_object:
        facts = {"planted": len(rows), "survived": survived, "seconds": seconds, "bugs": rows}
        click.echo(json.dumps(facts))
    return 1 if survived else 0


def _hunted(jobs: int, *, from_first: bool) -> dict[str, Found]:
    drawn = [mutant for mutant in MUTANTS if mutant.seeds]
    # The longest searches first, so that no process is left alone with one at the end.
    drawn.sort(key=attrgetter("seeds"), reverse=True)
    begin = 1 if from_first else None
    with ProcessPoolExecutor(jobs) as pool:
        work = partial(_hunt_by_name, begin)
        return {found.name: found for found in pool.map(work, [mutant.name for mutant in drawn])}


def _hunt_by_name(first: int | None, name: str) -> Found:
    found = hunt(next(mutant for mutant in MUTANTS if mutant.name == name), first=first)
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


def _line(row: dict[str, object]) -> str:
    by = []
    if row["seed"]:
        by.append(f"seed {row['seed']} ({row['worlds']} worlds): {str(row['invariant'])[:60]}")
    elif row["budget"]:
        by.append(f"no world of {row['worlds']}")
    if row["test"]:
        test = str(row["test"]).rpartition("/")[2]
        by.append(test if row["case"] else f"NOT by {test}")
    verdict = "found   " if row["found"] else "SURVIVED"
    return f"{row['bug']!s:{_WIDEST}}  {verdict}  {'; '.join(by)}"


def _note(found: Sequence[Found]) -> None:
    seeds = {**known_seeds(), **{each.name: each.seed for each in found if each.seed}}
    names = {mutant.name for mutant in MUTANTS if mutant.seeds}
    kept = {name: seed for name, seed in sorted(seeds.items()) if name in names}
    SEEDS.write_text(json.dumps(kept, indent=2) + "\n")

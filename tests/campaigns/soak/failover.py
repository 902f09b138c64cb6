"""`./run soak failover`: one simulated life of the control plane after another, failures kept."""

import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

import click

from tests.campaigns.soak.invoked import exit_code
from tests.campaigns.soak.seeds import Worlds, soak
from tests.simulation.failover.hunting import SEEDS, Found, hunt_by_name, known_seeds
from tests.simulation.failover.killers import KILLERS
from tests.simulation.failover.mutants import MUTANTS
from tests.simulation.failover.shrinking import replay_command, smallest
from tests.simulation.failover.world import run

_WIDEST: Final = max(len(mutant.name) for mutant in MUTANTS)
_WORLDS: Final = Worlds(run, smallest, replay_command, "takeovers")


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
    found again, unless a test is named for it.  Others are hunted with --from-first only.
    """
    if mutants:
        raise SystemExit(
            _mutants(jobs, from_first=from_first, note=note_seeds, as_object=as_object)
        )
    chosen = range(first_seed, first_seed + seeds)
    raise SystemExit(soak(_WORLDS, chosen, jobs, as_object=as_object))


def _mutants(jobs: int, *, from_first: bool, note: bool, as_object: bool) -> int:
    began = time.monotonic()
    rows: list[Found] = []
    work = partial(hunt_by_name, first=1 if from_first else None)
    hunted = [one.name for one in MUTANTS if from_first or one.name in known_seeds()]
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(work, hunted):
            rows.append(found)
            where = f"seed {found.seed} ({found.worlds} worlds): {found.why}"
            # Some have other guards before them: worlds show them never or seldom.
            lost = f"SURVIVED {found.worlds} worlds"
            if (killer := KILLERS.get(found.name)) is not None:
                lost = f"not seen in {found.worlds} worlds; killed by {killer.test.__name__}"
            verdict = where if found.seed else lost
            click.echo(f"{found.name:{_WIDEST}}  {verdict[:130]}", err=True)
    unseen = [found.name for found in rows if not found.seed]
    survived = [name for name in unseen if name not in KILLERS]
    seconds = round(time.monotonic() - began, 1)
    click.echo(
        f"{len(rows)} planted bugs hunted, {len(rows) - len(unseen)} found, {len(survived)} "
        f"survived all checks, {seconds} s",
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
            "planted": len(MUTANTS),
            "killed_by_tests": sorted(KILLERS),
            "survived": survived,
            "unseen": unseen,
            "seconds": seconds,
            "bugs": bugs,
        }
        click.echo(json.dumps(facts))
    return 1 if survived else 0


def main(arguments: Sequence[str]) -> int:
    """Run the soak with these command-line arguments."""
    return exit_code(failover, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

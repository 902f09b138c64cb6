"""`./run soak failover`: one simulated life of the control plane after another, failures kept."""

import os
import sys
from collections.abc import Sequence

import click

from tests.campaigns.soak.invoked import exit_code
from tests.campaigns.soak.mutants import find_all
from tests.campaigns.soak.reach import tell_reach
from tests.campaigns.soak.seeds import soak
from tests.simulation.failover.places import FIRST
from tests.simulation.failover.simulation import SIMULATION


@click.command()
@click.option("--seeds", default=1000, show_default=True, type=click.IntRange(min=1))
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug.")
@click.option("--reach", is_flag=True, help="Tell which branches of the cores the seeds run.")
@click.option("--from-first", is_flag=True, help="Mutants: begin at seed 1, not near known ones.")
@click.option("--note-seeds", is_flag=True, help="Mutants: write down which seeds found them.")
@click.option("--aimed", is_flag=True, help="Worlds whose faults wait for places.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def failover(
    *,
    seeds: int,
    first_seed: int,
    jobs: int,
    mutants: bool,
    reach: bool,
    from_first: bool,
    note_seeds: bool,
    aimed: bool,
    as_object: bool,
) -> None:
    """Simulate failovers under drawn faults; exit code 0 only if no invariant broke.

    The first failure is made as small as possible and printed with its replay command.  With
    --mutants the control plane has one bug after another; each for which a seed was noted must be
    found again, unless a test is named for it.  Others are hunted with --from-first only.
    """
    if mutants:
        raise SystemExit(
            find_all(SIMULATION, jobs, from_first=from_first, note=note_seeds, as_object=as_object)
        )
    first_seed += FIRST if aimed and first_seed < FIRST else 0
    chosen = range(first_seed, first_seed + seeds)
    if reach:
        raise SystemExit(tell_reach(SIMULATION, chosen, jobs, as_object=as_object))
    raise SystemExit(soak(SIMULATION, chosen, jobs, as_object=as_object))


def main(arguments: Sequence[str]) -> int:
    return exit_code(failover, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`./run soak whole`: one simulated cluster with everything in it after another, failures kept."""

import os
import sys
from collections.abc import Sequence

import click

from tests.campaigns.soak.invoked import exit_code
from tests.campaigns.soak.mutants import find_all
from tests.campaigns.soak.seeds import soak
from tests.simulation.whole.simulation import SIMULATION


@click.command()
@click.option("--seeds", default=500, show_default=True, type=click.IntRange(min=1))
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, type=click.IntRange(min=1))
@click.option("--mutants", is_flag=True, help="Instead of seeds: hunt every planted bug.")
@click.option("--from-first", is_flag=True, help="Mutants: begin at seed 1, not near known ones.")
@click.option("--note-seeds", is_flag=True, help="Mutants: write down which seeds found them.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def whole(
    *,
    seeds: int,
    first_seed: int,
    jobs: int,
    mutants: bool,
    from_first: bool,
    note_seeds: bool,
    as_object: bool,
) -> None:
    """Simulate clients, NameNodes, controllers, JournalNodes and DataNodes under drawn faults.

    Exit code 0 only if all answers that clients got have an order, every file can be read as it was
    written, each epoch has one active, and clients are answered once all faults are over.  With
    --mutants the product has one bug after another, and each must be found.
    """
    if mutants:
        raise SystemExit(
            find_all(SIMULATION, jobs, from_first=from_first, note=note_seeds, as_object=as_object)
        )
    chosen = range(first_seed, first_seed + seeds)
    raise SystemExit(soak(SIMULATION, chosen, jobs, as_object=as_object))


def main(arguments: Sequence[str]) -> int:
    return exit_code(whole, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

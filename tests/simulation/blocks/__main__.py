"""Show one simulated life of blocks and failovers: `python -m tests.simulation.blocks --seed N`."""

import click

from tests.simulation.blocks.simulation import SIMULATION
from tests.simulation.engine.shown import show


@click.command()
@click.option("--seed", required=True, type=int)
@click.option("--only", help="Comma-separated names of the faults that may happen.")
@click.option("--smaller", is_flag=True, help="Shrink a failing seed first.")
def main(*, seed: int, only: str | None, smaller: bool) -> None:
    """Play one seed and print what happened; exit code 1 if an invariant broke."""
    show(SIMULATION, seed, only, smaller=smaller)


if __name__ == "__main__":
    main()

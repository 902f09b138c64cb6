"""`python -m tests.simulation.journal --seed N`: what happens in one seed, one line per event."""

import sys

import click

from tests.simulation.engine.shown import show
from tests.simulation.journal.exhaustive import parsed
from tests.simulation.journal.scripted import play
from tests.simulation.journal.simulation import SIMULATION


@click.command()
@click.option("--seed", type=int, help="Which life to show.")
@click.option("--strikes", help="Instead: the scripted workload under these, e.g. lose-reply@jn2#7")
@click.option("--only", help="The faults that may happen, by name, separated by commas.")
@click.option("--smaller", is_flag=True, help="Shrink a failing seed first.")
def main(*, seed: int | None, strikes: str | None, only: str | None, smaller: bool) -> None:
    """Print a seed's trace; exit code 1 if an invariant broke."""
    if strikes is not None:
        show_strikes(strikes)
    if seed is None:
        raise click.UsageError("say which --seed, or which --strikes")
    show(SIMULATION, seed, only, smaller=smaller)


def show_strikes(names: str) -> None:
    """Print the scripted workload under these faults."""
    outcome = play(parsed(names), keep_trace=True).outcome
    for line in outcome.lines:
        click.echo(line)
    click.echo(str(outcome.violation or "no invariant broke"))
    sys.exit(0 if outcome.violation is None else 1)


if __name__ == "__main__":
    main()

"""What happens in one seed, one line per event: `python -m tests.simulation.NAME --seed N`."""

import sys

import click

from tests.simulation.engine.simulation import Simulation


def show(simulation: Simulation, seed: int, only: str | None, *, smaller: bool) -> None:
    """Print a seed's trace; exit code 1 if an invariant broke.

    Args:
        simulation: whose seed.
        seed: which life to show.
        only: the names of the faults that may happen, separated by commas; None allows all.
        smaller: shrink a failing seed first.
    """
    names = None if only is None else frozenset(filter(None, only.split(",")))
    outcome = simulation.run(seed, only=names)
    if smaller and outcome.violation is not None:
        outcome = simulation.smallest(outcome)
    shown = simulation.run(seed, only=frozenset(outcome.fired), keep_trace=True)
    for line in shown.lines:
        click.echo(line)
    verdict = "no invariant broke" if shown.violation is None else str(shown.violation)
    click.echo(
        f"seed {seed}: {verdict}; {shown.acknowledged} {simulation.achieved.replace('_', ' ')},"
        f" {shown.checks} states checked, {len(shown.fired)} faults, trace {shown.digest[:16]}"
    )
    if shown.violation is not None:
        click.echo(simulation.replay_command(shown))
    sys.exit(shown.violation is not None)


def command(simulation: Simulation) -> click.Command:
    @click.command()
    @click.option("--seed", required=True, type=int)
    @click.option("--only", help="Comma-separated names of the faults that may happen.")
    @click.option("--smaller", is_flag=True, help="Shrink a failing seed first.")
    def main(*, seed: int, only: str | None, smaller: bool) -> None:
        """Play one seed and print what happened; exit code 1 if an invariant broke."""
        show(simulation, seed, only, smaller=smaller)

    return main

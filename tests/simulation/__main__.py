"""`python -m tests.simulation --seed N`: what happens in one seed, one line per event."""

import sys

import click

from tests.simulation.shrink import replay_command, shrink
from tests.simulation.world import run


@click.command()
@click.option("--seed", type=int, required=True, help="Which life to show.")
@click.option("--only", help="The faults that may happen, by name, separated by commas.")
@click.option("--smaller", is_flag=True, help="Shrink a failing seed first.")
def main(*, seed: int, only: str | None, smaller: bool) -> None:
    """Print a seed's trace; exit code 1 if an invariant broke."""
    names = None if only is None else frozenset(filter(None, only.split(",")))
    outcome = run(seed, only=names)
    if smaller and outcome.violation is not None:
        outcome = shrink(outcome, lambda number, chosen: run(number, only=chosen))
    shown = run(seed, only=frozenset(outcome.fired), keep_trace=True)
    for line in shown.lines:
        click.echo(line)
    verdict = "no invariant broke" if shown.violation is None else str(shown.violation)
    click.echo(
        f"seed {seed}: {verdict}; {shown.acknowledged} edits acknowledged, {shown.checks} states"
        f" checked, {len(shown.fired)} faults, trace {shown.digest[:16]}"
    )
    if shown.violation is not None:
        click.echo(replay_command(shown))
    sys.exit(0 if shown.violation is None else 1)


if __name__ == "__main__":
    main()

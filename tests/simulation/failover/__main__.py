"""Show one simulated life of failover: `python -m tests.simulation.failover --seed N`."""

import sys

import click

from tests.simulation.failover.world import run


@click.command()
@click.option("--seed", required=True, type=int)
@click.option("--only", help="Comma-separated names of the faults that may happen.")
@click.option("--quiet", is_flag=True, help="Only the last line.")
def main(*, seed: int, only: str | None, quiet: bool) -> None:
    """Play one seed and tell what happened; exit code 1 if an invariant broke."""
    chosen = None if only is None else frozenset(name for name in only.split(",") if name)
    outcome = run(seed, only=chosen, keep_trace=not quiet)
    for line in outcome.lines:
        click.echo(line)
    verdict = str(outcome.violation or "no invariant broke")
    click.echo(f"seed {seed}: {verdict}; {outcome.acknowledged} takeovers, {outcome.steps} steps")
    sys.exit(outcome.violation is not None)


if __name__ == "__main__":
    main()

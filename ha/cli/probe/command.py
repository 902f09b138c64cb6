"""The command ``nnha probe``; ``nnha.commands`` asks without it where nothing needs click."""

import sys

import click

from ha.cli.probe.question import TIMEOUT_SECONDS, answer, parse
from ha.console.options import Seconds


@click.command()
@click.argument("address")
@click.option(
    "--timeout",
    "timeout_seconds",
    type=Seconds(min=0.1, max=3600.0),
    default=TIMEOUT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long the daemon may take to answer.",
)
def probe(address: str, *, timeout_seconds: float) -> None:
    """Ask a daemon whether it is live, ready, active or standby: a container's health check.

    ADDRESS is [http[s]://][HOST:]PORT[/PAGE], of a daemon's HTTP port; PAGE is livez (if not
    given), readyz, active or standby. Over https no certificate is checked.

    \b
    Exit codes: 0 it is; 8 it answers that it is not; 4 nothing listens there;
    6 unknown: no answer in time, or none of a daemon of nnha; 2 wrong usage.
    """
    try:
        question = parse(address)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from problem
    verdict = answer(question, timeout_seconds)
    click.echo(verdict.text)
    sys.exit(verdict.exit_code)

"""``./run soak deploy``: the page of the cluster, and the daemons under a systemd that was booted.

Either part is left out with --no-page or --no-booted.  The page needs Chromium and what
tests/browser.txt lists; booting needs root, mmdebstrap and systemd-nspawn, and the first time it
makes a small Debian, which takes minutes.
"""

import asyncio
import json
import os
import sys

import click

from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from tests.campaigns.soak import booted, web
from tests.needs import BOOTED_SYSTEMD, CHROMIUM


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=10, show_default=True, help="Kills.")
@click.option(
    "--seconds",
    type=click.FloatRange(1.0),
    default=60.0,
    show_default=True,
    help="How long ten viewers watch.",
)
@click.option("--states/--no-states", default=True, help="Hold the recorded states against axe.")
@click.option("--page/--no-page", default=True, help="Watch the page of the cluster.")
@click.option("--booted/--no-booted", "boot", default=True, help="Boot hosts under systemd.")
@click.option(
    "--hold",
    is_flag=True,
    help="Exit code 1 where a bar is not held; for idle machines.",
)
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def main(
    *,
    rounds: int,
    seconds: float,
    states: bool,
    page: bool,
    boot: bool,
    hold: bool,
    as_object: bool,
) -> None:
    """Watch the page of the cluster, and the daemons under systemd."""
    for need, asked in ((CHROMIUM, page), (BOOTED_SYSTEMD, boot)):
        if asked and not need.here:
            raise click.ClickException(need.reason())
    found: dict[str, object] = {}
    with orderly_end():
        if page:
            found |= asyncio.run(web.figures(rounds, seconds, states=states))
            found["bars_not_held"] = web.bars_not_held(found)
        if boot:
            found |= booted.figures(fresh_directory("booted"), rounds, seed=os.getpid())
    for name, value in found.items():
        click.echo(f"{name}: {value}")
    if as_object:
        click.echo(json.dumps(found))
    if hold and found.get("bars_not_held"):
        sys.exit(1)


if __name__ == "__main__":
    main()

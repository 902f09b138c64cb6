"""``nnha status``: the whole cluster on one screen, or as JSON or YAML."""

import asyncio
import dataclasses
import json
import sys
import time
from typing import NoReturn

import click
from rich.live import Live

from ha.cli import STARTED
from ha.cli.status.status_table import Screen
from ha.cluster.candidates import failover_blockers
from ha.cluster.daemon_queries import look_at
from ha.cluster.problems import problems
from ha.cluster.status_json import as_json
from ha.cluster.view import ClusterView
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.exit_codes import DONE, UNHEALTHY, UNREACHABLE
from ha.console.output import console, show
from ha.console.yaml_text import as_yaml
from ha.daemon import event_loop

DEADLINE_SECONDS = 1.5
WATCH_SECONDS = 2.0


@click.command()
@about_a_cluster(
    "status", formats=("table", "wide", "json", "yaml"), timeout_seconds=DEADLINE_SECONDS
)
@click.option(
    "-w", "--watch", is_flag=True, help="Show the status again every 2 s until interrupted."
)
@click.option(
    "--check",
    is_flag=True,
    help="Exit 8 on a problem, or if no failover is possible; 6 if nobody answers.",
)
def status(*, place: ClusterCommand, watch: bool, check: bool) -> None:
    """Show who is active, and every NameNode, ZKFC, JournalNode and ZooKeeper server.

    All are asked at once.  One that refuses the connection is DOWN; one that has not answered in
    time is UNKNOWN, as it may only be slow.  Exits 0, even with problems; with --check 8 if there
    is a problem, or if no NameNode could take over from the active and automatic failover is not
    paused, and 6 if no process answers.
    """
    if watch:
        event_loop.run(_watch(place))
    view = event_loop.run(_once(place, own_start_seconds=time.monotonic() - STARTED))
    sys.exit(_judgement(view) if check else DONE)


def _judgement(view: ClusterView) -> int:
    if view.is_silent:
        return UNREACHABLE
    blocked = view.automatic_failover and view.pause is None and bool(failover_blockers(view))
    return UNHEALTHY if problems(view) or blocked else DONE


async def _once(place: ClusterCommand, *, own_start_seconds: float = 0.0) -> ClusterView:
    view = dataclasses.replace(await _look(place), own_start_seconds=round(own_start_seconds, 3))
    # Shown before the loop ends: a name that is still being looked up must not hold it back.
    show(place.output, as_json(view), Screen(view, wide=place.output == "wide"))
    return view


async def _watch(place: ClusterCommand) -> NoReturn:
    if place.output in ("json", "yaml"):
        await _stream(place)
    if not console().is_terminal:
        while True:
            # Into a pipe or a file: each look below the other, as soon as it is known.
            await _once(place)
            await asyncio.sleep(WATCH_SECONDS)
    with Live(console=console(), auto_refresh=False, screen=True) as live:
        while True:
            view = await _look(place)
            live.update(Screen(view, wide=place.output == "wide"), refresh=True)
            await asyncio.sleep(WATCH_SECONDS)


async def _stream(place: ClusterCommand) -> NoReturn:
    """Print one document for each look: JSON on a line of its own, YAML after ``---``."""
    while True:
        document = as_json(await _look(place))
        text = json.dumps(document) if place.output == "json" else f"---\n{as_yaml(document)}"
        click.echo(text.rstrip("\n"))
        sys.stdout.flush()
        await asyncio.sleep(WATCH_SECONDS)


async def _look(place: ClusterCommand) -> ClusterView:
    return await look_at(
        place.configuration, place.nameservice, deadline_seconds=place.timeout_seconds
    )

"""``nnha status``: the whole cluster on one screen, or as JSON or YAML."""

import asyncio
import json
import sys
import time
from typing import NoReturn

import click
from rich.live import Live

from ha.cli import STARTED
from ha.cli.cluster.daemon_queries import look_at
from ha.cli.cluster.status_json import as_json
from ha.cli.cluster.status_table import Screen
from ha.cli.cluster.successors import what_blocks
from ha.cli.cluster.view import ClusterView
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.exit_codes import DONE, INTERRUPTED, UNHEALTHY
from ha.console.library_logs import silence_libraries
from ha.console.output import console, show
from ha.console.yaml_text import as_yaml

DEADLINE_SECONDS = 1.5
WATCH_SECONDS = 2.0


@click.command()
@about_a_cluster("status", formats=("table", "wide", "json", "yaml"))
@click.option(
    "-w", "--watch", is_flag=True, help="Show the status again every 2 s until interrupted."
)
@click.option("--check", is_flag=True, help="Exit 8 on a problem, or if no failover is possible.")
def status(*, place: ClusterCommand, watch: bool, check: bool) -> None:
    """Show who is active, and every NameNode, ZKFC, JournalNode and ZooKeeper server.

    All are asked at once; one that has not answered after 1.5 s is shown as such.  Exits 0, even
    with problems; with --check 8 if there is a problem, or if no NameNode could take over from
    the active and automatic failover is not paused.
    """
    silence_libraries()
    try:
        if watch:
            asyncio.run(_watch(place))
        view = asyncio.run(_once(place))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    sys.exit(UNHEALTHY if check and _unwell(view) else DONE)


def _unwell(view: ClusterView) -> bool:
    blocked = view.automatic_failover and view.pause is None and bool(what_blocks(view))
    return bool(view.problems()) or blocked


async def _once(place: ClusterCommand) -> ClusterView:
    spent = time.monotonic() - STARTED
    view = await look_at(
        place.configuration,
        place.nameservice,
        deadline_seconds=DEADLINE_SECONDS,
        spent_seconds=spent,
    )
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
    """One document a look, each on a line of its own as JSON, or after ``---`` as YAML."""
    while True:
        document = as_json(await _look(place))
        text = json.dumps(document) if place.output == "json" else f"---\n{as_yaml(document)}"
        click.echo(text.rstrip("\n"))
        sys.stdout.flush()
        await asyncio.sleep(WATCH_SECONDS)


async def _look(place: ClusterCommand) -> ClusterView:
    return await look_at(place.configuration, place.nameservice, deadline_seconds=DEADLINE_SECONDS)

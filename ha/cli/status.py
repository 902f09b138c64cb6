"""``nnha status``: the whole cluster on one screen, or as JSON."""

import asyncio
import json
import sys
import time
from pathlib import Path

import click
from rich.live import Live

from ha.cli import STARTED
from ha.cli.asking import look_at
from ha.cli.cluster_view import ClusterView
from ha.cli.exits import DONE, INTERRUPTED, UNHEALTHY, USAGE
from ha.cli.output import console
from ha.cli.quiet import silence_libraries
from ha.cli.status_table import as_json, as_text
from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import nameservice_of

DEADLINE_SECONDS = 1.5
WATCH_SECONDS = 2.0


@click.command()
@click.option(
    "--conf-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder with core-site.xml and hdfs-site.xml; $HADOOP_CONF_DIR if not given.",
)
@click.option("-D", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key.")
@click.option("-ns", "--nameservice", default=None, help="Which nameservice, if several.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@click.option("-w", "--watch", is_flag=True, help="Look again every 2 s until interrupted.")
@click.option("--check", is_flag=True, help="Exit 8 if anything is not as it should be.")
def status(
    *,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    nameservice: str | None,
    output: str,
    watch: bool,
    check: bool,
) -> None:
    """Show who is active, and every NameNode, ZKFC, JournalNode and ZooKeeper server.

    All are asked at once, and what has not answered 1.5 s after the start is shown so.  Exits 0
    whatever is found, unless --check.
    """
    silence_libraries()
    try:
        configuration = load_configuration(conf_dir, overrides)
        name = nameservice or nameservice_of(configuration)
        if watch:
            asyncio.run(_watch(configuration, name, output))
            view = None
        else:
            view = asyncio.run(_once(configuration, name, output))
    except ConfigurationError as error:
        click.echo(f"nnha status: {error}", err=True)
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    for warning in configuration.warnings:
        click.echo(f"warning: {warning}", err=True)
    sys.exit(UNHEALTHY if check and view is not None and view.problems() else DONE)


async def _once(configuration: Configuration, nameservice: str, output: str) -> ClusterView:
    spent = time.monotonic() - STARTED
    view = await look_at(
        configuration, nameservice, deadline_seconds=DEADLINE_SECONDS, spent_seconds=spent
    )
    # Shown before the loop ends: a name that is still being looked up must not hold it back.
    if output == "json":
        click.echo(json.dumps(as_json(view), indent=2))
    else:
        console().print(as_text(view))
    sys.stdout.flush()
    return view


async def _watch(configuration: Configuration, nameservice: str, output: str) -> None:
    if output == "json":
        while True:
            view = await look_at(configuration, nameservice, deadline_seconds=DEADLINE_SECONDS)
            click.echo(json.dumps(as_json(view)))
            sys.stdout.flush()
            await asyncio.sleep(WATCH_SECONDS)
    with Live(console=console(), auto_refresh=False) as live:
        while True:
            view = await look_at(configuration, nameservice, deadline_seconds=DEADLINE_SECONDS)
            live.update(as_text(view), refresh=True)
            await asyncio.sleep(WATCH_SECONDS)

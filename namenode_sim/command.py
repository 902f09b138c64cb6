"""``nnha namenode``: run a NameNode, or format its file system."""

import asyncio
import sys
from pathlib import Path

import click

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.daemon.logs import configure_logging
from ha.daemon.process import ExitWith, run_daemon
from namenode_sim.daemon import run_namenode
from namenode_sim.formatting import (
    ABORTED,
    format_all,
    new_namespace_info,
    occupied_directories,
)
from namenode_sim.image.errors import ImageError
from namenode_sim.place import Place
from namenode_sim.storage_errors import StorageError


@click.command()
@click.option("--conf-dir", type=click.Path(path_type=Path), help="Where hdfs-site.xml is.")
@click.option("-D", "overrides", multiple=True, metavar="KEY=VALUE", help="Set one key.")
@click.option(
    "--format", "-format", "do_format", is_flag=True, help="Create a new, empty file system."
)
@click.option("--cluster-id", "-clusterid", help="With --format: the new cluster's id.")
@click.option("--force", "-force", is_flag=True, help="With --format: erase what is there.")
@click.option(
    "--non-interactive",
    "-nonInteractive",
    is_flag=True,
    help="With --format: never ask; refuse what would be asked for.",
)
def namenode(
    *,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    do_format: bool,
    cluster_id: str | None,
    force: bool,
    non_interactive: bool,
) -> None:
    """Run a NameNode.  It starts as standby; its ZKFC or an operator makes it active.

    Exit codes: 0 stopped on request, 1 could not start or had to stop; the reason is the last
    line on standard error.
    """
    configure_logging("namenode")
    conf, place = _configured(conf_dir, overrides)
    if do_format:
        sys.exit(_format(conf, place, cluster_id, force=force, ask=not non_interactive))
    sys.exit(run_daemon(f"namenode {place.address.namenode}", lambda stop: _serve(conf, stop)))


def _configured(conf_dir: Path | None, overrides: tuple[str, ...]) -> tuple[Configuration, Place]:
    try:
        conf = load_configuration(conf_dir, overrides)
        for warning in conf.warnings:
            click.echo(f"namenode: warning: {warning}", err=True)
        return conf, Place.from_configuration(conf)
    except ConfigurationError as problem:
        click.echo(f"namenode: {problem}", err=True)
        sys.exit(1)


async def _serve(conf: Configuration, stop: asyncio.Event) -> None:
    try:
        await run_namenode(conf, stop)
    except (StorageError, ImageError, ConfigurationError) as problem:
        raise ExitWith(1, str(problem)) from problem


def _format(
    conf: Configuration, place: Place, cluster_id: str | None, *, force: bool, ask: bool
) -> int:
    occupied = occupied_directories(conf, place)
    if occupied and not force:
        shown = ", ".join(map(str, occupied))
        if not ask or not _confirmed(f"Re-format filesystem in {shown} ? (Y or N)"):
            click.echo(
                f"namenode: format aborted: {shown} holds a file system, and nothing was changed. "
                "To erase it for good, give --force.",
                err=True,
            )
            return ABORTED
        force = True
    info = new_namespace_info(cluster_id)
    try:
        asyncio.run(format_all(conf, place, info, force=force))
    except ExitWith as failure:
        click.echo(f"namenode: {failure.message}", err=True)
        return failure.code
    except StorageError as problem:
        click.echo(f"namenode: the journal is formatted, but {problem}", err=True)
        return ABORTED
    click.echo(
        f"namenode: formatted {place.address.nameservice}: cluster {info.cluster_id}, "
        f"block pool {info.block_pool_id}"
    )
    return 0


def _confirmed(question: str) -> bool:
    """Ask until the answer is one; the end of input is a no, never a loop (hadoop-ha W21)."""
    while True:
        click.echo(question, err=True)
        answer = sys.stdin.readline()
        match answer.strip().lower():
            case "y" | "yes":
                return True
            case "n" | "no":
                return False
            case _ if not answer:
                return False
            case _:
                click.echo("Please answer Y or N.", err=True)

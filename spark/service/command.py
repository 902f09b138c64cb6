"""``nnha checkpoint run``: the checkpoint service in the foreground."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import click

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys import checkpoint as keys
from ha.conf.keys import namenode as keys_namenode
from ha.conf.listening import Door
from ha.console.exit_codes import UNEXPECTED
from ha.console.log_options import log_options
from ha.console.options import configuration
from ha.daemon.binding import binding
from ha.daemon.end_code import end_code
from ha.daemon.exposure import check_exposure
from ha.daemon.facts import publish_facts
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.logs import LogOptions, configure_logging
from ha.daemon.private_files import warn_of_open_folders
from ha.daemon.process import ExitWith, run_daemon
from ha.daemon.start_check import check_start
from ha.security.access_control import AccessControl
from hadoop.errors import StorageError
from hadoop.location import path_of
from namenode_sim.checkpoint.schedule import CheckpointRules
from spark.ends.sources.cluster import Cluster
from spark.service.core import Rules
from spark.service.merge_process import MergeProcess
from spark.service.service import CheckpointService

NAME = "checkpoint"


@click.command("run")
@configuration
@log_options
@click.argument("merge_arguments", nargs=-1, type=click.UNPROCESSED)
def run_command(
    *,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    log_as: LogOptions,
    merge_arguments: tuple[str, ...],
) -> None:
    """Make checkpoints of a running cluster until SIGTERM: watch, merge, upload.

    What follows -- goes to "nnha checkpoint merge", for instance: nnha checkpoint run -- --engine
    spark.  Run it as the user of the NameNodes.

    Exit codes: 0 stopped on request, 1 it could not start, 2 wrong usage, 78 would be open to
    strangers (nnha.security.mode).
    """
    configure_logging(NAME, level=log_as.level, form=log_as.form)
    try:
        conf = load_configuration(conf_dir, overrides)
        check_start(conf, Daemon.CHECKPOINT)
        at = conf.get(keys.CHECKPOINT_HTTP)
        door = Door(keys.CHECKPOINT_HTTP.name, at.host, at.port)
        access = check_exposure(conf, Daemon.CHECKPOINT, [door])
        cluster = Cluster.from_configuration(conf)
        work = path_of(conf.get(keys.CHECKPOINT_WORK))
    except (ConfigurationError, ValueError) as problem:
        click.echo(f"{NAME}: {problem}", err=True)
        sys.exit(end_code(problem))
    except ExitWith as refusal:
        click.echo(f"{NAME}: {refusal.message}", err=True)
        sys.exit(refusal.code)
    publish_facts(NAME, conf)
    merger = MergeProcess(merge_arguments, work)
    service = CheckpointService(cluster, rules_of(conf, cluster), work, merger)
    sys.exit(run_daemon(NAME, lambda stop: _serve(service, conf, work, access, stop)))


def rules_of(conf: Configuration, cluster: Cluster) -> Rules:
    """Return when a checkpoint is due, by the first NameNode's keys."""
    one = cluster.namenodes[0]
    scope = {"nameservice": one.nameservice, "namenode": one.namenode}
    return Rules(
        due=CheckpointRules(
            period_seconds=conf.get(keys_namenode.CHECKPOINT_PERIOD, **scope),
            edits=conf.get(keys_namenode.CHECKPOINT_TXNS, **scope),
            check_seconds=conf.get(keys_namenode.CHECKPOINT_CHECK, **scope),
        ),
        retry_first_seconds=conf.get(keys.CHECKPOINT_RETRY_FIRST),
        retry_most_seconds=conf.get(keys.CHECKPOINT_RETRY_MOST),
    )


async def _serve(
    service: CheckpointService,
    conf: Configuration,
    work: Path,
    access: AccessControl,
    stop: asyncio.Event,
) -> None:
    at = conf.get(keys.CHECKPOINT_HTTP)
    endpoint = Endpoint(status=service.status, healthy=service.trouble, access=access)
    running: asyncio.Task[None] | None = None
    try:
        await asyncio.to_thread(work.mkdir, parents=True, exist_ok=True)
        warn_of_open_folders([work])
        with binding(keys.CHECKPOINT_HTTP.name, at.host, at.port):
            await endpoint.start(at.host, at.port)
        running = asyncio.create_task(service.run(), name="checkpoints")
        stopping = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if running.done():
            running.result()  # raises: it ends by itself only when it cannot go on
    except StorageError as problem:
        raise ExitWith(
            UNEXPECTED,
            f"{problem.path} {problem.found}. Stop that process, or give this one another "
            f"{keys.CHECKPOINT_WORK.name}.",
        ) from problem
    except OSError as problem:
        raise ExitWith(end_code(problem), f"{problem}. Nothing was changed.") from problem
    finally:
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError, OSError, StorageError):
                await running
        await endpoint.stop()

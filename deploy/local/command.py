"""`nnha cluster up|down`: a local cluster in the foreground, to play with."""

import contextlib
import os
import shlex
import signal
import time
from pathlib import Path

import click

from deploy.local.cluster import Cluster, open_cluster
from deploy.local.errors import LocalClusterError
from deploy.local.places import fresh_directory, last_cluster, remember
from deploy.local.processes import wait_until
from deploy.local.screen import Screen
from deploy.local.signals import orderly_end

_OWNER_FILE = "owner.pid"
_DOWN_SECONDS = 60.0
_LOOK_SECONDS = 0.5


@click.group()
def cluster() -> None:
    """A local cluster of real processes on loopback."""


@cluster.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the cluster here; one that was kept here before starts again.  "
    "[default: a fresh directory under ./var]",
)
@click.option("--base-port", type=click.IntRange(1024, 65000), help="[default: free ports]")
def up(*, directory: Path | None, base_port: int | None) -> None:
    """Start a cluster and keep it until Ctrl-C, SIGTERM or `nnha cluster down`."""
    running = _owner(directory) if directory is not None else None
    if directory is not None and running is not None:
        # A second one would take the first one's place in the owner's file, and fail.
        raise click.ClickException(
            f"a cluster runs in {directory} already (process {running}); end it with: "
            f"nnha cluster down --directory {directory}"
        )
    screen = Screen.on_stderr_if(False)  # noqa: FBT003 - everything goes to stdout here
    try:
        local = open_cluster(directory or fresh_directory("cluster"), base_port=base_port)
        with orderly_end(), local:
            remember(local.layout.directory)
            owner = local.layout.directory / _OWNER_FILE
            owner.write_text(f"{os.getpid()}\n")
            with screen.watching(local):
                local.up()
            screen.parts(local)
            for line in _hints(local):
                screen.say(line)
            with contextlib.suppress(SystemExit):  # to be ended is how this command succeeds
                _watch(local, screen)
            screen.say("stopping")
            local.down()
            owner.unlink(missing_ok=True)
            screen.say("stopped")
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error


@cluster.command()
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
def down(*, directory: Path | None) -> None:
    """Stop the cluster that runs in another terminal; its data and logs stay."""
    where = directory or last_cluster()
    owner = _owner(where) if where is not None else None
    if where is None or owner is None:
        raise click.ClickException(
            f"Looked for a running cluster in {where or 'the last directory used here'}; there "
            f"is none. Give its --directory"
        )
    os.kill(owner, signal.SIGTERM)
    try:
        wait_until(
            lambda: _owner(where) != owner,
            what=f"the cluster in {where} (process {owner}) to stop",
            deadline_seconds=_DOWN_SECONDS,
        )
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"stopped; data and logs stay in {where}")


def _owner(directory: Path) -> int | None:
    """The process that runs the cluster, if it is still that one and not a reused pid."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((directory / _OWNER_FILE).read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"cluster" in arguments and b"up" in arguments:
            return pid
    return None


def _watch(local: Cluster, screen: Screen) -> None:
    """Say who ends; the cluster is there to be hurt, so nothing is started again."""
    told: set[str] = set()
    while True:
        for name, process in local.supervisor.processes.items():
            if not process.running and name not in told:
                told.add(name)
                screen.say(f"[red]{name} ended[/] with {process.exit_code}; its log: {process.log}")
        time.sleep(_LOOK_SECONDS)


def _hints(local: Cluster) -> list[str]:
    conf = shlex.quote(str(local.conf_dir))
    active = local.active_namenodes()
    victim = local.process(active[0]).pid if active else "PID"
    return [
        f"configuration: [bold]{conf}[/]",
        "try, in another terminal:",
        f"  nnha status --conf-dir {conf}",
        f"  nnha dfs --conf-dir {conf} -mkdir -p /hello/world",
        f"  nnha dfs --conf-dir {conf} -ls -R /",
        f"  nnha haadmin --conf-dir {conf} -getAllServiceState",
        f"  nnha haadmin --conf-dir {conf} -failover nn1 nn2",
        f"  kill -9 {victim}     (the active NameNode)",
        "Ctrl-C here, or `nnha cluster down`, stops it",
    ]

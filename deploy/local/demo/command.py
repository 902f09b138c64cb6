"""`nnha cluster up|down`: a local cluster in the foreground, to play with."""

import contextlib
import os
import shlex
import signal
import time
from pathlib import Path

import click

from deploy.local.cluster import places
from deploy.local.cluster.certificates import ADMIN, tls_folder
from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import remember
from deploy.local.cluster.processes import wait_until
from deploy.local.cluster.signals import orderly_end
from deploy.local.demo.screen import Screen
from ha.security.own_tls import secure_url

USUAL_DATANODES = 3
_DOWN_SECONDS = 60.0
_LOOK_SECONDS = 0.5


@click.group()
def cluster() -> None:
    """Run a local cluster of real processes on loopback."""


@cluster.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the cluster here; one that was kept here before starts again.  "
    "[default: a fresh directory under ./var]",
)
@click.option("--base-port", type=click.IntRange(1024, 65000), help="[default: free ports]")
@click.option(
    "--datanodes",
    type=click.IntRange(0, 100),
    default=USUAL_DATANODES,
    show_default=True,
    help="Of a new cluster; one that was kept has as many as before.",
)
@click.option("--secure", is_flag=True, help="Make certificates: the daemons speak TLS.")
def up(*, directory: Path | None, base_port: int | None, datanodes: int, secure: bool) -> None:
    """Start a cluster and keep it until Ctrl-C, SIGTERM or `nnha cluster down`."""
    running = places.owner_of(directory) if directory is not None else None
    if directory is not None and running is not None:
        # A second one would take the first one's place in the owner's file, and fail.
        raise click.ClickException(
            f"a cluster runs in {directory} already (process {running}); end it with: "
            f"nnha cluster down --directory {directory}"
        )
    screen = Screen.on_stderr_if(False)  # noqa: FBT003 - everything goes to stdout here
    try:
        local = open_cluster(
            directory or places.fresh_directory("cluster"),
            base_port=base_port,
            datanodes=datanodes,
            secure=secure,
            web=True,
        )
        with orderly_end(), local:
            remember(local.layout.directory)
            owner = local.layout.directory / places.OWNER_FILE
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
    """Stop the cluster that runs in another terminal; its data and logs stay.

    Without --directory, stops the newest one below ./var, or the last one used here.
    """
    running = [directory] if directory is not None else places.running_clusters()
    where = running[0] if running else None
    owner = places.owner_of(where) if where is not None else None
    if where is None or owner is None:
        raise click.ClickException(_none_runs(directory))
    os.kill(owner, signal.SIGTERM)
    try:
        wait_until(
            lambda: places.owner_of(where) != owner,
            what=f"the cluster in {where} (process {owner}) to stop",
            deadline_seconds=_DOWN_SECONDS,
        )
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"stopped; data and logs stay in {where}")
    for other in running[1:]:
        click.echo(f"another one still runs: nnha cluster down --directory {other}")


def _none_runs(directory: Path | None) -> str:
    if directory is not None:
        return f"Looked for a running cluster in {directory}; there is none"
    last = places.last_cluster()
    used = "" if last is None else f" (the last directory used here is {last}; none runs in it)"
    return (
        f"Looked below {Path.cwd() / 'var'} for a cluster that `nnha cluster up` runs; there is "
        f"none{used}. Give its --directory"
    )


def _watch(local: Cluster, screen: Screen) -> None:
    """Report each part that ends; restart nothing, for the cluster is there to be hurt."""
    told: set[str] = set()
    while True:
        for name, process in local.supervisor.processes.items():
            if not process.running and name not in told:
                told.add(name)
                screen.say(f"[red]{name} ended[/] with {process.exit_code}; its log: {process.log}")
        time.sleep(_LOOK_SECONDS)


def _proof(local: Cluster) -> str:
    """Return which certificate a browser must show; nothing where the kernel identifies users."""
    own = tls_folder(local.layout, ADMIN)
    return f" (with the certificate of {own})" if own.exists() else ""


def _hints(local: Cluster) -> list[str]:
    conf = shlex.quote(str(local.conf_dir))
    active = local.active_namenodes()
    victim = local.process(active[0]).pid if active else "PID"
    return [
        f"the cluster as a page: [bold]{secure_url(local.layout.url('web'))}/[/]{_proof(local)}",
        f"configuration: [bold]{conf}[/]",
        "try, in another terminal:",
        f"  nnha status --conf-dir {conf}",
        f"  nnha dfs --conf-dir {conf} -mkdir -p /hello",
        f"  nnha dfs --conf-dir {conf} -put README.md /hello/",
        f"  nnha dfs --conf-dir {conf} -cat /hello/README.md",
        f"  nnha haadmin --conf-dir {conf} -getAllServiceState",
        f"  nnha haadmin --conf-dir {conf} -failover nn1 nn2",
        f"  kill -9 {victim}     (the active NameNode)",
        "Ctrl-C here, or `nnha cluster down`, stops it",
    ]

"""`nnha dfs`: Hadoop's own FsShell from PySpark's jars, against the configured cluster."""

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_java
from deploy.local.cluster.places import last_cluster, running_clusters
from deploy.local.workload.hadoop_client import client_argv
from ha.cluster.daemon_queries import look_at
from ha.conf.client_proxy import CLIENT_PROXY, USUAL_PROXY, without_client_proxy
from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import cluster as keys
from ha.daemon import event_loop

PATIENCE_SECONDS = 15.0
"""How long a command may take, the start of the JVM included, before we look why."""
LOOK_SECONDS = 2.0
_MAIN_CLASS = "org.apache.hadoop.fs.FsShell"


def configured_directory(given: Path | None) -> Path:
    """Return the conf directory: the one given, else HADOOP_CONF_DIR, else a local cluster's.

    That is the one that runs, or was started last.  Raises LocalClusterError where the result is no
    directory with a core-site.xml.
    """
    directory = given
    if directory is None and (from_environment := os.environ.get("HADOOP_CONF_DIR")):
        directory = Path(from_environment)
    if (
        directory is None
        and (cluster := next(iter(running_clusters()), last_cluster())) is not None
    ):
        directory = cluster / "conf"
    if directory is None:
        raise LocalClusterError(
            "Looked for a configuration in --conf-dir, HADOOP_CONF_DIR and the last local "
            "cluster; there is none. Give --conf-dir, or start one with: nnha cluster up"
        )
    if not (directory / "core-site.xml").is_file():
        raise LocalClusterError(
            f"Looked for core-site.xml in {directory}; it is not there. "
            f"Give a directory that holds core-site.xml and hdfs-site.xml"
        )
    return directory


@click.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": [],
    },
    options_metavar="[--conf-dir DIRECTORY]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def dfs(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Run Hadoop's file system shell, e.g. nnha dfs --conf-dir DIR -ls -R /

    Everything after --conf-dir is passed on unchanged; the exit code is the shell's own.  Without
    it the configuration is taken from HADOOP_CONF_DIR, else from the last local cluster.  nnha fs
    has the usual commands without a JVM.
    """
    if arguments[:1] == ("--help",):
        click.echo(context.get_help())
        return
    try:
        given, rest = split_conf_dir(arguments)
        directory = configured_directory(given)
        java = find_java()
        with tempfile.TemporaryDirectory() as scratch:
            argv = client_argv(java, directory, _MAIN_CLASS, log_directory=Path(scratch))
            code = _run([*argv, *failover_proxy_options(directory), *rest], directory)
    except (LocalClusterError, ConfigurationError) as error:
        raise click.ClickException(str(error)) from error
    context.exit(code if code >= 0 else 128 - code)


def _run(argv: list[str], directory: Path) -> int:
    with subprocess.Popen(argv) as process:
        try:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(PATIENCE_SECONDS)
            for line in no_active_warning(directory):
                click.echo(line, err=True)
            return process.wait()
        except BaseException:
            process.kill()
            raise


def no_active_warning(directory: Path) -> list[str]:
    """Return that no NameNode is active: Hadoop's client tries in silence, for minutes."""
    configuration = load_configuration(directory)
    lines: list[str] = []
    for nameservice in configuration.get(keys.NAMESERVICES):
        try:
            view = event_loop.run(
                look_at(configuration, nameservice, deadline_seconds=LOOK_SECONDS)
            )
        except ConfigurationError:  # enough for the client, not for a look: it may be no HA
            continue
        if view.active is None:
            lines.append(
                f"nnha dfs: no NameNode of {nameservice} says that it is active; Hadoop's client "
                "goes on trying. Why nobody is: nnha explain"
            )
    return lines


def failover_proxy_options(directory: Path) -> list[str]:
    """Return options that let the shell find the active if the configuration does not; warn."""
    options: list[str] = []
    for nameservice in without_client_proxy(load_configuration(directory)):
        name = f"{CLIENT_PROXY}.{nameservice}"
        click.echo(
            f"nnha dfs: {name} is not set in {directory}; taking {USUAL_PROXY}. "
            "Your other clients need it in their hdfs-site.xml.",
            err=True,
        )
        options += ["-D", f"{name}={USUAL_PROXY}"]
    return options


def split_conf_dir(arguments: tuple[str, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """Return our one option, where it stands first, and everything behind it.

    By hand: click would also look for it among the shell's own arguments.
    """
    match arguments:
        case ("--conf-dir", value, *rest):
            return Path(value), tuple(rest)
        case (first, *rest) if first.startswith("--conf-dir="):
            return Path(first.removeprefix("--conf-dir=")), tuple(rest)
        case _:
            return None, arguments

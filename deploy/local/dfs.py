"""`nnha dfs`: Hadoop's own FsShell from PySpark's jars, against the configured cluster."""

import os
import subprocess
import tempfile
from pathlib import Path

import click

from deploy.local.errors import LocalClusterError
from deploy.local.hadoop_client import client_argv
from deploy.local.java import Java, find_java
from deploy.local.places import last_cluster

_MAIN_CLASS = "org.apache.hadoop.fs.FsShell"


def fs_shell(
    conf_dir: Path, *arguments: str, java: Java | None = None, deadline_seconds: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run one shell command and catch what it prints, for programs and tests."""
    with tempfile.TemporaryDirectory() as scratch:
        argv = client_argv(java or find_java(), conf_dir, _MAIN_CLASS, log_directory=Path(scratch))
        return subprocess.run(
            [*argv, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=deadline_seconds,
            check=False,
        )


def configured_directory(given: Path | None) -> Path:
    """The conf directory: the one given, else HADOOP_CONF_DIR, else the last local cluster's.

    Raises LocalClusterError where that is no directory with a core-site.xml.
    """
    directory = given
    if directory is None and (from_environment := os.environ.get("HADOOP_CONF_DIR")):
        directory = Path(from_environment)
    if directory is None and (cluster := last_cluster()) is not None:
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
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@click.option("--conf-dir", type=click.Path(path_type=Path), help="Holds core-site.xml.")
@click.option("--help", "asked_for_help", is_flag=True, help="Show this message and exit.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def dfs(
    context: click.Context,
    conf_dir: Path | None,
    asked_for_help: bool,  # noqa: FBT001 - click's way to pass a flag
    arguments: tuple[str, ...],
) -> None:
    """Run Hadoop's file system shell, e.g. nnha dfs -ls -R /

    Everything after the options is passed on untouched; the exit code is the shell's own.
    """
    if asked_for_help:
        click.echo(context.get_help())
        return
    try:
        directory = configured_directory(conf_dir)
        java = find_java()
        with tempfile.TemporaryDirectory() as scratch:
            argv = client_argv(java, directory, _MAIN_CLASS, log_directory=Path(scratch))
            code = subprocess.run([*argv, *arguments], check=False).returncode
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    context.exit(code if code >= 0 else 128 - code)

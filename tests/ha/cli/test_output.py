"""Results on a standard output that takes not all of them, or nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.cluster.site import site_xml
from tests.ha.zkfc.zkfc_world import free_port

NODES = ("nn1", "nn2")
ENDED = """
import sys
from ha.conf.configuration import Configuration
from ha.console.result import Code, CommandOutcome, Ending
from ha.console.cluster_options import ClusterCommand
ending = Ending(
    "switchover", outcome=CommandOutcome.UNKNOWN, code=Code.BAD_CONFIGURATION,
    message="nobody knows", hint="nnha status"
)
ClusterCommand(Configuration({}, {}), "ns1", sys.argv[1]).end(ending)
"""
SHOWN = """
import click
from ha.console.output import show
click.Command("status", callback=lambda: show("json", {}, "x"))([])
"""


def run(*words: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, *words],
        capture_output=True,
        env=os.environ | environment,
        text=True,
        encoding="latin-1",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
@pytest.mark.parametrize("full", [">/dev/full", ">&-"])
def test_the_code_tells_of_the_deed_where_its_text_cannot_be_written(
    output: str, full: str
) -> None:
    told = run("-c", ENDED, output, shell=full)
    assert told.returncode == 5
    assert "cannot be written to standard output" in told.stderr
    assert "nobody knows" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("full", [">/dev/full", ">&-"])
def test_a_picture_that_nobody_can_see_is_no_success(full: str) -> None:
    told = run("-c", SHOWN, shell=full)
    assert told.returncode == 1
    assert told.stderr.startswith("Error: the result cannot be written to standard output: ")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "words",
    [("config", "show"), ("completion", "bash"), ("haadmin", "-help"), ("--help",), ("--version",)],
    ids=" ".join,
)
def test_a_full_standard_output_is_one_line_of_any_command(
    tmp_path: Path, words: tuple[str, ...], unbuffered: str
) -> None:
    (tmp_path / "hdfs-site.xml").write_text(site_xml({"dfs.nameservices": "ns1"}))
    environment = {"HADOOP_CONF_DIR": str(tmp_path), "PYTHONUNBUFFERED": unbuffered}
    told = run("-m", "ha.cli.main", *words, shell=">/dev/full", **environment)
    assert told.returncode == 1
    assert told.stderr == (
        "Error: the result cannot be written to standard output: No space left on device\n"
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_an_arrow_does_not_end_a_command_where_the_locale_has_none(
    tmp_path: Path, encoding: str
) -> None:
    addresses = {f"dfs.namenode.rpc-address.ns1.{n}": f"127.0.0.1:{free_port()}" for n in NODES}
    site = {"dfs.nameservices": "ns1", "dfs.ha.namenodes.ns1": ",".join(NODES), **addresses}
    (tmp_path / "hdfs-site.xml").write_text(site_xml(site))
    words = ("-m", "ha.cli.main", "switchover", "--conf-dir", str(tmp_path))
    told = run(*words, PYTHONIOENCODING=encoding)
    assert (told.returncode, told.stderr) == (3, ""), told
    assert " ? " in told.stdout

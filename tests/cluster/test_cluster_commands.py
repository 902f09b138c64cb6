"""The commands that a person starts: the demo, and a cluster in the foreground."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local.cluster import layout as layouts
from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.processes import wait_until
from tests import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

START_SECONDS = 120.0
COMMAND_SECONDS = 90.0
STOP_SECONDS = 30.0
DEMO_SECONDS = 200.0
QUICK_SECONDS = 5.0


def nnha(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ha.cli.main", *arguments]


def environment() -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(*arguments: str, where: Path, deadline_seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        nnha(*arguments),
        cwd=where,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=deadline_seconds,
        check=False,
    )


def test_the_demo_loses_nothing_and_waits_for_no_session(tmp_path: Path) -> None:
    told = run("demo", "--json", where=tmp_path, deadline_seconds=DEMO_SECONDS)
    assert told.returncode == 0, told.stderr
    facts = json.loads(told.stdout.splitlines()[-1])
    assert facts["acknowledged"] >= 2000
    assert (facts["missing"], facts["duplicated"], facts["client_errors"]) == (0, 0, 0)
    assert facts["journal"]["gaps"] == facts["journal"]["diverging"] == 0
    # ZooKeeper would take ten seconds to miss a controller.
    assert facts["kill"]["failover_seconds"] <= QUICK_SECONDS
    assert facts["kill"]["client_longest_call_seconds"] <= QUICK_SECONDS
    assert all(seconds is not None for seconds in facts["kill"]["phases"].values())
    assert facts["graceful"]["failover_seconds"] <= QUICK_SECONDS
    assert facts["graceful"]["client_longest_call_seconds"] <= QUICK_SECONDS
    assert len(facts["graceful"]["all"]) == 5
    assert facts["epoch_after"] == facts["epoch_before"] + 6


@contextmanager
def cluster_up(kept: Path, where: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a cluster in the foreground; it ends whatever becomes of the test."""
    output = where / "output"
    with output.open("wb") as sink:
        owner = subprocess.Popen(
            nnha("cluster", "up", "--directory", str(kept)),
            cwd=where,
            env=environment(),
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        wait_until(
            lambda: "Ctrl-C here" in output.read_text(),
            what="the cluster to come up",
            deadline_seconds=START_SECONDS,
            abandon=lambda: output.read_text() if owner.poll() is not None else None,
        )
        yield owner
    finally:
        owner.kill()  # its reaper ends the parts
        owner.wait()


@pytest.mark.parametrize("how", ["down", pytest.param("ctrl-c", marks=pytest.mark.long)])
def test_a_cluster_in_the_foreground_keeps_its_namespace_and_its_ports(
    tmp_path: Path, how: str
) -> None:
    """Ended by ``nnha cluster down`` or by Ctrl-C, and brought up again where it was kept."""
    kept = tmp_path / "kept"
    shows: list[set[str]] = []
    where = ("--conf-dir", str(kept / "conf"))
    for command in ("mkdir -p /kept/over/a/restart", "put - /kept/file"):
        with cluster_up(kept, tmp_path) as owner:
            made = run(
                "fs", *command.split(), *where, where=tmp_path, deadline_seconds=COMMAND_SECONDS
            )
            assert made.returncode == 0, made.stderr
            listing = run(
                "fs", "ls", "-R", "/", *where, where=tmp_path, deadline_seconds=COMMAND_SECONDS
            )
            shows.append({line.split()[-1] for line in listing.stdout.splitlines()})
            if how == "down":
                down = run("cluster", "down", where=tmp_path, deadline_seconds=COMMAND_SECONDS)
                assert down.returncode == 0, down.stderr
            else:
                owner.send_signal(signal.SIGINT)
            assert owner.wait(STOP_SECONDS) == 0
    assert "/kept/over/a/restart" in shows[0]
    assert shows[1] == shows[0] | {"/kept/file"}
    layout = layouts.load(kept)
    assert layout is not None
    assert open_cluster(kept).layout == layout


def test_down_without_a_cluster_says_so(tmp_path: Path) -> None:
    told = run("cluster", "down", where=tmp_path, deadline_seconds=COMMAND_SECONDS)
    assert told.returncode == 1
    assert "there is none" in told.stderr

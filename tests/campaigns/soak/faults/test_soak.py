"""Forty real faults in CI, and what the soak says where it cannot be played."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.campaigns.soak.faults.soak import CANNOT
from tests.needs import NAMESPACES

FAULTS = 40
LONGEST_SECONDS = 3
SOAK = ("-m", "tests.campaigns.run", "soak", "faults")


def soak(directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *SOAK, *options, "--json", "--directory", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1100,
    )


@NAMESPACES.mark
@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_forty_faults_lose_nothing_and_mislead_nobody(tmp_path: Path) -> None:
    limits = ("--count", str(FAULTS), "--longest", str(LONGEST_SECONDS))
    done = soak(tmp_path, *limits, "--seed", "18")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["well"]
    assert facts["faults"] + sum(facts["skipped"].values()) == FAULTS
    assert facts["faults"] >= FAULTS - 5, facts["skipped"]
    assert facts["epochs"] > 5, "the active was replaced again and again"
    assert facts["answered"] > 10 * FAULTS


@NAMESPACES.mark
@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_planted_bug_is_found(tmp_path: Path) -> None:
    """Two JournalNodes hang, the active goes on answering, and is killed before they go on."""
    bug = "a namenode answers before the quorum"
    limits = ("--count", "4", "--longest", "4", "--only", "ambush")
    done = soak(tmp_path, *limits, "--seed", "6", "--plant", bug)
    assert done.returncode == 1, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["paths_without_an_order"]
    assert facts["findings"][0].startswith("no order explains what clients were told of /faults/")


def test_what_is_missing_is_named_and_the_exit_code_says_so(tmp_path: Path) -> None:
    """As root without the commands, as somebody else for being that: both end with 77."""
    done = subprocess.run(
        [sys.executable, *SOAK, "--count", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PATH": str(tmp_path)},
    )
    assert done.returncode == CANNOT
    assert done.stderr.startswith("cannot play faults: ")
    if os.geteuid() == 0:
        assert "nft" in done.stderr
        assert "apt-get install" in done.stderr

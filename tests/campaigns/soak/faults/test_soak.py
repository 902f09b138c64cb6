"""Nine real faults in CI, and what the soak says where it cannot be played."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import ROOT
from tests.campaigns.soak.faults.draw import KINDS
from tests.campaigns.soak.faults.mutants import HUNTS
from tests.campaigns.soak.faults.planted import BUGS
from tests.campaigns.soak.faults.soak import CANNOT
from tests.needs import NAMESPACES
from tests.pytest_report import FAULTS_SURVIVED

FAULTS = 9
LONGEST_SECONDS = 3
SOAK = ("-m", "tests.campaigns.run", "soak", "faults")


def soak(directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *SOAK, *options, "--json", "--directory", str(directory)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1400,
    )


@NAMESPACES.mark
@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_faults_lose_nothing_and_no_answer_is_wrong(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    limits = ("--count", str(FAULTS), "--longest", str(LONGEST_SECONDS))
    done = soak(tmp_path, *limits, "--seed", "18", "--files")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["well"]
    assert facts["files"]["acknowledged"] > FAULTS
    assert facts["files"]["right_bytes"] > 1_000_000
    assert any("datanode" in kind for kind in facts["kinds"])
    assert facts["faults"] + sum(facts["skipped"].values()) == FAULTS
    assert facts["faults"] >= FAULTS - 3, facts["skipped"]
    assert facts["epochs"] > FAULTS / 7, "the active was replaced again and again"
    assert facts["answered"] > 10 * FAULTS
    record_property(FAULTS_SURVIVED, facts["faults"])


@NAMESPACES.mark
@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_cluster_with_certificates_survives_too(tmp_path: Path) -> None:
    limits = ("--count", "20", "--longest", str(LONGEST_SECONDS))
    done = soak(tmp_path, *limits, "--seed", "18", "--secure")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["well"]
    assert facts["answered"] > 10 * 20
    refused = (tmp_path / "logs" / "jn1.log").read_text().count('"outcome": "refused"')
    assert refused, "a stranger has asked for its page"


@NAMESPACES.mark
@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.timeout(1500)
def test_every_planted_bug_is_found(tmp_path: Path) -> None:
    done = soak(tmp_path, "--mutants")
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["survived"] == []
    assert facts["planted"] == len(BUGS)


def test_every_planted_bug_has_a_hunt() -> None:
    assert tuple(HUNTS) == tuple(BUGS)
    for hunt in HUNTS.values():
        assert set(hunt.only) <= set(KINDS)


def test_what_is_missing_is_named_and_the_exit_code_says_so(tmp_path: Path) -> None:
    """Run as root without the commands, or as another user: both end with 77."""
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

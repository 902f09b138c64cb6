"""The unit files, read by systemd's own tools; nothing is started."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from ha.cli.main import COMMANDS
from tests import ROOT
from tests.needs import SYSTEMD

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
MOST_EXPOSED = "20"
"""In tenths, of ten."""


def told(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=60
    )


def parsed(unit: Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(unit.read_text())
    return found


@SYSTEMD.mark
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    for unit in (*UNITS, ROOT / "deploy" / "systemd" / "nnha.target"):
        here = unit.read_text().replace("/opt/nnha/bin/nnha", sys.executable)
        (tmp_path / unit.name).write_text(here.replace("User=hdfs", "User=root"))
    verified = told("verify", "--man=no", *map(str, sorted(tmp_path.iterdir())))
    assert (verified.returncode, verified.stderr) == (0, "")


@SYSTEMD.mark
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_daemon_may_do_little(unit: Path) -> None:
    found = told("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(unit))
    assert found.returncode == 0, found.stdout[-500:]


@SYSTEMD.mark
def test_the_tools_would_notice(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.service"
    wrong.write_text("[Service]\nExecStart=/bin/true\nWatchdogSecs=3\n")
    assert "WatchdogSecs" in told("verify", "--man=no", str(wrong)).stderr
    open_to_all = told("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(wrong))
    assert open_to_all.returncode == 1


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_a_command_that_there_is(unit: Path) -> None:
    program, name, *_ = parsed(unit)["Service"]["ExecStart"].split()
    assert program == "/opt/nnha/bin/nnha"
    assert name in COMMANDS


def test_a_controller_stops_before_its_namenode_and_neither_stops_the_other() -> None:
    zkfc = parsed(ROOT / "deploy" / "systemd" / "nnha-zkfc@.service")["Unit"]
    assert "nnha-namenode@%i.service" in zkfc["After"].split()
    assert not {"Requires", "BindsTo", "Requisite"} & set(zkfc)
    assert zkfc["PartOf"] == "nnha.target"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_failed_starts_are_counted_by_the_daemon_and_restarts_by_nothing(unit: Path) -> None:
    """The daemon counts them in its StateDirectory; RestartSteps counts what was killed, too."""
    service = parsed(unit)["Service"]
    assert service["Type"] == "exec" or service["StateDirectory"]
    assert "RestartSteps" not in service

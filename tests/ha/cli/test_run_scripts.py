"""./run puts the commands of [project.scripts] into .venv/bin, also where only they are missing."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import ROOT


def checkout(folder: Path) -> Path:
    """Make a checkout whose .venv is set up, by an earlier ./run that knew of no scripts."""
    for name in ("run", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (binaries / "python").chmod(0o755)
    with (folder / "requirements.lock").open("rb") as lock:
        told = subprocess.run(["cksum"], stdin=lock, capture_output=True, text=True, check=True)
    (folder / ".venv" / "nnha-stamp").write_text(f"{told.stdout.strip()} {folder}")
    return binaries


def test_hadoops_names_are_there_beside_nnha(tmp_path: Path) -> None:
    binaries = checkout(tmp_path)
    subprocess.run([tmp_path / "run", "setup"], check=True, capture_output=True, timeout=60)
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name, words, says in (
        ("nnha", ["--help"], "Usage: nnha"),
        ("haadmin", ["-help"], "Usage: haadmin"),
        ("zkfc", ["--help"], "Usage: zkfc"),
    ):
        assert name in scripts
        told = subprocess.run(
            [binaries / name, *words], capture_output=True, text=True, env=environment,
            check=False, timeout=60,
        )  # fmt: skip
        assert says in told.stdout + told.stderr
    assert {"nnha", "haadmin", "zkfc"} == set(scripts)


SLOW_PYTHON = """#!/bin/sh
case "$*" in
"-m venv "*) echo made >>{log}; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
"-m pip "*) echo installs >>{log}; read -r go <{gate} ;;
*) exec "{python}" "$@" ;;
esac
"""


@pytest.mark.parametrize("named", [False, True], ids=["first on PATH", "NNHA_PYTHON"])
def test_two_first_runs_at_once_set_up_once(tmp_path: Path, *, named: bool) -> None:
    for name in ("run", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    log, gate = tmp_path / "log", tmp_path / "gate"
    os.mkfifo(gate)
    python = tmp_path / "bin" / ("chosen" if named else "python3")
    python.parent.mkdir()
    python.write_text(SLOW_PYTHON.format(log=log, gate=gate, python=sys.executable))
    python.chmod(0o755)
    chosen = str(python) if named else ""
    path = os.environ["PATH"] if named else f"{python.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NNHA_PYTHON": chosen}

    def first_run() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [tmp_path / "run", "setup"], env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    first = first_run()
    with gate.open("w") as go:  # opens when the first one's pip reads
        second = first_run()
        assert second.stderr is not None
        told = second.stderr.readline()
        print("go", file=go)
    assert "another set-up" in told
    for one in (first, second):
        one.communicate(timeout=60)
        assert one.returncode == 0
    assert log.read_text().split() == ["made", "installs"]
    assert (tmp_path / ".venv" / "nnha-stamp").exists()

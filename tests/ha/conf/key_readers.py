"""Which files read which configuration key, by the syntax trees of the product."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from ha.conf.keys.key import Key
from tests import ROOT

PACKAGES = ("ha", "journal", "fencing", "namenode_sim", "datanode", "hadoop", "spark", "deploy")
KEYS_FOLDER = ROOT / "ha/conf/keys"
LOOKUPS = frozenset({"get", "raw", "require", "is_set", "where"})
"""Methods of ``Configuration``; a key's bare name counts only as an argument of one of them."""

Constants = Mapping[tuple[str, str], str]
"""The key's name, by module and constant."""


def modules_of_keys() -> list[str]:
    """Return the modules that define keys."""
    return sorted(f"ha.conf.keys.{path.stem}" for path in KEYS_FOLDER.glob("[a-z]*.py"))


def constants(modules: Iterable[str]) -> Constants:
    """Return every constant that is a key."""
    return MappingProxyType(
        {
            (module, name): value.name
            for module in modules
            for name, value in vars(import_module(module)).items()
            if isinstance(value, Key)
        }
    )


def sources() -> Iterator[Path]:
    """Yield the product's files but for those that define keys."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.parent != KEYS_FOLDER:
                yield path


def keys_read(text: str, known: Constants) -> set[str]:
    """Return the keys that one file reads: it passes their constants on, not only imports them."""
    tree = ast.parse(text)
    modules, names = _imported(tree, known)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = set()
    for node in ast.walk(tree):
        key: str | None = None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            key = known.get((modules.get(node.value.id, ""), node.attr))
        elif isinstance(node, ast.Name):
            key = names.get(node.id)
        if key is not None and _is_read(node, parents):
            found.add(key)
    return found


def _imported(tree: ast.AST, known: Constants) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the file's names mean: modules of keys, and keys."""
    of_keys = {module for module, _ in known}
    modules: dict[str, str] = {}
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            here, whole = alias.asname or alias.name, f"{node.module}.{alias.name}"
            if whole in of_keys:
                modules[here] = whole
            elif (node.module, alias.name) in known:
                names[here] = known[node.module, alias.name]
    return modules, names


def _is_read(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    parent = parents[node]
    if not isinstance(parent, ast.Attribute):
        return True
    step: ast.AST = parent
    while parent.attr == "name" and isinstance(step, ast.expr | ast.FormattedValue):
        step = parents[step]
        if isinstance(step, ast.Call) and isinstance(step.func, ast.Attribute):
            return step.func.attr in LOOKUPS
    return False

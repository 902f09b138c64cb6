"""A known key is a read key, or there is a reason why not."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import pytest

from ha.conf.hazards import HAZARDS
from ha.conf.keys.key import Key
from ha.conf.keys.table import KEYS
from ha.conf.keys.unused import NOT_USED, NOT_USED_PREFIXES, RENAMED
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.process.client_settings import client_settings
from tests import PACKAGES, ROOT
from tests.ha.conf.configuration_page import PAGE, with_tables

KEYS_FOLDER = ROOT / "ha/conf/keys"
LOOKUPS = frozenset({"get", "raw", "require", "is_set", "where"})
"""Methods of ``Configuration``; a key's bare name counts only as an argument of one of them."""

Constants = Mapping[tuple[str, str], str]
"""The key's name, by module and constant."""


def modules_of_keys() -> list[str]:
    return sorted(f"ha.conf.keys.{path.stem}" for path in KEYS_FOLDER.glob("[a-z]*.py"))


def constants(modules: Iterable[str]) -> Constants:
    return MappingProxyType(
        {
            (module, name): value.name
            for module in modules
            for name, value in vars(import_module(module)).items()
            if isinstance(value, Key)
        }
    )


def sources() -> Iterator[Path]:
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


def in_another_default() -> set[str]:
    return {name for key in KEYS.values() for name in re.findall(r"\$\{([^}]+)\}", key.default)}


def test_each_known_key_has_a_reader() -> None:
    known = constants(modules_of_keys())
    read = {name for path in sources() for name in keys_read(path.read_text(), known)}
    assert sorted(KEYS.keys() - read - in_another_default()) == []


def test_each_key_that_is_not_used_has_a_plain_reason_and_only_that() -> None:
    assert NOT_USED.keys().isdisjoint(KEYS)
    assert RENAMED.keys().isdisjoint(KEYS.keys() | NOT_USED.keys())
    assert set(RENAMED.values()) <= KEYS.keys() | NOT_USED.keys()
    for reason in {*NOT_USED.values(), *NOT_USED_PREFIXES.values()}:
        assert not reason.endswith("."), reason
        assert len(reason.split()) >= 4, reason
    assert {hazard.key.name for hazard in HAZARDS} <= KEYS.keys()


PLANTED = {
    "read by its module": (
        "from ha.conf.keys import cluster as keys\nconf.get(keys.ZKFC_PORT)",
        True,
    ),
    "read by another name": ("from ha.conf.keys.cluster import ZKFC_PORT as P\nconf.get(P)", True),
    "given to a function": ("from ha.conf.keys import cluster as k\nserve(port=k.ZKFC_PORT)", True),
    "looked up by its name": (
        'from ha.conf.keys import cluster as keys\nconf.raw(f"{keys.ZKFC_PORT.name}.{ns}")',
        True,
    ),
    "only imported": ("from ha.conf.keys.cluster import ZKFC_PORT", False),
    "only quoted": (
        'from ha.conf.keys import cluster as keys\nraise Bad(f"{keys.ZKFC_PORT.name} is bad")',
        False,
    ),
    "written into a file": (
        "from ha.conf.keys import cluster as keys\nsite = {keys.ZKFC_PORT.name: 1}",
        False,
    ),
    "a constant of another module": ("from mine import keys\nconf.get(keys.ZKFC_PORT)", False),
}


@pytest.mark.parametrize("case", PLANTED.values(), ids=PLANTED.keys())
def test_the_walk_finds_readers_and_nothing_else(case: tuple[str, bool]) -> None:
    text, read = case
    found = keys_read(text, constants(["ha.conf.keys.cluster"]))
    assert found == ({"dfs.ha.zkfc.port"} if read else set())


def test_every_field_of_the_client_settings_has_a_key_and_the_daemon_passes_them() -> None:
    text = (ROOT / "namenode_sim/process/client_settings.py").read_text()
    given = set(re.findall(r"^        (\w+)=", text, re.MULTILINE))
    assert given == {field.name for field in fields(Settings)}
    assert client_settings.__module__ == "namenode_sim.process.client_settings"
    callers = [
        path
        for path in sources()
        if "settings=client_settings(" in path.read_text() and "ClientService(" in path.read_text()
    ]
    assert len(callers) == 1, callers


QUOTED = re.compile(r"(?<![\w.])((?:dfs|fs|hadoop(?!\.proto\.)|ipc|io)(?:\.[a-z][a-z-]+){2,})")
TOLD = {
    "dfs.content-summary.limit",
    "dfs.corruptfilesreturned.max",
    "dfs.namenode.list.cache.pools.num.responses",
    "dfs.namenode.max-lock-hold-to-release-lease-ms",
}
"""Named to say how nnha differs, or whose default a limit is."""


def test_no_text_of_the_client_calls_sends_its_reader_to_a_key_without_effect() -> None:
    calls = (ROOT / "namenode_sim/client_protocol").rglob("*.py")
    files = (*calls, ROOT / "namenode_sim/process/client_service.py")
    named = {name for path in files for name in QUOTED.findall(path.read_text())}
    assert named - KEYS.keys() == TOLD
    assert NOT_USED.keys() >= TOLD
    assert {"dfs.namenode.fs-limits.min-block-size", "dfs.namenode.acls.enabled"} <= named


def test_the_documents_tables_are_the_products() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run: .venv/bin/python -m tests.ha.conf.configuration_page"
    assert all(page.count(f"`{name}`") == 1 for name in NOT_USED)

"""Nothing of the product is replaced behind its back: only bugs are planted, in their own files."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PLANTING = {
    "planted_beliefs.py",
    "planted_control.py",
    "planted_elector.py",
    "planted_guard.py",
    "planted_witness.py",
    "mutants.py",
}
"""A planted bug is a function of the product that is replaced: that is what these files are for."""
ROOTS = (
    "fencing",
    "ha",
    "journal",
    "namenode_sim",
    "datanode",
    "hadoop",
    "datanode",
    "hadoop",
    "spark",
    "deploy",
)
PATCHERS = {"patch", "MonkeyPatch", "monkeypatch", "setattr", "replacing"}


def _of_the_product(tree: ast.Module) -> set[str]:
    """Return the names by which a file knows anything of the product's."""
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).split(".")[0] in ROOTS
    }


def offences(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    ours = _of_the_product(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                if name in PATCHERS:
                    yield f"{node.lineno}: {name}"
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Attribute) and _root(target) in ours:
                        yield f"{node.lineno}: {ast.unparse(target)} is assigned"
            case _:
                pass


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize(
    "path",
    [one for one in sorted(HERE.glob("*.py")) if one.name not in {*PLANTING, Path(__file__).name}],
    ids=lambda one: one.name,
)
def test_a_world_replaces_nothing_of_the_product(path: Path) -> None:
    assert list(offences(path.read_text())) == []


@pytest.mark.parametrize(
    "planted",
    [
        "from unittest.mock import patch\nfrom ha.rpc.client import RpcConnection\n"
        "patch.object(RpcConnection, 'open', None)",
        "from unittest import mock\nimport ha.rpc.client\n"
        "mock.patch('ha.rpc.client.RpcConnection')",
        "from ha.rpc import client\nclient.RpcConnection = None",
        "from ha.rpc.client import RpcConnection\nRpcConnection.open = None",
        "from ha.rpc import client\nsetattr(client, 'RpcConnection', None)",
        "def test_it(monkeypatch):\n    monkeypatch.chdir('/')",
    ],
)
def test_a_planted_offender_is_found(planted: str) -> None:
    assert list(offences(planted))

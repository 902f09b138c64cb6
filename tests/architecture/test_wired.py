"""What the product always gives to a parameter with a default is given: wired.txt.

Such a default is for tests alone, and a call that loses the argument goes on without what it wires.
``NNHA_REWRITE=1`` writes the text anew, to be reviewed as a diff.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests import PACKAGES, ROOT
from tests.transitions import same_as

SOURCE = """
class Part:
    def __init__(self, one, two=2, *, access=None): ...
def f(hurry=False): ...
Part(1, 2, access=x)
f(True)
"""
SLIPS = (("2, access", "access"), (", access=x", ""), ("f(True)", "f()"))


def wired(trees: Iterable[ast.Module]) -> list[str]:
    """Return what has a default that no call takes, where one thing alone has its name."""
    defaults, calls = (
        defaultdict[str, list[ast.arguments]](list),
        defaultdict[str, list[ast.Call]](list),
    )
    methods, owners = set[str](), dict[ast.AST, str]()
    for node in (node for tree in trees for node in ast.walk(tree)):
        match node:
            case ast.ClassDef():
                owners |= dict.fromkeys(node.body, node.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef():  # which ast.walk gives after its class
                owner = owners.get(node, "")
                name = owner if owner and node.name == "__init__" else node.name
                defaults[name].append(node.args)
                methods |= {name} if owner else set()
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                calls[name].append(node)
            case _:
                pass
    return sorted(
        f"{name}: {parameter}"
        for name, (given, *others) in defaults.items()
        if calls[name] and not others
        for parameter, place in _optional(given, is_method=name in methods)
        if all(_gives(call, parameter, place) for call in calls[name])
    )


def _optional(given: ast.arguments, *, is_method: bool) -> Iterator[tuple[str, int | None]]:
    """Yield the parameters with a default, and the places of those that can be given by place."""
    placed = [*given.posonlyargs, *given.args]
    for place in range(len(placed) - len(given.defaults), len(placed)):
        yield placed[place].arg, place - is_method
    for named, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default is not None:
            yield named.arg, None


def _gives(call: ast.Call, parameter: str, place: int | None) -> bool:
    by_place = place is not None and len(call.args) > place
    return by_place or any(one.arg in {parameter, None} for one in call.keywords)


def test_what_is_wired_is_what_was_reviewed() -> None:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    trees = (ast.parse(path.read_text("utf-8")) for path in paths if "_pb2" not in path.name)
    same_as(Path(__file__).with_name("wired.txt"), wired(trees))


@pytest.mark.parametrize(("old", "new"), SLIPS)
def test_a_lost_argument_changes_the_text(old: str, new: str) -> None:
    before, after = (wired([ast.parse(text)]) for text in (SOURCE, SOURCE.replace(old, new)))
    assert before == ["Part: access", "Part: two", "f: hurry"]
    assert len(after) == 2

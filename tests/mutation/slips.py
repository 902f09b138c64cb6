"""All slips of one source file, and how one takes the place of the product's code."""

import ast
import copy
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from tests import ROOT
from tests.mutation.alternatives import alternatives, skipped
from tests.mutation.confusions import Scope, confusions, scope_of
from tests.mutation.obligations import fresh_names, handlers, owed_in, too_soon

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SHOWN: Final = 110
_MOST_ENTRIES: Final = 16
_SETTER: Final = ".setter"
"""Behind the name of a property, which it shares with what reads the property."""


@dataclass(frozen=True, slots=True)
class Slip:
    """One change of one function, or of one constant of a module.

    Attributes:
        path: of the file, from the root.
        scope: the qualified name of the function, or the name of the constant.
        line: where it is.
        block: the first line of the statements that it is among: they must run, or nothing can
            notice it.
        before: the piece of syntax, as text.
        after: what takes its place.
        number: of those in one scope with the same two texts, from 1.
        confused: one thing is taken for another of its kind; else something is left out or turned.
        owed: it is where something fails, gives back or makes durable, or follows an await.
    """

    path: str
    scope: str
    line: int
    block: int
    before: str
    after: str
    number: int
    place: "Place"
    confused: bool = False
    owed: bool = False

    @property
    def name(self) -> str:
        """What a list calls it by; the line is not in it, so that it outlives other changes."""
        more = f" #{self.number}" if self.number > 1 else ""
        return f"{self.path}::{self.scope}: {self.before} -> {self.after}{more}"

    def diff(self) -> str:
        """Return for people where it is, and what changes."""
        where = f"{self.path}:{self.line} {self.scope}"
        return f"{where}\n    - {self.before}\n    + {self.after}"


@dataclass(frozen=True, slots=True)
class Place:
    """A field of a node of a module's tree, and what may stand there instead."""

    tree: ast.Module
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST | list[ast.stmt] | None

    @contextmanager
    def changed(self) -> Iterator[ast.Module]:
        """Yield the tree with the slip in it, and put it back afterwards."""
        old = getattr(self.parent, self.field)
        if self.index is None:
            put: Any = self.new
        else:
            put = [*old[: self.index], *([self.new] if self.new else []), *old[self.index + 1 :]]
        setattr(self.parent, self.field, put)
        try:
            yield self.tree
        finally:
            setattr(self.parent, self.field, old)


def slips_of(path: str) -> tuple[Slip, ...]:
    return slips_in(path, (ROOT / path).read_text(encoding="utf-8"))


def slips_in(path: str, source: str) -> tuple[Slip, ...]:
    """Return the slips of this text, taken for the file at ``path``."""
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    found = []
    for slip in _all(path, tree):
        if slip.before == slip.after:
            continue
        seen[slip.name] += 1
        number = seen[slip.name]
        found.append(slip if number == 1 else _numbered(slip, number))
    return tuple(found)


def _numbered(slip: Slip, number: int) -> Slip:
    return replace(slip, number=number)


def _all(path: str, tree: ast.Module) -> Iterator[Slip]:
    fresh = fresh_names(tree)
    for name, function in functions(tree):
        walk = _Walk(path, name, tree, scope_of(tree, function), owed_in(function))
        first = function.body[0].lineno
        for index, statement in enumerate(function.body):
            yield from walk.below(function, "body", index, statement, first)
        for swap in too_soon(function, fresh):
            place = Place(tree, swap.parent, swap.field, None, swap.statements)
            texts = (swap.before, swap.after)
            yield Slip(path, name, swap.line, swap.block, *texts, 1, place, owed=True)
    for node in tree.body:
        yield from _of_constant(path, tree, node)


def _slip(
    path: str,
    scope: str,
    line: int,
    block: int,
    place: Place,
    before: ast.AST,
    *,
    confused: bool = False,
    owed: bool = False,
) -> Slip:
    after = _text(place.new) if isinstance(place.new, ast.AST) else "nothing"
    return Slip(path, scope, line, block, _text(before), after, 1, place, confused, owed)


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield those of the module and of its classes; what is defined inside one belongs to it."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function) and not _is_stub(inner):
                    setter = _SETTER if _is_setter(inner) else ""
                    yield f"{node.name}.{inner.name}{setter}", inner


def _is_setter(function: Function) -> bool:
    named = [each.attr for each in function.decorator_list if isinstance(each, ast.Attribute)]
    return "setter" in named


def _is_stub(function: Function) -> bool:
    return len(function.body) == 1 and isinstance(function.body[0], ast.Expr)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Through one function of a file."""

    path: str
    name: str
    tree: ast.Module
    scope: Scope
    owed: frozenset[int]

    def below(
        self, parent: ast.AST, field: str, index: int | None, node: ast.AST, block: int
    ) -> Iterator[Slip]:
        left_out = skipped(node, parent, field)
        if left_out and not isinstance(node, ast.Raise):
            return
        line, owed = getattr(node, "lineno", block), id(node) in self.owed
        made = (self.path, self.name, line, block)
        for new in confusions(node, parent, self.scope):
            place = Place(self.tree, parent, field, index, new)
            yield _slip(*made, place, node, confused=True)
        for new in handlers(node, in_handler=owed):
            yield _slip(*made, Place(self.tree, parent, field, index, new), node, owed=True)
        if left_out:
            return
        for other in alternatives(node, parent, field):
            yield _slip(*made, Place(self.tree, parent, field, index, other), node, owed=owed)
        yield from self._inside(node, block)

    def _inside(self, node: ast.AST, block: int) -> Iterator[Slip]:
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                yield from self.below(node, name, None, value, block)
            elif isinstance(value, list):
                inner = _first_line(value, block)
                for number, each in enumerate(value):
                    if isinstance(each, ast.AST):
                        yield from self.below(node, name, number, each, inner)


def _first_line(nodes: list[Any], otherwise: int) -> int:
    return nodes[0].lineno if nodes and isinstance(nodes[0], ast.stmt) else otherwise


def _of_constant(path: str, tree: ast.Module, node: ast.stmt) -> Iterator[Slip]:
    """Yield a number that is one more, and a table that lacks an entry."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            pass
        case _:
            return
    for new in _other_values(value):
        yield _slip(path, name, node.lineno, 0, Place(tree, node, "value", None, new), value)


def _other_values(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int(number)):
            yield ast.Constant(number + 1)
        case ast.Constant(value=float(number)):
            yield ast.Constant(number * 2)
        case ast.Dict(keys=keys, values=values) if len(keys) <= _MOST_ENTRIES:
            for gone in range(len(keys)):
                yield ast.Dict(
                    [key for number, key in enumerate(keys) if number != gone],
                    [each for number, each in enumerate(values) if number != gone],
                )
        case ast.Call(func=ast.Name(id="frozenset") as func, args=[ast.Set(elts=elts)]):
            for gone in range(len(elts)):
                rest = [each for number, each in enumerate(elts) if number != gone]
                yield ast.Call(func, [ast.Set(rest)] if rest else [], [])
        case _:
            return


def _text(node: ast.AST) -> str:
    """Return the node in one line; of a compound statement its first."""
    if isinstance(node, ast.match_case):
        return f"case {ast.unparse(node.pattern)}: ..."
    if isinstance(node, ast.ExceptHandler):
        return f"except {ast.unparse(node.type)}: ..." if node.type else "except: ..."
    return " ".join(ast.unparse(node).split())


# ---- in the place of the product's code ----------------------------------------------------


def plant(slip: Slip) -> None:
    """Put it in the place of the product's code, for the rest of this process."""
    module = module_of(slip.path)
    with slip.place.changed() as tree:
        changed = ast.fix_missing_locations(copy.deepcopy(tree))
    if slip.block == 0:
        _plant_constant(module, slip.scope, changed)
        return
    function = live(module, slip.scope)
    code = code_of(compile(changed, str(ROOT / slip.path), "exec"), slip.scope)
    function.__code__ = code


def _plant_constant(module: ModuleType, name: str, changed: ast.Module) -> None:
    for node in changed.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == name:
            value = getattr(node, "value")  # noqa: B009 - of two kinds of statements
            new = eval(compile(ast.Expression(value), "slip", "eval"), vars(module))
            _replace_everywhere(name, getattr(module, name), new)


def _replace_everywhere(name: str, old: object, new: object) -> None:
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)


def module_of(path: str) -> ModuleType:
    return import_module(path.removesuffix(".py").replace("/", "."))


def live(module: ModuleType, scope: str) -> FunctionType:
    """Return the function that the product calls by this name, below what wraps it."""
    found: Any = module
    for part in scope.removesuffix(_SETTER).split("."):
        found = vars(found)[part]
    if scope.endswith(_SETTER):
        found = found.fset
    found = getattr(found, "fget", None) or getattr(found, "__func__", None) or found
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        found = getattr(found, "callback", None) or found.__wrapped__  # of a command of click
    return found


def code_of(module: CodeType, scope: str) -> CodeType:
    name = scope.removesuffix(_SETTER)
    found = [code for code in _codes(module) if code.co_qualname == name]
    if not found:
        raise LookupError(f"{scope} is not in {module.co_filename}")
    return found[-1] if scope.endswith(_SETTER) else found[0]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


@cache
def short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."

"""One thing taken for another of its kind: a field, a parameter, a sign, an order, an error."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from tests import ROOT
from tests.mutation.alternatives import called

Function = ast.FunctionDef | ast.AsyncFunctionDef
_PACKAGES: Final = ("fencing", "ha", "journal", "namenode_sim", "datanode", "files", "hadoop")
_MOST: Final = 2
"""Of the fields that one may be taken for."""
_ORDERLESS: Final = frozenset({"min", "max"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What one function may confuse.

    Attributes:
        parameters: of each, those of the same type.
        fields: of each field that its file uses, those of the same type and class that it uses.
        errors: of each error that its file imports, another one.
    """

    parameters: Mapping[str, tuple[str, ...]]
    fields: Mapping[str, tuple[str, ...]]
    errors: Mapping[str, str]


def scope_of(tree: ast.Module, function: Function) -> Scope:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    types = {one.arg: ast.unparse(one.annotation) for one in every if one.annotation}
    parameters = {
        name: tuple(other for other in types if other != name and types[other] == types[name])
        for name in types
    }
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    fields = {
        name: tuple(other for other in _siblings().get(name, ()) if other in used)[:_MOST]
        for name in used
    }
    return Scope(parameters, fields, _errors(tree))


def confusions(node: ast.AST, parent: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield each thing that may have been written here for another of its kind."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            for other in scope.parameters.get(name, ()):
                yield ast.Name(other, ast.Load())
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()) if called(parent) != name:
            for other in scope.fields.get(name, ()):
                yield ast.Attribute(value, other, ast.Load())
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant() as right):
            yield ast.BinOp(left, ast.Sub() if isinstance(sign, ast.Add) else ast.Add(), right)
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and value > 0:
            yield ast.Constant(value - 1)
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name)) as made) if name in scope.errors:
            error = ast.Name(scope.errors[name], ast.Load())
            yield ast.Raise(ast.Call(error, made.args, made.keywords), node.cause)
        case _:
            yield from _turned(node, scope)


def _turned(node: ast.AST, scope: Scope) -> Iterator[ast.AST]:
    """Yield two arguments, or two effects, in the other order."""
    match node:
        case ast.Call(func=func, args=[one, other], keywords=[]) if _alike(one, other, scope):
            if called(node) not in _ORDERLESS:
                yield ast.Call(func, [other, one], [])
        case ast.Tuple(elts=[ast.Call() as first, ast.Call() as then], ctx=ast.Load()):
            yield ast.Tuple([then, first], ast.Load())
        case _:
            return


def _alike(one: ast.expr, other: ast.expr, scope: Scope) -> bool:
    match one, other:
        case ast.Attribute(attr=name), ast.Attribute(attr=then):
            return then in scope.fields.get(name, ())
        case ast.Name(id=name), ast.Name(id=then):
            return then in scope.parameters.get(name, ())
        case _:
            return False


@cache
def _siblings() -> Mapping[str, tuple[str, ...]]:
    """Return for each field of a class those of the same type, the nearest first."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    _add_siblings(node, found)
    return {name: tuple(sorted(near, key=near.__getitem__)) for name, near in found.items()}


def _add_siblings(node: ast.ClassDef, found: defaultdict[str, dict[str, int]]) -> None:
    fields = [
        (each.target.id, ast.unparse(each.annotation))
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    for at, (name, kind) in enumerate(fields):
        for then, (other, its_kind) in enumerate(fields):
            if other != name and its_kind == kind:
                distance = abs(at - then)
                found[name][other] = min(distance, found[name].get(other, distance))


def _errors(tree: ast.Module) -> Mapping[str, str]:
    names = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("errors")
        for alias in node.names
        if alias.name[0].isupper()
    ]
    return {name: names[(at + 1) % len(names)] for at, name in enumerate(names) if len(names) > 1}

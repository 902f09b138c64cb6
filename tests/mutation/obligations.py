"""What is owed where something fails, and between an await and the use of what it gave."""

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.mutation.alternatives import called

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DUTIES: Final = frozenset(
    {"abort", "aclose", "cancel", "close", "clear", "discard", "drop", "forget", "fsync", "kill"}
    | {"pop", "release", "remove", "rename", "replace", "restore", "rollback", "set_exception"}
    | {"shutdown", "stop", "sync", "sync_directory", "unlink"}
)
"""Calls that give back, end, or make durable."""
_WIDEST: Final = "Exception"
_KEPT: Final = "_before_the_await"
"""Holds what was read too soon."""
_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Swap:
    """One list of statements that takes the place of another.

    Attributes:
        parent: the node whose ``field`` holds the statements.
        before: what the list of names shows.
        after: what the list of names shows in its place.
    """

    parent: ast.AST
    field: str
    line: int
    block: int
    before: str
    after: str
    statements: list[ast.stmt]


def owed_in(function: Function) -> frozenset[int]:
    """Return the ids of the nodes that are duties.

    They are the statements of handlers and of ``finally``, calls that give back or make durable,
    and the conditions of guards that follow an await.
    """
    found: set[int] = set()
    for node in ast.walk(function):
        match node:
            case ast.ExceptHandler(body=body) | ast.Try(finalbody=[_, *_] as body):
                statements = [each for each in body if not ast.unparse(each).startswith("log.")]
                found |= {id(inner) for each in statements for inner in ast.walk(each)}
            case ast.Expr(value=ast.Await(value=call)) | ast.Expr(value=call):
                if called(call) in _DUTIES:
                    found.add(id(node))
            case ast.AugAssign(op=ast.Sub()):
                found.add(id(node))
            case _:
                pass
    for _, _, listed, at, _ in _after_awaits(function):
        statement = listed[at]
        if isinstance(statement, ast.If) and _is_guard(statement):
            found.add(id(statement.test))
    return frozenset(found)


def handlers(node: ast.AST, *, in_handler: bool) -> Iterator[ast.AST]:
    """Yield a handler that takes all errors, and a statement that raises nothing."""
    match node:
        case ast.ExceptHandler(type=ast.expr() as taken) if ast.unparse(taken) != _WIDEST:
            if ast.unparse(taken) != "BaseException":
                yield ast.ExceptHandler(ast.Name(_WIDEST, ast.Load()), node.name, node.body)
        case ast.Call(func=ast.Name(id="suppress") as func, args=[*errors]):
            if [ast.unparse(each) for each in errors] != [_WIDEST]:
                yield ast.Call(func, [ast.Name(_WIDEST, ast.Load())], [])
        case ast.Raise() if in_handler:
            yield ast.Pass()
        case _:
            return


def fresh_names(tree: ast.Module) -> frozenset[str]:
    """Return the attributes whose value may be another after an await.

    They are those that this file sets outside of ``__init__``, and its properties.
    """
    found: set[str] = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        if any(ast.unparse(each) == "property" for each in function.decorator_list):
            found.add(function.name)
        if function.name == "__init__":
            continue
        found |= {
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
    return frozenset(found)


def too_soon(function: Function, fresh: frozenset[str]) -> Iterator[Swap]:
    """Yield each read that follows an await, and is done before it instead.

    A guard's condition and the value of an assignment are read as a whole, where nothing in them
    comes from the await; in another statement one attribute is.
    """
    for parent, field, statements, at, began in _after_awaits(function):
        if began < 0:
            continue
        statement = statements[at]
        for read in _reads(statement, _bound(statements[began:at]), fresh):
            kept = ast.Assign([ast.Name(_KEPT, ast.Store())], copy.deepcopy(read))
            changed = [
                *statements[:began],
                ast.copy_location(kept, statements[began]),
                *statements[began:at],
                _Replaced(ast.unparse(read)).of(statement),
                *statements[at + 1 :],
            ]
            after = f"{ast.unparse(read)}, read before the await"
            block, before = statements[0].lineno, _shown(statement)
            yield Swap(parent, field, statement.lineno, block, before, after, changed)


def _after_awaits(
    function: Function,
) -> Iterator[tuple[ast.AST, str, list[ast.stmt], int, int]]:
    """Yield the statements before which, in the same list, something is awaited.

    Yields the parent, the field, the list, the index, and the index of the last await before it;
    that is -1 where only the ``async with`` or ``async for`` around the list awaits.
    """
    for parent in _same_function(function):
        for field, value in ast.iter_fields(parent):
            if not (isinstance(value, list) and value and isinstance(value[0], ast.stmt)):
                continue
            around = isinstance(parent, ast.AsyncWith | ast.AsyncFor) and field == "body"
            last = -1
            for at, statement in enumerate(value):
                if last >= 0 or around:
                    yield parent, field, value, at, last
                last = at if _awaits(statement) else last


def _awaits(statement: ast.AST) -> bool:
    waiting = ast.Await | ast.AsyncWith | ast.AsyncFor
    return any(isinstance(node, waiting) for node in _same_function(statement))


def _same_function(top: ast.AST) -> Iterator[ast.AST]:
    yield top
    for node in ast.iter_child_nodes(top):
        if not isinstance(node, _INNER):
            yield from _same_function(node)


def _is_guard(statement: ast.If) -> bool:
    leaves = ast.Return | ast.Raise | ast.Continue | ast.Break
    return not statement.orelse and isinstance(statement.body[-1], leaves)


def _bound(statements: Sequence[ast.stmt]) -> frozenset[str]:
    nodes = (node for each in statements for node in ast.walk(each))
    return frozenset(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _reads(statement: ast.stmt, bound: frozenset[str], fresh: frozenset[str]) -> Iterator[ast.expr]:
    whole: ast.expr | None = None
    match statement:
        case ast.If(test=test) | ast.Assert(test=test):
            whole, header = test, test
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            whole, header = value, value
        case ast.Match(subject=header) | ast.For(iter=header):
            pass
        case ast.Expr(value=header) | ast.Return(value=ast.expr() as header):
            pass
        case _:
            return
    if whole is not None and not _awaits(whole) and _is_reading(whole, bound, fresh):
        yield whole
        return
    seen: set[str] = set()
    for node in _same_function(header):
        if not isinstance(node, ast.Attribute) or node.attr not in fresh:
            continue
        text = ast.unparse(node)
        if text not in seen and not _names(node) & bound and not _awaits(node):
            seen.add(text)
            yield node


def _is_reading(value: ast.expr, bound: frozenset[str], fresh: frozenset[str]) -> bool:
    inside = list(ast.walk(value))
    reads = any(isinstance(node, ast.Attribute) and node.attr in fresh for node in inside)
    asks = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _asks(node.func)
        for node in inside
    )
    return (reads or asks) and not _names(value) & bound


def _asks(function: ast.Attribute) -> bool:
    """Return whether the call of it may give another answer later."""
    return function.attr[0].islower() and function.attr != "get_running_loop"


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _shown(statement: ast.stmt) -> str:
    return " ".join(ast.unparse(statement).splitlines()[0].split())


class _Replaced(ast.NodeTransformer):
    """Puts the value that was kept in the place of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, statement: ast.stmt) -> ast.stmt:
        changed = self.visit(copy.deepcopy(statement))
        assert isinstance(changed, ast.stmt)
        return changed

    def visit(self, node: ast.AST) -> ast.AST:
        is_read = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if isinstance(node, ast.expr) and is_read and ast.unparse(node) == self._text:
            return ast.copy_location(ast.Name(_KEPT, ast.Load()), node)
        visited = self.generic_visit(node)
        assert isinstance(visited, ast.AST)
        return visited

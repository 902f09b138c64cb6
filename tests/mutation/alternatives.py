"""What somebody may have written by mistake in the place of one piece of syntax."""

import ast
from collections.abc import Iterator
from typing import Final

_BOUNDARY: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_NEGATED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SWAPPED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ENSURES: Final = frozenset({"ensure"})
"""Their first argument is a condition; what follows is a message for people."""


def alternatives(  # noqa: C901, PLR0912 - one case for each kind of syntax
    node: ast.AST, parent: ast.AST, field: str
) -> Iterator[ast.AST | None]:
    """Yield each piece of syntax that may stand here instead; None: it is left out.

    A condition is made true and made false.  Its negation is not tried as well: where that would be
    noticed, one of the two is.
    """
    if is_condition(parent, field):
        yield from (ast.Constant(value) for value in _forced(node, parent))
    match node:
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for index in range(len(values)):
                rest = [*values[:index], *values[index + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if not is_condition(parent, field):
            yield operand
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            if type(op) in _BOUNDARY:
                yield ast.Compare(left, [_BOUNDARY[type(op)]()], comparators)
            elif not is_condition(parent, field):
                yield ast.Compare(left, [_NEGATED[type(op)]()], comparators)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.BinOp(left=left) if not _is_text(node):
            yield left
        case ast.Call():
            yield from _calls(node)
        case ast.Tuple(ctx=ast.Load()) | ast.Set() if _is_list_of_things(node, parent, field):
            yield from _one_fewer(node)
        case ast.MatchOr(patterns=patterns):
            for index in range(len(patterns)):
                rest_of = [*patterns[:index], *patterns[index + 1 :]]
                yield rest_of[0] if len(rest_of) == 1 else ast.MatchOr(rest_of)
        case ast.match_case() if isinstance(parent, ast.Match) and _falls_through(parent, node):
            yield None
        case ast.stmt() if _is_left_out(node):
            yield ast.Pass()
        case _:
            return


def is_condition(parent: ast.AST, field: str) -> bool:
    """Return whether what stands there only decides which way to go."""
    match parent:
        case ast.If() | ast.IfExp() | ast.While():
            return field == "test"
        case ast.comprehension():
            return field == "ifs"
        case ast.match_case():
            return field == "guard"
        case ast.Call():
            return field == "args" and called(parent) in _ENSURES
        case _:
            return False


def called(node: ast.AST) -> str:
    """Return the bare name of what is called; empty where it is no call of a name."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def skipped(node: ast.AST, parent: ast.AST, field: str) -> bool:
    """Return whether this is a message for people, or read by the type checker alone."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Assert():
            return not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef)
        case ast.Call():
            return called(node) in {"assert_never", "cast", "TypeVar"}
        case _:
            pass
    if called(parent) in _ENSURES and field == "args":
        assert isinstance(parent, ast.Call)
        return node is not parent.args[0]
    return field in {"annotation", "returns", "decorator_list", "args_annotation", "type_params"}


def _forced(node: ast.AST, parent: ast.AST) -> tuple[bool, ...]:
    if isinstance(node, ast.Constant):
        return ()
    if isinstance(parent, ast.While):
        return (False,)
    return (True,) if isinstance(parent, ast.Call | ast.comprehension) else (True, False)


def _calls(node: ast.Call) -> Iterator[ast.AST | None]:
    name = called(node)
    if isinstance(node.func, ast.Name) and name in _SWAPPED:
        yield ast.Call(ast.Name(_SWAPPED[name], ast.Load()), node.args, node.keywords)
        if len(node.args) > 1 and name in {"min", "max"}:
            for index in range(len(node.args)):
                rest = [*node.args[:index], *node.args[index + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.Call(node.func, rest, node.keywords)
    if name == "replace":
        for index in range(len(node.keywords)):
            fewer = [*node.keywords[:index], *node.keywords[index + 1 :]]
            yield ast.Call(node.func, node.args, fewer)


def _one_fewer(node: ast.Tuple | ast.Set) -> Iterator[ast.AST]:
    for index in range(len(node.elts)):
        rest = [*node.elts[:index], *node.elts[index + 1 :]]
        if isinstance(node, ast.Tuple):
            yield ast.Tuple(rest, ast.Load())
        elif rest:
            yield ast.Set(rest)


def _is_list_of_things(node: ast.Tuple | ast.Set, parent: ast.AST, field: str) -> bool:
    """Return False where the values have each their own place."""
    match parent:
        case ast.Subscript() | ast.Match() | ast.Return() | ast.Dict() | ast.For():
            told = any(isinstance(each, ast.Starred | ast.Call) for each in node.elts)
            return isinstance(parent, ast.Return) and told
        case ast.Assign(targets=[ast.Tuple(), *_]) | ast.comprehension():
            return False
        case ast.Tuple() | ast.Lambda() | ast.GeneratorExp() | ast.ListComp():
            return False
        case ast.Call():
            return field == "args" and called(parent) not in {"add", "append", "isinstance"}
        case _:
            return True


def _falls_through(parent: ast.Match, node: ast.match_case) -> bool:
    match parent.cases[-1].pattern:
        case ast.MatchAs(pattern=None, name=None):
            return node is not parent.cases[-1]
        case _:
            return False


def _is_left_out(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call() as call):
            return called(call) != "assert_never"
        case ast.Expr(value=ast.Await()) | ast.AugAssign() | ast.Delete():
            return True
        case ast.Break() | ast.Continue():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            # What is already bound, and bound anew to something made of it.
            return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))
        case _:
            return False


def _is_text(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in ast.walk(node)
    )

"""What the product's source shows to operators: log lines, metrics, exit codes, fields of JSON.

Each is read as text off the syntax tree, grouped by file, so that one that is lost or changed shows
in a diff.  Values of log lines that are no constants are left out: they may be computed otherwise.
"""

import ast
import gc
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from tests import PACKAGES, ROOT

Source = tuple[str, ast.Module]
"""The name of a file, below the checkout, and what is in it."""
Made = Mapping[str, Collection[str]]
"""The constants of one kind, by their modules."""

WORDS: Final = re.compile(
    r"\blog\.|logger|Step\(|nnha_|metric|\.(labels|inc)\(|exit|Exit|end_code|daemon\.process"
    r"|-> (dict|Mapping)\[str, (object|Any|Fact)\]|\bJson\b|Bean|Facts\b"
)
"""One of these is in each file that logs, counts, ends a process or makes a document."""
DOCUMENT: Final = re.compile(r"(dict|Mapping)\[str, (object|Any|Fact)\]|\b(Json|Bean|Facts)\b")
"""What a function returns that makes one."""
LEVELS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
LOGGED_LATER: Final = frozenset({"step", "_step", "Step", "_wait", "_retry_later"})
"""Functions that take an event, which their callers log."""
AS_GIVEN: Final = "as given:"
"""The level of what a function logs with a method of the log that it was given."""
EVENT: Final = re.compile(r"[a-z_]+\.[a-z_.]+")
LOGGED: Final = re.compile(r"(?:^|[\w:] |')(?!decided\.said)([a-z_]+\.[a-z_.]+)(?=$|')")
"""In a row that shows a line, before its fields; one event is a variable's."""
METRIC: Final = re.compile(r"nnha_\w+")
EXITS: Final = frozenset({"exit", "_exit", "SystemExit", "ExitWith", "Exit"})
CODES: Final = frozenset({"ha.console.exit_codes", "ha.daemon.end_code", "ha.daemon.process"})


@cache
def product() -> tuple[Source, ...]:
    """Return the files of the product that may show something, but those that protoc writes."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    texts = ((path, path.read_text("utf-8")) for path in paths if "_pb2" not in path.name)
    gc.disable()  # it would look through all trees again and again, for two thirds of the time
    try:
        return tuple(
            (path.relative_to(ROOT).as_posix(), ast.parse(text))
            for path, text in texts
            if WORDS.search(text)
        )
    finally:
        gc.enable()


def log_lines(sources: Iterable[Source]) -> list[str]:
    """Return each call that logs: its level, its event and its fields."""
    return _by_file(sources, lambda _, tree: sorted(_logged(tree)))


def names(log: Iterable[str], counted: Iterable[str]) -> set[str]:
    """Return the events and the metrics that stand in these two texts."""
    rows = (row.strip().partition(": ")[0] for row in log if row.startswith(" "))
    found = {event for row in rows for event in LOGGED.findall(row)}
    return found | {row.split()[0] for row in counted if row.startswith("    nnha_")}


def metrics(sources: Iterable[Source]) -> list[str]:
    """Return each metric with its type and labels."""
    return _by_file(sources, lambda _, tree: list(_defined(tree)))


def exit_codes(sources: Iterable[Source]) -> list[str]:
    """Return the exit codes, and each function with those that it names, in their order."""
    sources = tuple(sources)
    numbers = _made(sources, _is_code)
    codes: dict[str, set[str]] = {module: set(numbers.get(module, ())) for module in CODES}
    for name, tree in sources:
        names = _names_of(name, tree, numbers)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_exit(node):
                for one in filter(None, map(_dotted, ast.walk(node.args[0]))):
                    if one in names:
                        module, code = names[one]
                        codes.setdefault(module, set()).add(code)
    return _by_file(sources, lambda name, tree: list(_ends(name, tree, codes)))


def fields(sources: Iterable[Source]) -> list[str]:
    """Return the fields of the JSON of pages and commands, by the functions that make it."""
    return _by_file(sources, lambda _, tree: list(_fields(tree)))


def _by_file(sources: Iterable[Source], rows: Callable[[str, ast.Module], list[str]]) -> list[str]:
    lines = []
    for name, tree in sources:
        if found := rows(name, tree):
            lines += [name, *(f"    {row}" for row in found)]
    return lines


def _logged(tree: ast.Module) -> Iterator[str]:
    aliases = dict(_level_aliases(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(name), args=[event, *_]) if name in aliases:
                if aliases[name] != AS_GIVEN or isinstance(event, ast.JoinedStr):
                    yield f"{aliases[name]} {_said(node)}"
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)) if name in LOGGED_LATER:
                if any(map(_event, node.args)):
                    yield f"{name} {_said(node)}"
            case ast.Call(func=function) if _levels(function):
                yield f"{_level(function)} {_said(node)}"
            case ast.Call(args=arguments):  # a method of the log that is given away
                for given in arguments:
                    if isinstance(given, ast.Attribute) and _levels(given):
                        yield f"{_level(given)} in {ast.unparse(node)}"
            case _:
                pass


def _level_aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value) if _levels(value):
                yield name, _level(value)
            case ast.arg(arg="tell", annotation=ast.Subscript()):
                yield "tell", AS_GIVEN
            case _:
                pass


def _levels(node: ast.expr) -> bool:
    """Return whether it is a method of the log, or a choice of several."""
    match node:
        case ast.IfExp(body=body, orelse=otherwise):
            return _levels(body) and _levels(otherwise)
        case ast.Attribute(value=owner, attr=level) if level in LEVELS:
            return ast.unparse(owner) in ("log", "structlog.get_logger()")
        case _:
            return False


def _level(node: ast.expr) -> str:
    return re.sub(r"(structlog\.get_logger\(\)|\blog)\.", "", ast.unparse(node))


def _event(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(str(event)) if EVENT.fullmatch(event):
            return event
        case _:
            return None


def _said(call: ast.Call) -> str:
    """Return the event and, sorted, the names of the fields; of constants the value, too."""
    event = next(filter(None, map(_event, call.args)), None) or ast.unparse(call.args[0])
    fields = [_field(one.arg, one.value) for one in call.keywords]
    for given in call.args:
        if isinstance(given, ast.Dict):
            fields += [
                _field(None if key is None else str(ast.literal_eval(key)), value)
                for key, value in zip(given.keys, given.values, strict=True)
            ]
    return f"{event}: {', '.join(sorted(fields))}".rstrip(": ")


def _field(name: str | None, value: ast.expr) -> str:
    if name is None:
        return f"**{ast.unparse(value)}"
    return f"{name}={value.value!r}" if isinstance(value, ast.Constant) else name


def _metric(call: ast.Call) -> str | None:
    """Return the name of the metric that a call makes."""
    match call.args:
        case [ast.Constant(str(name)), *_] if METRIC.fullmatch(name):
            return name
        case _:
            return None


def _defined(tree: ast.Module) -> Iterator[str]:
    constants = {
        target.id: value
        for target, value in _assigned(tree)
        if isinstance(value, ast.Tuple | ast.List)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _metric(node)) is not None:
            given = [*node.args[2:], *(one.value for one in node.keywords)]
            shown = [_label_text(one, constants) for one in given]
            yield " ".join([name, ast.unparse(node.func).removeprefix("self."), *shown])


def _label_text(node: ast.expr, constants: Mapping[str, ast.expr]) -> str:
    match node:
        case ast.Name(name) if name in constants:
            return _label_text(constants[name], constants)
        case ast.Tuple(parts) | ast.List(parts):
            return f"[{', '.join(_label_text(one, constants) for one in parts)}]"
        case ast.Constant(value):
            return str(value)
        case ast.Starred(part):
            return _label_text(part, constants)[1:-1]
        case _:
            return ast.unparse(node)


def _assigned(tree: ast.Module) -> Iterator[tuple[ast.Name, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=value):
                yield target, value
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                yield target, value
            case _:
                pass


def _made(sources: Iterable[Source], wanted: Callable[[ast.expr], bool]) -> Made:
    """Return each module's constants with such a value."""
    return {
        _module(name): {target.id for target, value in _assigned(tree) if wanted(value)}
        for name, tree in sources
    }


def _dotted(node: ast.AST) -> str | None:
    """Return a name or an attribute of a name, as it is written."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value=ast.Name(owner), attr=name):
            return f"{owner}.{name}"
        case _:
            return None


def _module(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _names_of(name: str, tree: ast.Module, made: Made) -> dict[str, tuple[str, str]]:
    """Return how a file writes these constants, with the module and the name of each."""
    own = _module(name)
    found = {one: (own, one) for one in made.get(own, ())}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                here = alias.asname or alias.name
                if alias.name in made.get(node.module or "", ()):
                    found[here] = (node.module or "", alias.name)
                module = f"{node.module}.{alias.name}"
                found |= {f"{here}.{one}": (module, one) for one in made.get(module, ())}
    return found


def _is_code(value: ast.expr) -> bool:
    match value:
        case ast.Constant(int(number)):
            return not isinstance(number, bool) and 0 <= number <= 255
        case ast.Attribute(value=ast.Name("exit_codes")):
            return True
        case _:
            return False


def _fields(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
            continue
        if DOCUMENT.search(ast.unparse(node.returns)):
            made = [one for one in ast.walk(node) if isinstance(one, ast.Dict)]
            if names := [name for one in made for name in _names_in(one)]:
                yield f"{node.name}: {', '.join(names)}"


def _names_in(made: ast.Dict) -> Iterator[str]:
    for key, value in zip(made.keys, made.values, strict=True):
        match key:
            case ast.Constant(str(name)):
                yield name
            case None:
                yield f"**{ast.unparse(value)}"
            case _:
                yield f"[{ast.unparse(key)}]"


def _ends(name: str, tree: ast.Module, codes: Made) -> Iterator[str]:
    names = _names_of(name, tree, codes)
    for target, value in _assigned(tree):
        if target.id in codes.get(_module(name), ()):
            yield f"{target.id} = {ast.unparse(value)}"
    ends: dict[str, list[str]] = {}
    for where, what in _ends_within(tree, "", names):
        ends.setdefault(where, []).append(what)
    yield from (f"{where or 'module'}: {', '.join(whats)}" for where, whats in ends.items())


def _ends_within(node: ast.AST, where: str, names: Container[str]) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _ends_within(child, f"{where}.{child.name}".lstrip("."), names)
            case ast.Call() if _is_exit(child):
                yield where, ast.unparse(ast.Call(child.func, child.args[:1], []))
            case ast.Name(ctx=ast.Load()) | ast.Attribute() if _dotted(child) in names:
                yield where, ast.unparse(child)
            case _:
                yield from _ends_within(child, where, names)


def _is_exit(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=[_, *_]):
            return name in EXITS
        case _:
            return False

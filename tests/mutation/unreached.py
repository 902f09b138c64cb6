"""The branches that no simulated world runs, each with its reason."""

import ast
from collections.abc import Mapping
from functools import cache

from tests import ROOT
from tests.mutation.explained import reasons_in
from tests.mutation.reach import Block
from tests.mutation.slips import functions


def unreached() -> Mapping[str, str]:
    return reasons_in("unreached.json")


def name_of(block: Block) -> str:
    """Return its file, its function, and its first line, which the function may have twice."""
    lines, found = _parsed(block.path)
    inside = [name for name, first, last in found if first <= block.line <= last]
    what = f"{block.kind} of: " if block.kind else ""
    return f"{block.path}::{inside[-1]}: {what}{lines[block.line - 1].strip()}"


@cache
def _parsed(path: str) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the lines of a file, and its functions, from outer to inner ones."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = functions(ast.parse(text))
    ranges = [(name, each.lineno, each.end_lineno or each.lineno) for name, each in found]
    return text.splitlines(), sorted(ranges, key=lambda of: (of[1], -of[2]))

"""Which branches of the cores run: every block of their functions reports when it is entered.

Only the cores pay for it; nothing else of the product or the simulations runs slower.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests import ROOT
from tests.mutation.slips import Function, code_of, functions, live, module_of

_PROBE: Final = "__reached__"


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """Statements that run one after another, or the operand of a condition.

    Attributes:
        path: of the file, from the root.
        line: of its first statement; of an ``else`` that is not there, of its ``if``.
        column: where an operand begins; 0 of statements.
        kind: ``else`` for one that is not there.
    """

    path: str
    line: int
    column: int = 0
    kind: str = ""


class Reached:
    """Collects the blocks that were entered since it was last asked."""

    def __init__(self) -> None:
        self._blocks: set[Block] = set()

    def note(self, block: Block) -> None:
        self._blocks.add(block)

    def taken(self) -> frozenset[Block]:
        """Return the blocks that were entered, and begin anew."""
        taken = frozenset(self._blocks)
        self._blocks.clear()
        return taken


def probe(paths: Sequence[str], reached: Reached) -> tuple[Block, ...]:
    """Make all functions of these files report their blocks, for the rest of this process.

    Returns:
        All blocks that there are.
    """
    blocks: list[Block] = []
    for path in paths:
        module = module_of(path)
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        names = [name for name, _ in functions(tree)]
        of_file: list[Block] = []
        for _, function in functions(tree):
            _Probes(path, of_file).visit_body_of(function)
        compiled = compile(ast.fix_missing_locations(tree), str(ROOT / path), "exec")
        for name in names:
            function_there = live(module, name)
            function_there.__code__ = code_of(compiled, name)
        numbered = tuple(of_file)
        # By its number, since nothing else fits into the constants of a function.
        setattr(module, _PROBE, lambda number, of=numbered: reached.note(of[number]))
        blocks += of_file
    return tuple(blocks)


def blocks_of(path: str) -> tuple[Block, ...]:
    found: list[Block] = []
    for _, function in functions(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        _Probes(path, found).visit_body_of(function)
    return tuple(found)


class _Probes(ast.NodeTransformer):
    """Puts a call at the beginning of each block of one function."""

    def __init__(self, path: str, blocks: list[Block]) -> None:
        self._path = path
        self._blocks = blocks

    def visit_body_of(self, function: Function) -> None:
        function.body = self._begun(function.body)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        match node:
            case ast.If() | ast.While() | ast.For() | ast.AsyncFor():
                node.body = self._told(node.body)
                otherwise = node.orelse
                if isinstance(node, ast.If):
                    missing = Block(self._path, node.lineno, kind="else")
                    node.orelse = self._told(otherwise) if otherwise else [self._call(missing)]
                elif otherwise:
                    node.orelse = self._told(otherwise)
            case ast.match_case() | ast.ExceptHandler() | ast.With() | ast.AsyncWith():
                node.body = self._told(node.body)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.body = self._told(node.body)
            case ast.Try():
                node.body = self._told(node.body)
                node.orelse = self._told(node.orelse) if node.orelse else []
                node.finalbody = self._told(node.finalbody) if node.finalbody else []
            case ast.BoolOp(values=[first, *rest]):
                node.values = [first, *(self._operand(each) for each in rest)]
            case ast.IfExp(body=body, orelse=orelse):
                node.body, node.orelse = self._operand(body), self._operand(orelse)
            case _:
                pass
        return node

    def _begun(self, body: list[ast.stmt]) -> list[ast.stmt]:
        first = body[0].lineno
        visited = [self.visit(each) for each in body]
        return [self._call(Block(self._path, first)), *visited]

    def _told(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._call(Block(self._path, body[0].lineno)), *body]

    def _operand(self, node: ast.expr) -> ast.expr:
        told = self._call(Block(self._path, node.lineno, node.col_offset + 1)).value
        return ast.copy_location(ast.BoolOp(ast.Or(), [told, node]), node)

    def _call(self, block: Block) -> ast.Expr:
        number = len(self._blocks)
        self._blocks.append(block)
        call = ast.Call(ast.Name(_PROBE, ast.Load()), [ast.Constant(number)], [])
        return ast.Expr(call)


def shown(block: Block) -> str:
    line = (ROOT / block.path).read_text(encoding="utf-8").splitlines()[block.line - 1].strip()
    what = f"{block.kind} of: " if block.kind else ""
    at = f":{block.column}" if block.column else ""
    return f"{block.path}:{block.line}{at}  {what}{line}"


def lines_of(blocks: Iterator[Block] | frozenset[Block]) -> frozenset[tuple[str, int]]:
    """Return the files and first lines of blocks, without the operands."""
    return frozenset((each.path, each.line) for each in blocks if not each.column and not each.kind)

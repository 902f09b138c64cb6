"""Each row of docs/reference/acceptance.md has a test that is marked with it, or a reason why not.

A test says ``@pytest.mark.row("8.1 testNoZK")``, with several ids where it stands for several rows.
Its name says the row, too; where the names of all its tests do not, a mark says why they stand for
it (``because=``).
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from tests import ROOT

DOCUMENT: Final = ROOT / "docs" / "reference" / "acceptance.md"
LINE: Final = re.compile(r"^\| ((?:8\.\d+ |[XWB]\d)[^|]*) \| (.+) \|$", re.MULTILINE)
MARK: Final = "pytest.mark.row"
NOT_OURS, OPEN = "n/a: ", "open: "
SHORTEST_REASON: Final = 25
COUNTS: Final = {
    "8.1": 36, "8.2": 19, "8.3": 37, "8.4": 37, "8.5": 26, "8.6": 21, "8.7": 26, "8.8": 19,
    "8.9": 10, "8.10": 22, "8.11": 23, "8.12": 13, "8.13": 20, "W": 27, "X": 22, "B": 34,
}  # fmt: skip
"""How many rows Hadoop's tests, its weaknesses and our further scenarios make."""
BETTER_THAN_HADOOP: Final = ("X1", "X2", "X3", "X5")


@dataclass(frozen=True, slots=True)
class Mark:
    """One row that one test stands for."""

    test: str
    row: str
    because: str = ""


def rows_in(document: str) -> tuple[list[str], dict[str, str]]:
    """Return all rows' ids, and the reasons of those that do not apply or are not done whole."""
    lines = LINE.findall(document)
    reasons = {row: said for row, said in lines if said.startswith((NOT_OURS, OPEN))}
    return [row for row, said in lines if not said.startswith((NOT_OURS, OPEN))], reasons


def marks_in(source: str) -> tuple[list[Mark], list[str]]:
    """Return the marks on the tests of one file, and what is marked without being a test."""
    if "mark.row" not in source:  # to parse all of them takes 4 s
        return [], []
    tree = ast.parse(source)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    marks: list[Mark] = []
    used: set[ast.expr] = set()
    for node in [*tree.body, *(inner for each in classes for inner in each.body)]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_test(node.name):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == MARK:
                    used.add(call.func)
                    marks += _marks_of(node.name, call)
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    strays = [node for node in nodes if node not in used and ast.unparse(node) == MARK]
    return marks, [f"line {node.lineno}: a mark, but not on a test" for node in strays]


def _is_test(name: str) -> bool:
    return name.startswith("test_")


def _marks_of(test: str, call: ast.Call) -> Iterator[Mark]:
    because = "".join(str(ast.literal_eval(word.value)) for word in call.keywords)
    for row in call.args:
        yield Mark(test, str(ast.literal_eval(row)), because)


def says(test: str, row: str) -> bool:
    """Return whether a test's name contains the row's name, whatever its case and underscores."""
    section, _, name = row.partition(" ")
    if not name:
        return re.search(rf"_{row[0].lower()}0?{row[1:]}_", test) is not None
    if section == "8.13":
        return f"_8_13_{name}_" in test
    if not name.startswith("2.10."):
        name = name.rpartition(".")[2]
    return _bare(re.sub("^[tT]est", "", name)) in _bare(test)


def _bare(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def faults(rows: Sequence[str], reasons: Mapping[str, str], marks: Sequence[Mark]) -> list[str]:
    found = [f"{mark.test}: there is no row {mark.row!r}" for mark in marks if mark.row not in rows]
    found += [f"{row}: a reason for no row" for row in reasons if row not in rows]
    for row in rows:
        mine = [mark for mark in marks if mark.row == row]
        reason = reasons.get(row, "")
        said = any(says(mark.test, row) for mark in mine)
        why = [mark.because for mark in mine if mark.because]
        if not mine and not reason:
            found.append(f"{row}: no test and no reason")
        if reason and (mine or row.startswith("X")) and not reason.startswith(OPEN):
            found.append(f"{row}: does not apply, or does it?")
        if mine and not said and not why:
            found.append(f"{row}: {mine[0].test} does not say it, nor why it stands for it")
        if said and why:
            found.append(f"{row}: its name is in a test's, which needs no reason")
        for text in [*why, *([reason.partition(": ")[2]] if reason else [])]:
            if len(text) < SHORTEST_REASON or "pending" in text:
                found.append(f"{row}: {text!r} is no reason")
    return found


ROWS, REASONS = rows_in(DOCUMENT.read_text(encoding="utf-8"))


def test_every_row_has_a_marked_test_or_a_reason() -> None:
    marks, wrong = [], []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        found, strays = marks_in(path.read_text(encoding="utf-8"))
        marks += found
        if found and not _is_test(path.name):
            strays.append("pytest collects no tests of this file")
        wrong += [f"{path.relative_to(ROOT)}: {stray}" for stray in strays]
    wrong += faults(ROWS, REASONS, marks)
    assert not wrong, "\n".join(wrong)


def test_the_list_has_each_row_once_and_none_is_lost() -> None:
    assert [row for row, count in Counter(ROWS).items() if count > 1] == []
    assert Counter(re.sub(r" .*|(?<=^[XWB])\d+", "", row) for row in ROWS) == COUNTS


def test_where_we_must_be_better_the_list_says_what_hadoop_does() -> None:
    said = dict(LINE.findall(DOCUMENT.read_text(encoding="utf-8")))
    assert all("Hadoop" in said[row] for row in BETTER_THAN_HADOOP)


A, A_MARK = "8.1 testARow", Mark("test_a_row", "8.1 testARow")
B, LONG = "8.1 b", "one of the cases of this table"


@pytest.mark.parametrize(
    ("rows", "reasons", "marks", "complaint"),
    [
        ([A], {}, [A_MARK], None),
        ([A], {A: OPEN + LONG}, [A_MARK], None),
        ([B], {B: NOT_OURS + LONG}, [], None),
        ([B], {}, [Mark("test_a", B), Mark("test_c", B, LONG)], None),
        ([A, B], {}, [A_MARK], "8.1 b: no test and no reason"),
        ([], {}, [A_MARK], "test_a_row: there is no row '8.1 testARow'"),
        ([], {B: NOT_OURS + LONG}, [], "8.1 b: a reason for no row"),
        ([B], {B: "n/a: short"}, [], "'short' is no reason"),
        ([B], {B: "n/a: this is pending " + LONG}, [], "is no reason"),
        ([A], {A: NOT_OURS + LONG}, [A_MARK], "or does it?"),
        (["X1"], {"X1": NOT_OURS + LONG}, [], "or does it?"),
        ([B], {}, [Mark("test_a", B)], "8.1 b: test_a does not say it"),
        ([B], {}, [Mark("test_a", B, "short")], "'short' is no reason"),
        ([B], {}, [Mark("test_b", B, LONG)], "needs no reason"),
        (["X2"], {}, [Mark("test_x20_y", "X2")], "test_x20_y does not say it"),
        (["8.13 2"], {}, [Mark("test_8_13_20_y", "8.13 2")], "test_8_13_20_y does not say it"),
        (["8.4 OneDeadJN"], {}, [Mark("test_two_dead_jns", "8.4 OneDeadJN")], "does not say it"),
    ],
)
def test_a_fault_would_be_seen(
    rows: list[str], reasons: dict[str, str], marks: list[Mark], complaint: str | None
) -> None:
    found = faults(rows, reasons, marks)
    assert found == [] if complaint is None else any(complaint in each for each in found), found


def test_marks_are_read_from_the_source_and_strays_are_seen() -> None:
    mark = '@pytest.mark.row("8.1 a", "8.1 b", because="so")\n'
    marks = [Mark("test_it", "8.1 a", "so"), Mark("test_it", "8.1 b", "so")]
    assert marks_in(f"{mark}async def test_it(): ...\n") == (marks, [])
    assert marks_in(f"class TestIt:\n    {mark}    def test_it(self): ...\n") == (marks, [])
    stray = (
        f"{mark}def helper(): ...\n",
        f"def helper():\n    {mark}    def test_it(): ...\n",
        'pytestmark = pytest.mark.row("8.1 a")\n',
    )
    assert [len(marks_in(source)[1]) for source in stray] == [1, 1, 1]


def test_rows_and_reasons_are_told_apart() -> None:
    document = "| row | x |\n|---|---|\n| 8.1 a | b |\n\n| 8.1 a | n/a: c |\n| X1 | d |\n"
    assert rows_in(document) == (["8.1 a", "X1"], {"8.1 a": "n/a: c"})
    assert says("test_two_dead_jns", "8.4 TwoDeadJNs")
    assert says("test_x02_y", "X2")

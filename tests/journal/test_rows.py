"""Each row of the acceptance list has tests of ours that say its name, or a reason why not."""

import ast
import re
from functools import cache
from pathlib import Path

from tests import ROOT
from tests.journal.acceptance_rows import ALIASES, HADOOP, NOT_OURS, ROWS

SHORTEST_REASON = 15


@cache
def names_in(path: Path) -> frozenset[str]:
    """The test functions of a file, without running it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


def mapped(row: str) -> tuple[str, ...]:
    """The tests of a row, none where it does not apply."""
    where = ROWS[row]
    if isinstance(where, str):
        return () if where.startswith(NOT_OURS) else (where,)
    return where


def bare(name: str) -> str:
    """A name without case and underscores: the acronyms of Java are written in many ways."""
    return re.sub("[^a-z0-9]", "", name.lower())


def says(test: str, row: str) -> bool:
    """Whether a test's name has the row's name in it."""
    function = test.partition("::")[2]
    if row.startswith("X"):
        return re.match(rf"test_x0?{row[1:]}_", function) is not None
    name = row.partition(" ")[2]
    if not name.startswith("2.10."):
        name = name.rpartition(".")[2]
    return bare(re.sub("^[tT]est", "", name)) in bare(function)


def test_every_named_test_exists() -> None:
    missing = []
    for row in ROWS:
        for where in mapped(row):
            name, _, function = where.partition("::")
            path = ROOT / "tests" / name
            if not path.is_file() or function not in names_in(path):
                missing.append(f"{row}: {where}")
    assert not missing, "\n".join(missing)


def test_every_test_says_its_row() -> None:
    silent = [row for row in ROWS if mapped(row) and not any(says(t, row) for t in mapped(row))]
    assert set(silent) == ALIASES.keys(), set(silent) ^ ALIASES.keys()


def test_every_reason_is_one() -> None:
    reasons = [row for row in ROWS.values() if isinstance(row, str) and row.startswith(NOT_OURS)]
    assert all(len(reason) > SHORTEST_REASON for reason in [*reasons, *ALIASES.values()])
    assert not any("pending" in reason for reason in reasons)


def test_the_extra_scenarios_are_all_there() -> None:
    for number in range(1, 23):
        assert mapped(f"X{number}"), "these all apply"
    assert {"X1", "X2", "X3", "X5"} <= HADOOP.keys()


def test_a_wrong_name_would_be_seen() -> None:
    assert "test_every_named_test_exists" in names_in(Path(__file__))
    assert "test_nothing_of_the_kind" not in names_in(Path(__file__))
    assert all(re.match(r"(8\.[1-8] |X\d)", row) for row in ROWS)
    assert says("f::test_two_dead_jns", "8.4 TwoDeadJNs")
    assert not says("f::test_two_dead_jns", "8.4 OneDeadJN")
    assert says("f::test_x02_y", "X2")
    assert not says("f::test_x20_y", "X2")

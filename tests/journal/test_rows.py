"""Each row of the acceptance list has a test of ours, or a reason; the named tests exist."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.journal.rows import HADOOP, NOT_OURS, PENDING, ROWS

TESTS = Path(__file__).resolve().parents[1]
MOST_PENDING = 6


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


def test_every_named_test_exists() -> None:
    missing = []
    for row, where in ROWS.items():
        if where.startswith((NOT_OURS, PENDING)):
            continue
        name, _, function = where.partition("::")
        path = TESTS / name
        if not path.is_file() or function not in names_in(path):
            missing.append(f"{row}: {where}")
    assert not missing, "\n".join(missing)


def test_every_reason_is_one() -> None:
    reasons = [where for where in ROWS.values() if where.startswith((NOT_OURS, PENDING))]
    assert all(len(reason.partition(": ")[2]) > 5 for reason in reasons)
    assert sum(reason.startswith(PENDING) for reason in reasons) <= MOST_PENDING


def test_the_extra_scenarios_are_all_there() -> None:
    assert {f"X{number}" for number in range(1, 23)} <= ROWS.keys()
    assert {"X1", "X2", "X3", "X5"} <= HADOOP.keys()


def test_a_wrong_name_would_be_seen() -> None:
    assert "test_every_named_test_exists" in names_in(Path(__file__))
    assert "test_nothing_of_the_kind" not in names_in(Path(__file__))
    assert all(re.match(r"(8\.[1-8] |X\d)", row) for row in ROWS)

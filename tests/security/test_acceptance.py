"""The table of attacks: a row for each of the design's list, and all tests that it names exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = 40
FOUND: Final = 20
_ROW: Final = re.compile(r"^\| ([FN]?\d+) \|[^|]*\| (.*) \|$", re.MULTILINE)
_NAMED: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def wrong(table: str) -> Iterator[str]:
    rows = dict(_ROW.findall(table))
    expected = [str(row) for row in range(1, ROWS + 1)]
    expected += [f"F{row}" for row in range(1, FOUND + 1)]
    if [row for row in rows if not row.startswith("N")] != expected:
        yield f"the rows are {', '.join(rows)}"
    for row, tests in rows.items():
        named = _NAMED.findall(tests)
        if not named:
            yield f"row {row} has no test"
        for path, function in named:
            file = ROOT / path
            if not file.is_file() or (function and f"def {function}(" not in file.read_text()):
                yield f"row {row}: there is no {path}::{function}"


def test_every_row_has_tests_that_exist() -> None:
    assert list(wrong((ROOT / "tests/security/README.md").read_text())) == []


def test_a_planted_mistake_is_found() -> None:
    table = (ROOT / "tests/security/README.md").read_text()
    assert list(wrong(table.replace("::test_a_page`", "::test_no_page`"))) == [
        "row 28: there is no tests/ha/security/test_unproven.py::test_no_page"
    ]
    assert list(wrong(re.sub(r"\| 14 \|.*\n", "", table)))
    without = re.sub(r"(\| 35 \|[^|]*\|).*", r"\1 soon |", table)
    assert list(wrong(without)) == ["row 35 has no test"]

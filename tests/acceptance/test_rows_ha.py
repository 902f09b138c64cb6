"""Each row of the acceptance list, and each weakness, has tests of ours or a reason why not."""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tests import ROOT
from tests.acceptance import rows_admin, rows_election, rows_weaknesses
from tests.acceptance.design import ALL, SECTIONS

SHORTEST_REASON = 25
REASONS = ("n/a: ", "open: ")
"""A row that does not apply to us, or one of which something is not done; both say why."""

Table = Mapping[str, tuple[str, ...]]
PARTS: tuple[Table, ...] = (rows_election.ROWS, rows_admin.ROWS, rows_weaknesses.ROWS)
TABLE: Table = {row: where for part in PARTS for row, where in part.items()}


@cache
def names_in(path: Path) -> frozenset[str]:
    """The test functions of a file, without running it."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


def faults(table: Table, wanted: Iterable[str]) -> list[str]:
    """What is wrong with a table of these rows; nothing is right."""
    found = [f"{row}: nothing is said of it" for row in sorted(set(wanted) - table.keys())]
    found += [f"{row}: no such row" for row in sorted(table.keys() - set(wanted))]
    for row, entries in table.items():
        if not entries:
            found.append(f"{row}: nothing is said of it")
        for entry in entries:
            if entry.startswith(REASONS):
                if len(entry.partition(": ")[2].strip()) < SHORTEST_REASON:
                    found.append(f"{row}: {entry!r} is no reason")
                continue
            module, _, function = entry.partition("::")
            if function not in names_in(ROOT / "tests" / module):
                found.append(f"{row}: there is no test {entry}")
    return found


def test_every_row_has_tests_that_exist_or_a_reason() -> None:
    assert not (wrong := faults(TABLE, ALL)), "\n".join(wrong)


def test_no_row_stands_in_two_tables() -> None:
    assert sum(map(len, PARTS)) == len(TABLE)


def test_the_list_is_as_long_as_the_document_s() -> None:
    counts = {section: len(names.split()) for section, names in SECTIONS.items()}
    assert counts == {
        "8.1": 20, "8.2": 3, "8.3": 24, "8.4": 5, "8.5": 3, "8.6": 17, "8.7": 9, "8.8": 11,
        "8.9": 10, "8.10": 22, "8.11": 23, "8.12": 13, "8.13": 20,
    }  # fmt: skip


def test_a_fault_of_the_table_would_be_seen() -> None:
    here = "rows_ha/test_rows_ha.py::"
    good = {"r": (here + "test_no_row_stands_in_two_tables",)}
    assert faults(good, ["r"]) == []
    assert faults(good, ["r", "s"]) == ["s: nothing is said of it"]
    assert faults(good, []) == ["r: no such row"]
    assert faults({"r": ()}, ["r"]) == ["r: nothing is said of it"]
    assert faults({"r": ("n/a: too short",)}, ["r"]) == ["r: 'n/a: too short' is no reason"]
    assert faults({"r": (here + "test_none",)}, ["r"]) == [f"r: there is no test {here}test_none"]
    assert faults({"r": ("gone.py::test_x",)}, ["r"]) == ["r: there is no test gone.py::test_x"]

"""docs/faults.md says what shows each claim of README.md and of the pages about Hadoop."""

import ast
import re
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Final

import pytest

from tests import ROOT
from tests.campaigns.run import main as campaign

CLAIMS: Final = ROOT / "docs" / "faults.md"
TASKS: Final = {"demo": {"--secure"}, "test": {"long"}, "package": set(), "image": set()}
"""Of the script ``run`` itself, each with the words that pages give it."""
DOCUMENTS: Final = ("README.md", "docs/against-hadoop.md", "docs/performance.md")
IN_OWN_WORDS: Final = {"Installed, supervised, seen": 20, "Reported in public": 17}
"""Claims that stand in docs/faults.md alone, and how many there are at least."""
RUN: Final = re.compile(r"`(\./run [^`]+)`|^(\./run [^#\n]+)", re.MULTILINE)
"""A command of the checkout, in a sentence or on a line of its own."""
ROW: Final = re.compile(r"^\| (?!claim |---)(.+) \| (`.+`) \|$", re.MULTILINE)
FIRST_CELL: Final = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
PROMISE: Final = re.compile(r"^\* ((?:.|\n  )+)$", re.MULTILINE)


def claims(text: str) -> Mapping[str, Mapping[str, list[str]]]:
    """Return for each document its claims, each with the tests and commands that show it."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {
        document: {words: re.findall(r"`([^`]+)`", shown) for words, shown in ROW.findall(rows)}
        for document, rows in zip(parts[::2], parts[1::2], strict=True)
        if document in (*DOCUMENTS, *IN_OWN_WORDS)
    }


CLAIMED: Final = claims(CLAIMS.read_text())
SHOWN: Final = sorted(
    {each for rows in CLAIMED.values() for shown in rows.values() for each in shown}
)

COMMANDS: Final = {each for each in SHOWN if each.startswith("./run ")} | {
    (inline or line).strip()
    for page in ("README.md", "docs/install.md")
    for inline, line in RUN.findall((ROOT / page).read_text())
}


def _plain(text: str) -> str:
    return " ".join(text.split())


def must_be_claimed(document: str) -> set[str]:
    """Return the first cells of a document's tables against Hadoop, and README's promises."""
    text = (ROOT / document).read_text().partition("\n## How long a failover takes")[0]
    cells = set(FIRST_CELL.findall(text))
    promises = text.partition("## What it promises")[2].partition("\n## ")[0]
    return {cell.strip() for cell in cells if cell.strip("- ")} | {
        _plain(promise) for promise in PROMISE.findall(promises)
    }


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_words_stand_in_the_document(document: str) -> None:
    text = _plain((ROOT / document).read_text())
    assert [words for words in CLAIMED[document] if _plain(words) not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_row_and_promise_is_shown_by_something(document: str) -> None:
    wanted = must_be_claimed(document)
    assert len(wanted) >= 12
    known = tuple(CLAIMED[document])
    assert [words for words in sorted(wanted) if not words.startswith(known)] == []


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


@pytest.mark.parametrize("shown", [each for each in SHOWN if each.startswith("tests/")])
def test_each_named_test_exists(shown: str) -> None:
    path, _, name = shown.partition("::")
    tests = {each for each in _tests_of(path) if each.startswith("test_")}
    assert tests
    assert not name or name in tests


@pytest.mark.parametrize("shown", sorted(COMMANDS))
def test_each_named_command_exists(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Refuse an unknown option or scene before the help is shown."""
    kind, *rest = shlex.split(shown)[1:]
    if kind in TASKS:
        assert {*rest} <= TASKS[kind]
        return
    try:
        code: object = campaign([kind, *rest, "--help"])
    except SystemExit as end:
        code = end.code
    assert code == 0
    assert "Usage: ./run" in capsys.readouterr().out


def test_nothing_else_shows_a_claim() -> None:
    assert tuple(CLAIMED) == (*DOCUMENTS, *IN_OWN_WORDS)
    assert all(len(CLAIMED[part]) >= least for part, least in IN_OWN_WORDS.items())
    assert [each for each in SHOWN if not each.startswith(("tests/", "./run "))] == []

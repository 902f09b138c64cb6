"""Hadoop's own cases of command lines (testConf.xml and its sisters), read from where they lie."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True)
class Case:
    """Commands, what undoes them, and the texts that the last command must print."""

    description: str
    commands: tuple[tuple[str, ...], ...]
    cleanup: tuple[tuple[str, ...], ...]
    expected: tuple[str, ...]


def cases_in(path: Path, command: str) -> list[Case]:
    """Return the cases of a file whose comparisons are of substrings; ``command`` is the tag."""
    return [
        Case(
            _text(test, "description"),
            tuple(_words(test, f"test-commands/{command}")),
            tuple(_words(test, f"cleanup-commands/{command}")),
            tuple(one.text or "" for one in test.findall("comparators/comparator/expected-output")),
        )
        for test in ElementTree.parse(path).getroot().findall("tests/test")
    ]


def _text(test: ElementTree.Element, name: str) -> str:
    found = test.find(name)
    return "" if found is None else (found.text or "")


def _words(test: ElementTree.Element, path: str) -> list[tuple[str, ...]]:
    return [tuple(shlex.split(one.text or "")) for one in test.findall(path)]

"""Hadoop's own cases of command lines (testHDFSConf.xml and its sisters), from where they lie."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.interop.our_cluster import CACHE_ADMIN, DFSADMIN, SHELL, OurCluster

_PROGRAMS = {
    "command": SHELL, "dfs-admin-command": DFSADMIN, "cache-admin-command": CACHE_ADMIN,
}  # fmt: skip
Command = tuple[str, ...]
"""The program, and its words."""


@dataclass(frozen=True, slots=True)
class Case:
    """Commands, what undoes them, and how the output of the last is compared with which texts."""

    description: str
    commands: tuple[Command, ...]
    cleanup: tuple[Command, ...]
    expected: tuple[tuple[str, str], ...]


def cases_in(path: Path, names: dict[str, str]) -> list[Case]:
    """Return the cases of a file; ``names`` are put for words such as NAMENODE."""

    def filled(text: str | None) -> str:
        return re.sub("|".join(names), lambda found: names[found[0]], text or "")

    def commands(test: ElementTree.Element, part: str) -> Iterator[Command]:
        for one in test.find(part) or ():
            yield _PROGRAMS[one.tag], *shlex.split(filled(one.text))

    return [
        Case(
            test.findtext("description", ""),
            tuple(commands(test, "test-commands")),
            tuple(commands(test, "cleanup-commands")),
            tuple(
                (one.findtext("type", "").strip(), filled(one.findtext("expected-output")))
                for one in test.findall("comparators/comparator")
            ),
        )
        for test in ElementTree.parse(path).getroot().findall("tests/test")
    ]


def failures(ours: OurCluster, cases: list[Case]) -> dict[str, str]:
    """Run cases; return what the last command of each said that is not as expected."""
    wrong: dict[str, str] = {}
    ours.close_shared()  # it may have another replication
    for case in cases:
        said = [_run(ours, command) for command in case.commands][-1]
        if not all(_fits(kind, text, said) for kind, text in case.expected):
            wrong[case.description] = said
        for command in case.cleanup:
            _run(ours, command)
    ours.close_shared()
    return wrong


def _run(ours: OurCluster, command: Command) -> str:
    """Return what a command says where files have one replica; its ``-fs`` is the cluster."""
    program, *words = command
    words = words[2:] if words[:1] == ["-fs"] else words
    return ours.run(program, *words, more={"dfs.replication": "1"}).said


def _fits(kind: str, text: str, said: str) -> bool:
    match kind:
        case "SubstringComparator":
            return text.strip() in said
        case "ExactComparator":
            return text.replace("#LF#", "\n") == said
        case "RegexpComparator":
            return any(re.fullmatch(text, line) for line in said.splitlines())
        case "RegexpAcrossOutputComparator":
            return re.search(text, said) is not None
        case "TokenComparator":
            return all(token.strip() in said for token in re.split("[,\n\r]", text))
        case _:
            raise ValueError(f"no comparison is known by the name {kind!r}")

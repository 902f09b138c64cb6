"""Reads what a command says of a cluster that is known to be well, and finds what is not true."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

UNTRUE: Final[Mapping[str, str]] = {
    r"\bDOWN\b|\bis down\b|\bare down\b": "every daemon runs",
    r"\bnot running\b|\bnot started\b|\bhas ended\b": "every daemon runs",
    r"connection refused|no JournalNode\b|is no NameNode\b": "every daemon listens",
    r"nothing can be (written|read)|cannot be written": "the client writes all the time",
    r"no NameNode is active|nobody is active|active +NONE": "one NameNode is active",
    r"no majority of|have no quorum|lost (its|the) quorum": "every JournalNode and server runs",
    r"failover: +BLOCKED|could not become active|no other NameNode": "the standby is fit",
    r"\bkill\b(?! -0)|\bSIGKILL\b|\bkillall\b": "nothing is to be killed",
    r"\bstart it( with)?:|\brestart it\b": "nothing is to be started",
    r"initializeSharedEdits|journal format": "nothing is to be formatted",
    r"Traceback \(most recent call last\)": "an error is told in words",
}
"""Each statement, as a regular expression, that is false of such a cluster, and the reason."""
UNKNOWN: Final = "unknown"
OUTCOME_UNKNOWN: Final = 5
NO_ANSWER: Final = 6
PROBLEMS: Final = 8


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known from the processes themselves while a command runs.

    ``active`` is None where the role changed in between: then nothing that names a role is judged.
    """

    active: str | None
    namenodes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Said:
    """One command and all that it printed."""

    command: Sequence[str]
    exit_code: int
    output: str


def false_statements(said: Said, truth: Truth) -> list[str]:
    found = [
        f"{line.strip()!r}: {why}"
        for line in said.output.splitlines()
        for pattern, why in UNTRUE.items()
        if re.search(pattern, line, re.IGNORECASE if pattern.islower() else 0)
    ]
    found += _roles_in_tables(said.output, truth)
    document = _document(said.output)
    if document is not None:
        found += _roles_in_document(document, truth)
    return found


def _roles_in_tables(output: str, truth: Truth) -> list[str]:
    """Find rows that begin with a NameNode's id and name the role of another one."""
    if truth.active is None:
        return []
    found = []
    for line in output.splitlines():
        words = re.findall(r"[\w.:-]+", line)
        if not words or words[0] not in truth.namenodes:
            continue
        wrong = "standby" if words[0] == truth.active else "active"
        if len(words) > 1 and words[1] == wrong:
            found.append(f"{line.strip()!r}: {truth.active} is the active")
    return found


def _document(output: str) -> object | None:
    start = output.find("{")
    try:
        return json.loads(output[start:]) if start >= 0 else None
    except ValueError:
        return None


def _roles_in_document(document: object, truth: Truth) -> list[str]:
    if truth.active is None or not isinstance(document, dict):
        return []
    found = []
    for node in document.get("namenodes", ()):
        name, state = node.get("namenode", node.get("id")), node.get("state")
        true = "active" if name == truth.active else "standby"
        if state not in (true, UNKNOWN, None):
            found.append(f"{name} is {true}, and the document says {state!r}")
    return found

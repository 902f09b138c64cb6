"""The steps of a page: blocks of it that a comment above marks for the lab.

A mark is an HTML comment, which no reader of the page sees:

    <!-- lab: file on host1 host2 as hdfs: /etc/nnha/conf/core-site.xml -->   write the block there
    <!-- lab: run on host1 as hdfs -->      run the block's lines in one shell; they end with 0
    <!-- lab: daemon on host1 as hdfs -->   start it, and wait until it is ready
    <!-- lab: background on host1 -->       start what says nothing when it is ready
    <!-- lab: restart on host1 as hdfs -->  end that daemon and start it again, host after host
    <!-- lab: shown on host4 -->            run each line behind "$ "; what it prints is shown below

Behind ``run`` and ``shown`` a path is the folder to do it in, which is made.  ``all`` is every host
of the page.  Pure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ALL: Final = ("host1", "host2", "host3", "host4")
CLIENT: Final = "client"
_MARK: Final = re.compile(
    r"^<!-- lab: (?P<kind>\w+) on (?P<hosts>[\w ]+?)(?: as (?P<user>\w+))?(?:: (?P<path>\S+))? -->$"
)
_ANY_MARK: Final = "<!-- lab:"
_BUSY: Final = "* this command itself "
"""What commands add on a busy machine."""
_FENCE: Final = "```"


class Kind(StrEnum):
    """What is done with a block."""

    FILE = "file"
    RUN = "run"
    DAEMON = "daemon"
    BACKGROUND = "background"
    RESTART = "restart"
    SHOWN = "shown"


@dataclass(frozen=True, slots=True)
class Step:
    """One marked block."""

    kind: Kind
    hosts: tuple[str, ...]
    user: str
    path: str
    text: str
    line: int
    """Where its mark stands in the page, from 1."""


class BadMarkError(ValueError):
    """A mark that is none, or that no block follows."""


def steps(text: str) -> Iterator[Step]:
    """Yield the marked blocks in their order.

    Raises:
        BadMarkError: if a mark cannot be read, or no fenced block follows it at once.
    """
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not line.startswith(_ANY_MARK):
            continue
        found = _MARK.match(line)
        if found is None or found["kind"] not in list(Kind):
            raise BadMarkError(f"line {at + 1}: {line}")
        if not lines[at + 1].startswith(_FENCE):
            raise BadMarkError(f"line {at + 1}: no fenced block follows {line}")
        end = lines.index(_FENCE, at + 2)
        hosts = tuple(found["hosts"].replace("all", " ".join(ALL)).split())
        if not {*hosts} <= {*ALL, CLIENT}:
            raise BadMarkError(f"line {at + 1}: there is no such host: {line}")
        block = "\n".join(lines[at + 2 : end]) + "\n"
        user, path = found["user"] or "root", found["path"] or ""
        yield Step(Kind(found["kind"]), hosts, user, path, block, at + 1)


def shown(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a block, without its "$ ", and what the page shows below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def shape(output: str) -> str:
    """Return a text without what differs from run to run: numbers, times, widths of columns."""
    bare = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", output)
    bare = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{32,}\b", "N", bare)
    bare = re.sub(r"\b(?:\d+[dhm] )+(?=\d)", "", bare)
    bare = re.sub(r"\d+(?:[.,]\d+)?(?: ?(?:ms|s|min|m|h|[KMGTP]?B|[KMGTP]))?\b", "N", bare)
    bare = bare.replace("N tx", "-")  # a standby's lag: none a moment later
    lines = (re.sub(r"\s+", " ", line).strip() for line in bare.strip().splitlines())
    return "\n".join(line for line in lines if not line.startswith(_BUSY))

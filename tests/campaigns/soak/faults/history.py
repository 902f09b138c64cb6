"""What clients asked and got as answers: one record a call, as lines of JSON."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

ABSENT: Final = "absent"
"""There is no such path: what a read got, or why a change of a path was refused."""
TAKEN: Final = "taken"
"""Something is at the target already, so that nothing was moved there."""
UNKNOWN: Final = "unknown"
"""No answer: the call was carried out, or is carried out some time later, or never."""


class Ask(StrEnum):
    """What a client asks of one path, a directory whose value is the name of its owner."""

    MAKE = "make"
    OWN = "own"
    DELETE = "delete"
    READ = "read"
    MOVE = "move"
    """To another path, where nothing may be."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one client; times are seconds of a clock that all clients share.

    ``value`` is the owner that OWN sets, or the path that MOVE moves to.  ``answer`` is UNKNOWN,
    ABSENT, for MOVE TAKEN, or: for READ the owner, for all else the empty text.  ``by`` names the
    server that answered.
    """

    client: int
    path: str
    ask: Ask
    value: str
    began: float
    ended: float
    answer: str
    by: str = ""

    @property
    def known(self) -> bool:
        return self.answer != UNKNOWN

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.value) if self.ask is Ask.MOVE else (self.path,)


def line_of(call: Call) -> str:
    return json.dumps(asdict(call)) + "\n"


def calls_of(lines: Iterable[str]) -> Iterator[Call]:
    """Yield the calls of these lines; the last may be torn, if its writer was killed."""
    for line in lines:
        if line.endswith("\n"):
            found = json.loads(line)
            yield Call(**{**found, "ask": Ask(found["ask"])})


def paths_of(calls: Iterable[Call]) -> list[str]:
    return sorted({path for call in calls for path in call.paths})


def read_calls(path: Path) -> list[Call]:
    """Return the history in a file; none where there is no file yet."""
    if not path.exists():
        return []
    with path.open() as lines:
        return list(calls_of(lines))

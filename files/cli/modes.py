"""Permissions as people write them: octal, symbolic, and as ``ls`` shows them.  Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

ALL: Final = 0o1777
"""The bits that HDFS keeps: rwx for three, and the sticky bit."""
STICKY: Final = 0o1000
_OCTAL: Final = re.compile(r"\s*\+?([01]?[0-7]{3})\s*")
_CLAUSE: Final = re.compile(r"\s*([ugoa]*)([+=-]+)([rwxXt]*)\s*")
_SHIFTS: Final = {"u": 6, "g": 3, "o": 0}
_BITS: Final = {"r": 4, "w": 2, "x": 1, "X": 1}


class BadMode(Exception):
    """A mode that cannot be read."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One of ``u+rw,g=r``: ``sign`` is ``+``, ``-`` or ``=``."""

    classes: str
    sign: str
    letters: str


Mode = int | Sequence[Clause]


def parsed(text: str) -> Mode:
    """Return an octal mode as a number, a symbolic one as its clauses.

    Raises:
        BadMode: it is neither: three octal digits, or four of which the first is 0 or 1.
    """
    if octal := _OCTAL.fullmatch(text):
        return int(octal[1], 8)
    clauses = [_CLAUSE.fullmatch(one) for one in text.split(",")]
    read = [Clause(one[1], one[2][-1], one[3]) for one in clauses if one is not None and one[3]]
    if len(read) != len(clauses):
        raise BadMode(
            f"{text!r} is no mode. Write three octal digits (755), four with the sticky bit "
            "(1777), or clauses such as u=rwx,g+w,o-x,+t."
        )
    return read


def applied(mode: Mode, before: int, *, directory: bool) -> int:
    """Return the permission that a mode makes of another, clause by clause.

    Hadoop keeps only the last clause of each class (``u+r,u+w`` gives w alone); chmod applies all.
    """
    if isinstance(mode, int):
        return mode
    now = before & ALL
    for clause in mode:
        run = directory or bool(now & 0o111)
        classes = set(clause.classes.replace("a", "")) or set(_SHIFTS)
        for letter in classes:
            shift = _SHIFTS[letter]
            had = now >> shift & 7
            now = now & ~(7 << shift) | _combined(clause, had, run=run) << shift
        if "o" in classes:
            now = _with_sticky(clause, now)
    return now


def _combined(clause: Clause, had: int, *, run: bool) -> int:
    bits = 0
    for letter in clause.letters.replace("t", ""):
        # X is an x only where something may be run, or where this class could already.
        if letter != "X" or run or had & 1 or clause.sign == "-":
            bits |= _BITS[letter]
    return {"+": had | bits, "-": had & ~bits, "=": bits}[clause.sign]


def _with_sticky(clause: Clause, now: int) -> int:
    if "t" in clause.letters:
        return now & ~STICKY if clause.sign == "-" else now | STICKY
    return now & ~STICKY if clause.sign == "=" else now


def umask_of(text: str) -> int:
    """Return a umask: octal, or the symbolic form that says what is left (``u=rwx,g=rx,o=``).

    Raises:
        BadMode: it is neither.
    """
    if re.fullmatch(r"\s*[0-7]{1,4}\s*", text):
        return int(text, 8) & 0o777
    clauses = [_CLAUSE.fullmatch(one) for one in text.split(",")]
    if None in clauses:
        raise BadMode(f"{text!r} is no umask: write 022, or u=rwx,g=rx,o=rx")
    read = [Clause(one[1], one[2][-1], one[3]) for one in clauses if one is not None]
    return ~applied(read, 0, directory=False) & 0o777


def shown(permission: int) -> str:
    """Return the nine letters of ``ls``, with the sticky bit in the last."""
    text = "".join(_letters(permission))
    if not permission & STICKY:
        return text
    return text[:-1] + ("t" if permission & 1 else "T")


def _letters(permission: int) -> Iterator[str]:
    for shift in (6, 3, 0):
        for letter, bit in (("r", 4), ("w", 2), ("x", 1)):
            yield letter if permission >> shift & bit else "-"

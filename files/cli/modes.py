"""Permissions as people write them: octal, symbolic, and as ``ls`` shows them.  Pure."""

import re
from typing import Final

from files.cli.spelling import Unfit

ALL: Final = 0o1777
"""The bits that HDFS keeps: rwx for three, and the sticky bit."""
_OCTAL: Final = re.compile(r"\s*\+?([01]?[0-7]{3})\s*")
_CLAUSE: Final = re.compile(r"\s*([ugoa]*)([+=-]+)([rwxXt]*)\s*")
_SHIFTS: Final = {"u": 6, "g": 3, "o": 0}
_BITS: Final = {"r": 4, "w": 2, "x": 1, "X": 1, "t": 0}


def applied(mode: str, before: int, *, directory: bool) -> int:
    """Return the permission that a mode makes of another, clause by clause.

    Hadoop keeps only the last clause of each class: ``u+r,u+w`` gives w alone.  Raises Unfit where
    it is no mode: three octal digits, four of which the first is 0 or 1, or clauses.
    """
    if octal := _OCTAL.fullmatch(mode):
        return int(octal[1], 8)
    now = before & ALL
    for text in mode.split(","):
        clause = _CLAUSE.fullmatch(text)
        if clause is None or not clause[3]:
            raise Unfit(f"{text!r} is no mode: write 755, 1777, or u=rwx,g+w,o-x,+t", "BAD_PATH")
        now = _with(clause[1], clause[2][-1], clause[3], now, directory or bool(now & 0o111))
    return now


def _with(classes: str, sign: str, letters: str, now: int, run: bool) -> int:  # noqa: FBT001
    """Apply one clause; X is an x where something may be run, or where the class could already."""
    for name in set(classes.replace("a", "")) or _SHIFTS:
        shift = _SHIFTS[name]
        had, bits = now >> shift & 7, 0
        for letter in letters:
            bits |= _BITS[letter] if letter != "X" or run or had & 1 or sign == "-" else 0
        new = {"+": had | bits, "-": had & ~bits, "=": bits}[sign]
        now = now & ~(7 << shift) | new << shift
        if name == "o" and ("t" in letters or sign == "="):
            sticky = 0o1000 if "t" in letters and sign != "-" else 0
            now = now & 0o777 | sticky
    return now


def umask_of(text: str) -> int:
    """Return an octal umask, or that of the form which says what is left (``u=rwx,g=rx,o=rx``)."""
    if re.fullmatch(r"[0-7]{1,4}", text.strip()):
        return int(text, 8) & 0o777
    found = [_CLAUSE.fullmatch(one) for one in text.split(",")]
    left = 0
    for clause in found:
        if clause is None:
            raise Unfit(f"{text!r} is no umask: write 022, or u=rwx,g=rx,o=rx", "BAD_PATH")
        left = _with(clause[1], clause[2][-1], clause[3], left, run=False)
    return ~left & 0o777


def shown(permission: int) -> str:
    """Return the nine letters of ``ls``, with the sticky bit in the last."""
    text = "".join(
        letter if permission >> 8 - at & 1 else "-" for at, letter in enumerate("rwx" * 3)
    )
    return text if not permission & 0o1000 else text[:-1] + ("t" if permission & 1 else "T")

"""Hadoop's patterns of names: ``* ? [a-c] [^ab] {a,b} \\``.  Pure.

Two things are otherwise than in Hadoop, which hands its patterns to a library of regular
expressions: within brackets each character means itself, and a backslash before a letter, too.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from files.cli.spelling import BadPath

MOST_PATTERNS: Final = 10_000
"""How many paths the braces of one pattern may stand for."""


def alternatives(pattern: str) -> list[str]:
    """Return patterns without a slash in braces that together stand for this one, in order.

    Raises:
        BadPath: a backslash is the last character, or there are too many of them.
    """
    done: list[str] = []
    waiting = [(pattern, 0)]
    while waiting:
        text, start = waiting.pop()
        if (group := _braces_with_slash(text, start)) is None:
            done.append(text)
        else:
            first, last = group
            choices = list(_choices(text[first + 1 : last]))
            waiting += [(text[:first] + one + text[last + 1 :], first) for one in choices[::-1]]
        if len(done) + len(waiting) > MOST_PATTERNS:
            raise BadPath(f"{pattern!r} stands for more than {MOST_PATTERNS} paths. Write fewer.")
    return done


def _braces_with_slash(text: str, start: int) -> tuple[int, int] | None:
    """Return where the first outermost pair of braces with a slash begins and ends."""
    depth, first, slash = 0, 0, False
    for at, letter in _letters(text, start):
        if letter == "{":
            if depth == 0:
                first, slash = at, False
            depth += 1
        elif letter == "}" and depth:
            depth -= 1
            if depth == 0 and slash:
                return first, at
        elif letter == "/" and depth:
            slash = True
    return None


def _choices(inside: str) -> Iterator[str]:
    depth = first = 0
    for at, letter in _letters(inside, 0):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            yield inside[first:at]
            first = at + 1
    yield inside[first:]


def _letters(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield each character that no backslash stands before, with its place."""
    at = start
    while at < len(text):
        if text[at] == "\\":
            if at + 1 == len(text):
                raise BadPath(f"{text!r} ends in a backslash. Write two for a backslash.")
            at += 1
        else:
            yield at, text[at]
        at += 1


def pattern_of(component: str) -> re.Pattern[str] | None:
    """Return what the names that match this part of a path look like; None where it is a name.

    Raises:
        BadPath: brackets or braces are not closed, or a backslash is the last character.
    """
    text, wild = _translated(component)
    return _compiled(component, text, re.DOTALL) if wild else None


def matcher(pattern: str, *, any_case: bool) -> re.Pattern[str]:
    """Return what matches a whole name; ``any_case``: in capitals or not.  Raises BadPath."""
    flags = re.DOTALL | re.IGNORECASE if any_case else re.DOTALL
    return _compiled(pattern, _translated(pattern)[0], flags)


def _compiled(pattern: str, text: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(text, flags)
    except re.error as wrong:
        raise BadPath(f"{pattern!r} is no pattern: {wrong}") from wrong


def _translated(component: str) -> tuple[str, bool]:
    """Return a regular expression, and whether it is more than a name."""
    made: list[str] = []
    depth, at, wild = 0, 0, False
    while at < len(component):
        letter = component[at]
        match letter:
            case "\\":
                at += 1
                if at == len(component):
                    raise BadPath(f"{component!r} ends in a backslash. Write two for a backslash.")
                made.append(re.escape(component[at]))
            case "*" | "?":
                made.append(".*" if letter == "*" else ".")
                wild = True
            case "[":
                at, one = _set(component, at)
                made.append(one)
                wild = True
            case "{":
                depth, wild = depth + 1, True
                made.append("(?:")
            case "}" if depth:
                depth -= 1
                made.append(")")
            case "," if depth:
                made.append("|")
            case _:
                made.append(re.escape(letter))
        at += 1
    if depth:
        raise BadPath(f"{component!r}: a brace is not closed. Write \\{{ for the character.")
    return "".join(made), wild


def _set(component: str, first: int) -> tuple[int, str]:
    """Return where the brackets that begin here end, and the set as a regular expression."""
    at, made = first + 1, ["["]
    if component[at : at + 1] in ("^", "!"):
        made.append("^")
        at += 1
    begin = at
    while at < len(component) and (component[at] != "]" or at == begin):
        if component[at] == "\\":
            at += 1
        made.append(component[at : at + 1] if component[at : at + 1] == "-" else "")
        made[-1] = made[-1] or re.escape(component[at : at + 1])
        at += 1
    if at >= len(component):
        raise BadPath(f"{component!r}: a bracket is not closed. Write \\[ for the character.")
    return at, "".join((*made, "]"))


def unquoted(component: str) -> str:
    """Return a name without the backslashes that kept its characters from being a pattern."""
    return re.sub(r"\\(.)", r"\1", component, flags=re.DOTALL)


def quoted(name: str) -> str:
    """Return a name as a pattern that matches it alone."""
    return re.sub(r"([\\*?\[{])", r"\\\1", name)


def parts_of(path: str) -> Sequence[str]:
    """Return the parts of an absolute pattern."""
    return [part for part in path.split("/") if part]

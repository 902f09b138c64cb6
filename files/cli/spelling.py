"""Paths and patterns as people write them, in Hadoop's manner.  Pure."""

import posixpath
import re
from itertools import pairwise
from typing import Final

from ha.record import dataclass

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*)(?=/|$)|(?=/))(.*)", re.DOTALL)
_TOKEN: Final = re.compile(
    r"\\(?P<own>.)|\[(?P<no>[!^]?)(?P<set>\]?(?:\\.|[^]\\])+|\])\]|.", re.DOTALL
)
_WORDS: Final = {"*": ".*", "?": ".", "{": "(?:"}


class Unfit(Exception):
    """A refusal before anything was changed: why, its name for programs, and what to do."""

    def __init__(self, reason: str, code: str = "UNFIT_PATH", hint: str = "") -> None:
        super().__init__(reason)
        self.code, self.hint = code, hint


class NoSuchPath(Unfit):
    """There is no file or directory of this name, or none that matches."""

    def __init__(self, why: str = "", hint: str = "nnha fs ls shows what is there") -> None:
        super().__init__(f"no such file or directory{why}", "NO_SUCH_PATH", hint)


@dataclass(frozen=True, slots=True)
class Spelling:
    """What was written; ``home`` is where relative paths begin, ``prefix`` stood before it."""

    pattern: str
    home: str
    prefix: str = ""

    def absolute(self, pattern: str) -> str:
        """Return what a pattern means that this one expands to; raise Unfit above the root."""
        path = posixpath.join("/" if self.prefix else self.home, pattern)
        parts: list[str] = []
        for part in path.split("/"):
            if part == ".." and not parts:
                raise Unfit(f"{pattern!r} leads above the root", "BAD_PATH")
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)

    def shown(self, found: str) -> str:
        """Return a path that was found in the manner of this one."""
        if self.prefix or self.pattern.startswith("/"):
            return self.prefix + found
        return posixpath.relpath(found, self.home)


def spelt(text: str, user: str, nameservice: str) -> Spelling:
    """Return what a word on the command line means; raise Unfit where it is no path here."""
    if not text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Unfit("a path is UTF-8, and not empty. / is the root, . is your home", "BAD_PATH")
    if (found := _URI.fullmatch(text)) is None:
        return Spelling(text, f"/user/{user}")
    scheme, authority, path = found.groups()
    if scheme.lower() != "hdfs":
        raise Unfit(f"this reads hdfs: only, and not {scheme}:", "BAD_PATH", "nnha dfs")
    if authority and authority != nameservice:
        text = f"the configuration is about {nameservice}, and not about {authority}"
        raise Unfit(text, "BAD_PATH", "leave it out, or give -ns or --conf-dir")
    return Spelling(path or "/", f"/user/{user}", f"hdfs://{authority or ''}")


def child(parent: str, name: str) -> str:
    """Return the path of an entry of a directory."""
    return name if parent == "." else posixpath.join(parent, name)


def alternatives(pattern: str) -> list[str]:
    """Return patterns without a slash in braces that together stand for this one, in order."""
    cuts, depth, slash = [0], 0, False
    for at, letter in enumerate(re.sub(r"\\.", "..", pattern, flags=re.DOTALL)):
        if letter == "{":
            cuts, slash = (cuts, slash) if depth else ([at], False)
            depth += 1
        elif letter == "}" and depth:
            depth -= 1
            if not depth and slash:
                cuts.append(at)
                inside = [pattern[a + 1 : b] for a, b in pairwise(cuts)]
                whole = [pattern[: cuts[0]] + one + pattern[at + 1 :] for one in inside]
                return [each for one in whole for each in alternatives(one)]
        elif letter == "," and depth == 1:
            cuts.append(at)
        slash = slash or (letter == "/" and depth > 0)
    return [pattern]


def matcher(pattern: str, *, any_case: bool = False) -> re.Pattern[str]:
    """Return what matches the names that a pattern means; raise Unfit for one with an open end."""
    made, depth = "", 0
    for token in _TOKEN.finditer(pattern):
        letter = token[0]
        if token["own"]:
            made += re.escape(token["own"])
        elif token["set"] is not None:
            inside = re.sub(r"([][^&~|\\])", r"\\\1", unquoted(token["set"]))
            made += f"[{'^' * bool(token['no'])}{inside}]"
        elif letter in ("\\", "["):
            raise Unfit(f"{pattern!r}: {letter} is not closed. Write \\{letter}", "BAD_PATH")
        elif depth and letter in ",}":
            made += "|" if letter == "," else ")"
            depth -= letter == "}"
        else:
            made += _WORDS.get(letter) or re.escape(letter)
            depth += letter == "{"
    if depth:
        raise Unfit(f"{pattern!r}: a brace is not closed. Write \\{{", "BAD_PATH")
    try:
        return re.compile(made, re.DOTALL | re.IGNORECASE if any_case else re.DOTALL)
    except re.error as wrong:
        raise Unfit(f"{pattern!r} is no pattern: {wrong}", "BAD_PATH") from wrong


def is_pattern(text: str) -> bool:
    """Return whether a part of a path is more than a name; raise Unfit as ``matcher``."""
    return bool(matcher(text)) and any(token[0][0] in "*?[{" for token in _TOKEN.finditer(text))


def unquoted(text: str) -> str:
    """Return a name without the backslashes that kept it from being a pattern."""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def quoted(name: str) -> str:
    """Return a name as a pattern that matches it alone."""
    return re.sub(r"([\\*?\[{])", r"\\\1", name)

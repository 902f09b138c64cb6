"""Java properties files (java.util.Properties): pairs of names and values.  Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_PLAIN_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:\s]?\s*(.*)", re.DOTALL)


def properties(data: bytes) -> Mapping[str, str]:
    """Return the pairs of a Java properties file (java.util.Properties.load)."""
    pairs = {}
    for line in _logical_lines(data.decode("latin-1")):
        match = _PAIR.fullmatch(line)
        if match is not None:
            pairs[unescape(match[1])] = unescape(match[2])
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments; after an odd number of backslashes a line goes on."""
    begun = ""
    for line in re.split(r"\r\n|\r|\n", text):
        content = line.lstrip(" \t\f")
        if not begun and (not content or content[0] in "#!"):
            continue
        begun += content
        backslashes = len(begun) - len(begun.rstrip("\\"))
        if backslashes % 2:
            begun = begun[:-1]
        else:
            yield begun
            begun = ""
    if begun:
        yield begun


def escape(content: str) -> str:
    out = []
    for position, char in enumerate(content):
        if char in "\\:=#!" or (char == " " and position == 0):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out.extend(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    return "".join(out)


def unescape(stored: str) -> str:
    plain = _ESCAPE.sub(
        lambda found: (
            chr(int(found[1], 16)) if found[1] else _PLAIN_ESCAPES.get(found[2], found[2])
        ),
        stored,
    )
    # Two escaped surrogates are one character; a lone one must not stop us.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

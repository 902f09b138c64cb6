"""VERSION identifies the file system of a name directory, as Java properties.

See docs/reference/namenode.md#name-directories.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from journal.model import NamespaceInfo

NAME_NODE: Final = "NAME_NODE"
_PLAIN_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\(.)", re.DOTALL)
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:\s]?\s*(.*)", re.DOTALL)


def version_text(info: NamespaceInfo, *, comment: str) -> bytes:
    """Return a name directory's VERSION, as Hadoop writes it; ``comment`` is its first line."""
    pairs = {
        "namespaceID": str(info.namespace_id),
        "clusterID": info.cluster_id,
        "cTime": str(info.ctime),
        "storageType": NAME_NODE,
        "blockpoolID": info.block_pool_id,
        "layoutVersion": str(info.layout_version),
    }
    lines = [f"#{comment}", *(f"{name}={escape(content)}" for name, content in pairs.items())]
    return ("\n".join(lines) + "\n").encode("latin-1")


def parse_version(data: bytes) -> NamespaceInfo:
    """Parse a VERSION file.

    Raises:
        ValueError: if a field is missing or no number, or another kind of node owns the directory.
    """
    found = properties(data)
    owner = found.get("storageType", NAME_NODE)
    if owner != NAME_NODE:
        raise ValueError(f"the directory belongs to a {owner}, not to a {NAME_NODE}")
    needed = ("layoutVersion", "namespaceID", "clusterID", "cTime", "blockpoolID")
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}")
    return NamespaceInfo(
        layout_version=_number(found, "layoutVersion"),
        namespace_id=_number(found, "namespaceID"),
        cluster_id=found["clusterID"],
        ctime=_number(found, "cTime"),
        block_pool_id=found["blockpoolID"],
    )


def _number(found: Mapping[str, str], name: str) -> int:
    try:
        return int(found[name])
    except ValueError:
        raise ValueError(f"its {name} is {found[name]!r}, no number") from None


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
    """Return a value as java.util.Properties stores it."""
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

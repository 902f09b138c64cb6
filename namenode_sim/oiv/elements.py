"""An image's content as elements: one description, printed as Hadoop's XML or as JSON lines.

An element is a tag with a text or number, with ``True`` for a mark, or with more elements.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from ha.record import dataclass

Content: TypeAlias = "str | int | bool | list[Element]"
Element: TypeAlias = "tuple[str, Content]"


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section of the document: what stands in it, made as it is asked for."""

    name: str
    elements: Iterable[Element]
    opening: str = ""
    """What Hadoop prints between the tag and the first element."""
    closing: str = "\n"
    """What Hadoop prints after the section."""
    optional: bool = False
    """Whether Hadoop leaves the section out when nothing is in it."""


_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\\\\\ud800-\udfff\ufffe\uffff&\"'<>]")
_ENTITIES: Final = {"&": "&amp;", '"': "&quot;", "'": "&apos;", "<": "&lt;", ">": "&gt;"}


def _escape(found: re.Match[str]) -> str:
    return _ENTITIES.get(found[0]) or f"\\{ord(found[0]):04x};"


def escape(text: str) -> str:
    """Return a text as Hadoop's viewer prints it: mangled where XML cannot hold it (XMLUtils)."""
    return _ILLEGAL.sub(_escape, text)


_LINE_AFTER: Final = frozenset((
    "inode", "block", "blocks", "file-under-construction", "directory", "ref", "created",
    "deleted", "snapshottableDir", "snapshotCopy", "fileDiff", "dirDiff", "filediff", "dirdiff",
    "pool", "directive", "expiration",
    "ecSchema", "extraOptions", "option",
))  # fmt: skip
_LINE_WITHIN: Final = frozenset(("erasureCodingPolicy", "ecSchema", "extraOptions", "option"))
_TWO_LINES_AFTER: Final = frozenset(("erasureCodingPolicy",))


def xml(element: Element) -> str:
    """Return one element, with line breaks where Hadoop has them."""
    tag, content = element
    if isinstance(content, bool):
        return f"<{tag}/>" if content else ""
    if isinstance(content, int):
        return f"<{tag}>{content}</{tag}>"
    if isinstance(content, str):
        return f"<{tag}>{escape(content)}</{tag}>"
    inner = "".join(map(xml, content))
    within = "\n" if tag in _LINE_WITHIN else ""
    after = "\n" if tag in _LINE_AFTER else "\n\n" if tag in _TWO_LINES_AFTER else ""
    return f"<{tag}>{within}{inner}</{tag}>{after}"


_LISTS: Final = frozenset(("blocks", "acls", "xattrs", "extraOptions", "snapshottableDir"))
"""Elements that hold any number of one kind."""
_REPEATED: Final = frozenset((
    "child", "refChild", "typeQuota", "deletedInode", "deletedInoderef", "created",
    "fileDiff", "dirDiff",
))  # fmt: skip
"""Elements that stand any number of times next to others."""

Plain: TypeAlias = "str | int | bool | list[Plain] | dict[str, Plain]"


def plain(tag: str, content: Content) -> Plain:
    """Return the content of an element as JSON has it."""
    if not isinstance(content, list):
        return content
    if tag in _LISTS:
        return [plain(inner, value) for inner, value in content]
    found: dict[str, Plain] = {}
    for inner, value in content:
        if inner in _REPEATED:
            several = found.setdefault(inner, [])
            assert isinstance(several, list)
            several.append(plain(inner, value))
        else:
            found[inner] = plain(inner, value)
    return found


def json_lines(view: SectionView) -> Iterator[str]:
    """Yield a section as lines: first its own numbers, if any, then one for each thing in it."""
    own: dict[str, Plain] = {}
    items = iter(view.elements)
    first = next(items, None)
    while first is not None and (not isinstance(first[1], list) or first[0] in _LISTS):
        own[first[0]] = plain(*first)
        first = next(items, None)
    if own:
        yield _line({"section": view.name, **own})
    while first is not None:
        yield _line({"section": view.name, first[0]: plain(*first)})
        first = next(items, None)


def _line(found: dict[str, Plain]) -> str:
    return json.dumps(found, separators=(",", ":")) + "\n"

"""The elements below one <DATA>, as a tree that is asked by tag (Hadoop's XMLUtils.Stanza)."""

import re
from enum import IntEnum
from typing import Final, TypeVar

from namenode_sim.oev.xml_text import JAVA_SPACE, unmangle

E = TypeVar("E", bound=IntEnum)

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}")


class Stanza:
    """An element: its text and its children by tag.  Every question raises ValueError."""

    __slots__ = ("children", "text")

    def __init__(self) -> None:
        self.text = ""
        self.children: dict[str, list[Stanza]] = {}

    def child(self, tag: str) -> "Stanza":
        made = Stanza()
        self.children.setdefault(tag, []).append(made)
        return made

    def all(self, tag: str) -> "list[Stanza]":
        return self.children.get(tag, [])

    def one(self, tag: str) -> "Stanza":
        found = self.children.get(tag)
        if found is None:
            raise ValueError(f"there is no <{tag}>")
        if len(found) != 1:
            raise ValueError(f"there are {len(found)} elements <{tag}>; one belongs here")
        return found[0]

    def value(self, tag: str) -> str:
        """Return the text of the only child of that tag, unmangled, without spaces around it."""
        return unmangle(self.one(tag).text).strip(JAVA_SPACE)

    def value_or_none(self, tag: str) -> str | None:
        return self.value(tag) if tag in self.children else None

    def number(self, tag: str) -> int:
        """Return the decimal number in the only child of that tag."""
        text = self.value(tag)
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"<{tag}> holds {text[:40]!r}, which is no number")
        return int(text)

    def number_or_none(self, tag: str) -> int | None:
        return self.number(tag) if tag in self.children else None

    def name(self, tag: str, kind: type[E]) -> E:
        text = self.value(tag)
        try:
            return kind[text]
        except KeyError:
            raise ValueError(f"<{tag}> holds {text[:40]!r}, which is no {kind.__name__}") from None

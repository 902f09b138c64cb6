"""What the commands print, in Hadoop's forms, and as JSON.  Pure but for the local time zone."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from files.cli import modes

_QUOTED: Final = re.compile(r"[^-_.!~*'():@&=+$,;/0-9A-Za-z\x80-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or link.  ``path`` is absolute, ``shown`` as its finder spells it.

    Times are in milliseconds since 1970, lengths in bytes.
    """

    path: str
    shown: str
    kind: str
    length: int = 0
    permission: int = 0
    owner: str = ""
    group: str = ""
    modified: int = 0
    accessed: int = 0
    replication: int = 0
    block_size: int = 0
    has_acl: bool = False
    link: str | None = None

    @property
    def is_directory(self) -> bool:
        """Whether it can have entries."""
        return self.kind == "directory"

    def as_json(self) -> Mapping[str, object]:
        """Return fixed keys; times as in RFC 3339, in UTC."""
        return {
            "path": self.path,
            "type": self.kind,
            "length": self.length,
            "permission": f"{self.permission & modes.ALL:04o}",
            "acl": self.has_acl,
            "owner": self.owner,
            "group": self.group,
            "modified": utc(self.modified, "%Y-%m-%dT%H:%M:%SZ"),
            "accessed": utc(self.accessed, "%Y-%m-%dT%H:%M:%SZ"),
            "replication": self.replication,
            "block_size": self.block_size,
            "link": self.link,
        }


def utc(milliseconds: int, form: str) -> str:
    """Return a moment in UTC."""
    return time.strftime(form, time.gmtime(milliseconds // 1000))


@dataclass(slots=True)
class Columns:
    """The widths of a listing's columns, which only grow from one directory to the next."""

    replication: int = 3
    length: int = 10
    owner: int = 0
    group: int = 0

    def widen(self, entries: Iterable[Entry]) -> None:
        """Make room for these."""
        for one in entries:
            self.replication = max(self.replication, len(str(one.replication)))
            self.length = max(self.length, len(str(one.length)))
            self.owner = max(self.owner, len(one.owner))
            self.group = max(self.group, len(one.group))

    def line(self, one: Entry, *, human: bool) -> str:
        """Return the line of ``ls`` for an entry."""
        kind = "d" if one.is_directory else "-"
        copies = str(one.replication) if one.kind == "file" else "-"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.modified // 1000))
        size = size_text(one.length, human=human)
        owner, group = one.owner.ljust(self.owner), one.group.ljust(self.group)
        rights = kind + modes.shown(one.permission) + ("+" if one.has_acl else " ")
        return (
            f"{rights}{copies:>{self.replication}} {owner} {group} {size:>{self.length}} {when} "
            f"{one.shown}"
        )


def size_text(size: int, *, human: bool) -> str:
    """Return bytes as a number, or as Hadoop's -h does: 1536 is 1.5 K, 1024 is 1 K."""
    if not human or size < 1024:
        return str(size)
    power = (size.bit_length() - 1) // 10
    tenths = (size * 20 // (1 << 10 * power) + 1) // 2
    if tenths >= 10240:
        power, tenths = power + 1, 10
    exact = size % (1 << 10 * power) == 0
    number = str(size >> 10 * power) if exact else f"{tenths // 10}.{tenths % 10}"
    return f"{number} {'KMGTPE'[power - 1]}"


def in_order(entries: Sequence[Entry], by: str, *, backwards: bool) -> Sequence[Entry]:
    """Return entries by ``time`` (newest first), ``size`` (largest first) or ``name``.

    The order of names is that of Hadoop's shell, which compares URIs: a space counts as %20.
    """
    keys = {
        "time": lambda one: -one.modified,
        "size": lambda one: -one.length,
        "name": lambda one: _QUOTED.sub(lambda found: f"%{ord(found[0]):02X}", one.path),
    }
    return sorted(entries, key=keys[by], reverse=backwards)


def usage_lines(rows: Sequence[tuple[int, int, str]], *, human: bool) -> Iterator[str]:
    """Yield the lines of ``du``: bytes, bytes of all replicas, and the path."""
    texts = [(size_text(own, human=human), size_text(all_, human=human)) for own, all_, _ in rows]
    first = max((len(own) for own, _ in texts), default=0)
    second = max((len(all_) for _, all_ in texts), default=0)
    for (own, all_), (_, _, path) in zip(texts, rows, strict=True):
        yield f"{own:<{first}}  {all_:<{second}}  {path}"


def formatted(form: str, one: Entry) -> str:
    """Return what a format of ``stat`` says of an entry; an unknown letter stands for itself."""
    values = {
        "a": f"{one.permission & modes.ALL:o}",
        "A": modes.shown(one.permission),
        "b": one.length,
        "F": "regular file" if one.kind == "file" else one.kind,
        "g": one.group,
        "n": one.path.rpartition("/")[2],
        "o": one.block_size,
        "r": one.replication,
        "u": one.owner,
        "x": utc(one.accessed, "%Y-%m-%d %H:%M:%S"),
        "X": one.accessed,
        "y": utc(one.modified, "%Y-%m-%d %H:%M:%S"),
        "Y": one.modified,
    }
    text = re.sub("%(.)", lambda found: str(values.get(found[1], found[1])), form, flags=re.DOTALL)
    return text.removesuffix("%")

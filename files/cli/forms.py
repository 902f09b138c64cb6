"""What the commands print, in Hadoop's forms, and as JSON."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from files.cli import modes
from ha.record import dataclass

_QUOTED: Final = r"[^-_.!~*'():@&=+$,;/0-9A-Za-z\x80-\U0010ffff]"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, directory or link; ``shown`` is its path as it is to be printed.

    Times are in milliseconds since 1970.
    """

    path: str
    shown: str
    type: str
    length: int = 0
    permission: int = 0
    owner: str = ""
    group: str = ""
    modified: int = 0
    accessed: int = 0
    replication: int = 0
    block_size: int = 0
    acl: bool = False
    link: str | None = None

    @property
    def is_directory(self) -> bool:
        return self.type == "directory"

    def as_json(self) -> Mapping[str, object]:
        """Return fixed keys; times as in RFC 3339."""
        form, facts = "%Y-%m-%dT%H:%M:%SZ", asdict(self)
        del facts["shown"]
        times = {"modified": utc(self.modified, form), "accessed": utc(self.accessed, form)}
        return facts | times | {"permission": f"{self.permission:04o}"}


def utc(milliseconds: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a moment in UTC."""
    return time.strftime(form, time.gmtime(milliseconds // 1000))


def ls_lines(entries: Sequence[Entry], widths: list[int], *, human: bool) -> Iterator[str]:
    """Yield the lines of ``ls``; ``widths`` of columns only grow from one directory to the next."""
    for one in entries:
        columns = (str(one.replication), one.owner, one.group, str(one.length))
        widths[:] = map(max, widths, map(len, columns))
    copies, owner, group, length = widths
    for one in entries:
        rights = "-d"[one.is_directory] + modes.shown(one.permission) + " +"[one.acl]
        number = str(one.replication) if one.type == "file" else "-"
        who = f"{one.owner:<{owner}} {one.group:<{group}}"
        size = f"{size_text(one.length, human=human):>{length}}"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.modified // 1000))
        yield f"{rights}{number:>{copies}} {who} {size} {when} {one.shown}"


def size_text(size: int, *, human: bool = True) -> str:
    """Return bytes as a number, or as Hadoop's -h does: 1536 is 1.5 K, 1024 is 1 K."""
    if not human or size < 1024:
        return str(size)
    power = (size.bit_length() - 1) // 10
    tenths = (size * 20 // (1 << 10 * power) + 1) // 2
    if tenths >= 10240:  # rounded up to 1024 of a unit
        power, tenths = power + 1, 10
    exact = size % (1 << 10 * power) == 0
    number = str(size >> 10 * power) if exact else f"{tenths // 10}.{tenths % 10}"
    return f"{number} {'KMGTPE'[power - 1]}"


def in_order(entries: Sequence[Entry], by: str = "", *, backwards: bool = False) -> list[Entry]:
    """Return entries by ``time`` (newest first) or ``size`` (largest first), and then by name.

    The order of names is that of Hadoop's shell, which compares URIs: a space counts as %20.
    """
    found = sorted(
        entries, key=lambda one: re.sub(_QUOTED, lambda at: f"%{ord(at[0]):02X}", one.path)
    )
    if not by:
        return found[::-1] if backwards else found
    sign = 1 if backwards else -1
    return sorted(found, key=lambda one: sign * (one.modified if by == "time" else one.length))


def du_lines(rows: Sequence[tuple[int, int, str]], *, human: bool) -> Iterator[str]:
    """Yield the lines of ``du``: bytes, bytes of all replicas, and the path."""
    texts = [(*(size_text(one, human=human) for one in row[:2]), row[2]) for row in rows]
    first, second = (max((len(row[at]) for row in texts), default=0) for at in (0, 1))
    for own, all_, path in texts:
        yield f"{own:<{first}}  {all_:<{second}}  {path}"


def formatted(form: str, one: Entry) -> str:
    """Return what a format of ``stat`` says of an entry; an unknown letter stands for itself."""
    values: Mapping[str, object] = {
        "a": f"{one.permission:o}", "A": modes.shown(one.permission), "b": one.length,
        "F": "regular file" if one.type == "file" else one.type, "g": one.group,
        "n": one.path.rpartition("/")[2], "o": one.block_size, "r": one.replication,
        "u": one.owner, "x": utc(one.accessed), "X": one.accessed, "y": utc(one.modified),
        "Y": one.modified,
    }  # fmt: skip
    return re.sub("%(.?)", lambda found: str(values.get(found[1], found[1])), form, flags=re.DOTALL)

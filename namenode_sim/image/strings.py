"""The string table, and the numbers packed with its ids.

From layout -65 on users, groups and names of extended attributes are numbered apart; before, all
share one numbering.

See docs/reference/formats.md#string-table-and-permissions.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ha.record import dataclass, field
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import AclEntry, AclScope, AclType, XAttr, XAttrNamespace
from namenode_sim.image.container import next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.unknown import Kept, check_texts, keep_unknown, restore_unknown

MASKED_LAYOUT: Final = -65
MASK_BITS: Final = 3
_KIND_SHIFT: Final = 32 - MASK_BITS
_SERIAL_MASK: Final = (1 << _KIND_SHIFT) - 1
_RECORD_MASK: Final = (1 << 24) - 1
USER, GROUP, XATTR = 1, 2, 3

_SCOPES: Final = tuple(AclScope)
_TYPES: Final = tuple(AclType)
_NAMESPACES: Final = tuple(XAttrNamespace)

Owner = tuple[str, str, int]
"""User, group and mode."""


def _table() -> dict[int, str]:
    return {0: ""}


@dataclass(frozen=True, slots=True)
class Strings:
    """A loaded string table; id 0 is Java's null, read as the empty string."""

    users: dict[int, str] = field(default_factory=_table)
    groups: dict[int, str] = field(default_factory=_table)
    xattrs: dict[int, str] = field(default_factory=_table)
    raw: dict[int, str] = field(default_factory=dict)
    mask_bits: int = 0
    _owners: dict[int, Owner] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Mapping[int, str], mask_bits: int) -> "Strings":
        """Sort the table's entries by kind.

        Raises:
            ImageError: for a table of another make.
        """
        table = cls(raw=dict(entries), mask_bits=mask_bits)
        if mask_bits not in (0, MASK_BITS):
            raise ImageError(f"its string table has {mask_bits} mask bits, expected 0 or 3")
        kinds = {USER: table.users, GROUP: table.groups, XATTR: table.xattrs}
        for number, text in entries.items():
            if mask_bits == 0:
                for kind in kinds.values():
                    kind[number] = text
            elif number >> _KIND_SHIFT in kinds:
                kinds[number >> _KIND_SHIFT][number & _SERIAL_MASK] = text
        return table

    def owner(self, permission: int) -> Owner:
        """Unpack a permission; raise KeyError if the table lacks a name."""
        found = self._owners.get(permission)
        if found is None:
            user, group = permission >> 40, permission >> 16 & _RECORD_MASK
            found = (self.users[user], self.groups[group], permission & 0xFFFF)
            self._owners[permission] = found
        return found

    def acl_entry(self, bits: int) -> AclEntry:
        """Unpack an entry of an ACL; raise KeyError if the table lacks its name."""
        kind = _TYPES[bits >> 3 & 3]
        serial = bits >> 6 & _RECORD_MASK
        names = self.groups if kind is AclType.GROUP else self.users
        name = names[serial] if serial else None
        return AclEntry(_SCOPES[bits >> 5 & 1], kind, name, bits & 7)

    def xattr(self, bits: int, value: bytes | None) -> XAttr:
        """Unpack an extended attribute; raise KeyError or IndexError if its name is unknown."""
        namespace = _NAMESPACES[bits >> 30 | (bits >> 5 & 1) << 2]
        return XAttr(namespace, self.xattrs[bits >> 6 & _RECORD_MASK], value)


def read_strings(section: Iterator[bytes], kept: Kept) -> Strings:
    """Return the table in STRING_TABLE; ``kept`` takes a header with unknown fields."""
    raw = next_message(section)
    header = pb.StringTableSection.FromString(raw)
    keep_unknown(kept, ("STRING_TABLE", ""), raw, header)
    entries = {}
    for _ in range(header.numEntry):
        entry = pb.StringTableSection.Entry.FromString(next_message(section))
        check_texts(entry)
        entries[entry.id] = entry.str
    return Strings.of(entries, header.maskBits)


class _Serials:
    """One numbering, from 1 on."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.next = 1

    def of(self, text: str) -> int:
        number = self.numbers.get(text)
        if number is None:
            number = self.next
            if number > _RECORD_MASK:
                raise ImageError("more than 16 million names of one kind do not fit in an image")
            self.numbers[text] = number
            self.next += 1
        return number

    def take(self, number: int, text: str) -> None:
        self.numbers.setdefault(text, number)
        self.next = max(self.next, number + 1)


class StringNumbers:
    """Gives out string ids while the sections are written; the table is written last.

    ``layout`` decides on one numbering or three.
    """

    def __init__(self, layout: int) -> None:
        self.masked = layout <= MASKED_LAYOUT
        self._users = _Serials()
        self._groups = _Serials() if self.masked else self._users
        self._xattrs = _Serials() if self.masked else self._users
        self._owners: dict[Owner, int] = {}
        self._seed: dict[int, str] = {}

    @classmethod
    def seeded(cls, table: Strings) -> "StringNumbers":
        """Go on from a loaded table, in its own style: its ids stay, new ones come behind.

        Of two ids of one string the lower is given out.
        """
        numbers = cls(MASKED_LAYOUT if table.mask_bits else MASKED_LAYOUT + 1)
        numbers._seed = dict(table.raw)
        kinds = {USER: numbers._users, GROUP: numbers._groups, XATTR: numbers._xattrs}
        for number, text in sorted(table.raw.items()):
            if not table.mask_bits:
                numbers._users.take(number, text)
            elif number >> _KIND_SHIFT in kinds:
                kinds[number >> _KIND_SHIFT].take(number & _SERIAL_MASK, text)
        return numbers

    def permission(self, owner: Owner) -> int:
        packed = self._owners.get(owner)
        if packed is None:
            user, group, mode = owner
            packed = self._users.of(user) << 40 | self._groups.of(group) << 16 | mode
            self._owners[owner] = packed
        return packed

    def acl_entry(self, entry: AclEntry) -> int:
        names = self._groups if entry.type is AclType.GROUP else self._users
        serial = names.of(entry.name) if entry.name is not None else 0
        return serial << 6 | entry.scope << 5 | entry.type << 3 | entry.permission

    def xattr(self, xattr: XAttr) -> int:
        namespace = xattr.namespace.value
        name = self._xattrs.of(xattr.name)
        return (namespace & 3) << 30 | name << 6 | (namespace >> 2) << 5

    def entries(self) -> Iterator[tuple[int, str]]:
        if not self.masked:
            flat = {number: text for text, number in self._users.numbers.items()}
            yield from sorted((flat | self._seed).items())
            return
        masked = dict(self._seed)
        for kind, serials in ((USER, self._users), (GROUP, self._groups), (XATTR, self._xattrs)):
            masked |= {kind << _KIND_SHIFT | n: text for text, n in serials.numbers.items()}
        yield from sorted(masked.items())


def write_strings(write: Callable[[bytes], None], numbers: StringNumbers, kept: Kept) -> None:
    """Write STRING_TABLE: a header and every string."""
    entries = list(numbers.entries())
    header = pb.StringTableSection(numEntry=len(entries))
    if numbers.masked:
        header.maskBits = MASK_BITS
    restore_unknown(kept, ("STRING_TABLE", ""), header)
    write(delimited(header.SerializeToString()))
    for number, text in entries:
        entry = pb.StringTableSection.Entry(id=number, str=text)
        write(delimited(entry.SerializeToString()))

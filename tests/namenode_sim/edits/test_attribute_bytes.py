"""The bytes of ACLs and extended attributes, and what their readers refuse."""

from struct import error
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from namenode_sim.edits import attributes
from namenode_sim.edits.attributes import acl, read_acl, read_acl_edit, read_xattrs
from namenode_sim.edits.values import AclEntry, AclScope, AclType, XAttr, XAttrNamespace
from tests.namenode_sim.edits.framed_bytes import Read, belong_together, i32

REFUSALS = (ValueError, IndexError, error, DecodeError)


def entry(bits: int, name: str | None = None) -> AclEntry:
    """Make an entry of these bits: its scope, its type in two, its permission in three."""
    return AclEntry(AclScope(bits >> 5), AclType(bits >> 3 & 3), name, bits & 7)


ENTRIES = {
    "the access of an owner": (entry(0), b"\x00"),
    "a user": (entry(0o7, "u"), b"\x47\x00\x01u"),
    "a group": (entry(0o15, "g"), b"\x4d\x00\x01g"),
    "a mask": (entry(0o26), b"\x16"),
    "others": (entry(0o34), b"\x1c"),
    "the default of an owner": (entry(0o41), b"\x21"),
    "the default of a user": (entry(0o43, "u"), b"\x63\x00\x01u"),
    "the default of others": (entry(0o77), b"\x3f"),
    "an empty name": (entry(0o7, ""), b"\x47\x00\x00"),
}


@pytest.mark.parametrize(("one", "written"), ENTRIES.values(), ids=ENTRIES)
def test_an_entry_of_an_acl_is_one_byte_and_a_name(one: AclEntry, written: bytes) -> None:
    belong_together(acl, read_acl, (one,), i32(1) + written)
    belong_together(acl, read_acl, (one,) * 3, i32(3) + written * 3)


def test_no_acl_has_no_entries() -> None:
    belong_together(acl, read_acl, (), i32(0))


LENGTHS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8001",
    16383: "ff7f",
    16384: "808001",
    2**21: "80808001",
}


@pytest.mark.parametrize("length", LENGTHS)
def test_a_message_comes_behind_its_length(length: int) -> None:
    assert attributes.delimited(b"m" * length) == bytes.fromhex(LENGTHS[length]) + b"m" * length


NAMED = b"\x12\x05\x08\x00\x12\x01a"
"""An attribute without a value."""
RULE = b"\x12\x06\x08\x03\x10\x01\x18\x07"
MESSAGES: dict[str, tuple[Read, bytes, tuple[Any, ...]]] = {
    "no attributes": (read_xattrs, b"\x00", ("", ())),
    "no attributes of a path": (read_xattrs, b"\x04\x0a\x02/f", ("/f", ())),
    "an attribute without a value": (
        read_xattrs, b"\x07" + NAMED, ("", (XAttr(XAttrNamespace.USER, "a", None),)),
    ),
    "an empty value": (
        read_xattrs, b"\x09\x12\x07\x08\x04\x12\x01a\x1a\x00",
        ("", (XAttr(XAttrNamespace.RAW, "a", b""),)),
    ),
    "a length in five bytes": (read_xattrs, b"\x84\x80\x80\x80\x00\x0a\x02/f", ("/f", ())),
    "a message of 127 bytes": (read_xattrs, b"\x7f\x0a\x7d" + b"n" * 125, ("n" * 125, ())),
    "a message of 128 bytes": (
        read_xattrs, b"\x80\x01\x0a\x7e" + b"n" * 126, ("n" * 126, ()),
    ),
    "an ACL that goes": (read_acl_edit, b"\x04\x0a\x02/f", ("/f", ())),
    "an ACL": (
        read_acl_edit, b"\x0c\x0a\x02/f" + RULE,
        ("/f", (AclEntry(AclScope.DEFAULT, AclType.OTHER, None, 7),)),
    ),
    "an empty name": (
        read_acl_edit, b"\x0e\x0a\x02/f\x12\x08\x08\x00\x10\x00\x18\x00\x22\x00",
        ("/f", (AclEntry(AclScope.ACCESS, AclType.USER, "", 0),)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_is_read_from_its_bytes(case: str) -> None:
    read, written, content = MESSAGES[case]
    for behind in (b"", b"x" * 9):
        assert read(b"x" + written + behind, 1) == (*content, 1 + len(written))


WRONG: dict[str, tuple[Read, bytes, str | None]] = {
    # None: the words are Python's.
    "less than no entries": (read_acl, i32(-1) + b"\x00", "-1 ACL entries"),
    "more entries than bytes": (read_acl, i32(2) + b"\x00", "2 ACL entries, but 1 bytes"),
    "an entry with a bit that has no meaning": (read_acl, i32(1) + b"\x80", "unknown bits: 0x80"),
    "an entry without its name": (read_acl, i32(1) + b"\x40", None),
    "a message without its last byte": (
        read_xattrs, b"\x04\x0a\x02/", "4 bytes, but 3 are left",
    ),
    "a message of one byte": (read_xattrs, b"\x01\x0a", None),
    "a length in six bytes": (read_xattrs, b"\x84\x80\x80\x80\x80\x00\x0a\x02/f", "32 bits"),
    "an attribute without a name": (read_xattrs, b"\x04\x12\x02\x08\x00", "lacks its namespace"),
    "an attribute without a namespace": (read_xattrs, b"\x05\x12\x03\x12\x01a", "lacks its name"),
    "an ACL without a path": (read_acl_edit, b"\x00", "lacks its path"),
    "a rule without a scope": (
        read_acl_edit, b"\x0a\x0a\x02/f\x12\x04\x08\x00\x18\x07", "lacks its type, scope",
    ),
    "a rule with more than three bits": (
        read_acl_edit, b"\x0c\x0a\x02/f" + RULE[:-1] + b"\x08", "8 is no permission",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "data", "reason"), WRONG.values(), ids=WRONG)
def test_malformed_bytes_are_refused(read: Read, data: bytes, reason: str | None) -> None:
    with pytest.raises(REFUSALS, match=reason):
        read(data, 0)


@pytest.mark.parametrize("bits", [8, -1])
def test_an_entry_has_a_permission_of_three_bits(bits: int) -> None:
    with pytest.raises(ValueError, match=f"^{bits} is no permission"):
        acl((AclEntry(AclScope.ACCESS, AclType.MASK, None, bits),))


def test_messages_are_written_as_they_are_read() -> None:
    assert attributes.xattrs(None, ()) == b"\x00"
    assert attributes.xattrs("/f", ()) == b"\x04\x0a\x02/f"
    assert attributes.acl_edit("/f", (AclEntry(AclScope.DEFAULT, AclType.OTHER, None, 7),)) == (
        b"\x0c\x0a\x02/f" + RULE
    )

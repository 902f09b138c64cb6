"""The bytes of numbers, strings, blocks, ACLs and the like, and what their readers refuse."""

from collections.abc import Callable
from struct import Struct, error
from typing import Any

import pytest
from google.protobuf.message import DecodeError

from namenode_sim.edits.attributes import (
    acl,
    acl_edit,
    delimited,
    read_acl,
    read_acl_edit,
    read_xattrs,
    xattrs,
)
from namenode_sim.edits.primitives import (
    MAX_TEXT_BYTES,
    blocks,
    compact_blocks,
    mode,
    permission,
    read_blocks,
    read_compact_blocks,
    read_mode,
    read_permission,
    read_rpc_ids,
    read_sized,
    read_string,
    read_text,
    read_vint,
    read_vlong,
    rpc_ids,
    string,
    text,
    vint,
    vlong,
)
from namenode_sim.edits.values import (
    NO_RPC_IDS,
    AclEntry,
    AclScope,
    AclType,
    Block,
    Permission,
    RpcIds,
    XAttr,
    XAttrNamespace,
)

Write = Callable[[Any], bytes]
Read = Callable[[bytes, int], tuple[Any, ...]]
i8, i16, i32, i64 = (Struct(form).pack for form in (">b", ">H", ">i", ">q"))
LEAST, GREATEST = -(2**63), 2**63 - 1
REFUSALS = (ValueError, IndexError, error, DecodeError)

VLONGS = {
    0: "00",
    1: "01",
    127: "7f",
    128: "8f80",
    255: "8fff",
    256: "8e0100",
    2**24: "8c01000000",
    2**31 - 1: "8c7fffffff",
    2**31: "8c80000000",
    2**32: "8b0100000000",
    GREATEST: "887fffffffffffffff",
    -1: "ff",
    -112: "90",
    -113: "8770",
    -256: "87ff",
    -257: "860100",
    -(2**31): "847fffffff",
    -(2**31) - 1: "8480000000",
    LEAST: "807fffffffffffffff",
}


@pytest.mark.parametrize("number", VLONGS)
def test_a_number_of_variable_length_says_how_many_bytes_follow(number: int) -> None:
    written = bytes.fromhex(VLONGS[number])
    assert vlong(number) == written
    assert read_vlong(b"x" + written + b"x", 1) == (number, 1 + len(written))
    assert read_vlong(written, 0) == (number, len(written))


@pytest.mark.parametrize("number", VLONGS)
def test_a_short_number_has_at_most_32_bits(number: int) -> None:
    written = bytes.fromhex(VLONGS[number])
    if -(2**31) <= number < 2**31:
        assert vint(number) == written
        assert read_vint(b"x" + written + b"x", 1) == (number, 1 + len(written))
        return
    with pytest.raises(ValueError, match="32 bits"):
        vint(number)
    with pytest.raises(ValueError, match="32 bits"):
        read_vint(written, 0)


@pytest.mark.parametrize("written", ["8f01", "8d000001", "880000000000000001"])
def test_leading_zeros_of_a_number_mean_nothing(written: str) -> None:
    assert read_vlong(bytes.fromhex(written), 0) == (1, len(written) // 2)


@pytest.mark.parametrize("number", [GREATEST + 1, LEAST - 1, 2**200])
def test_a_number_of_more_than_64_bits_is_not_written(number: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        vlong(number)


def entry(bits: int, name: str | None = None) -> AclEntry:
    """An entry of these bits: its scope, its type in two, its permission in three."""
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
    _writes_and_reads(acl, read_acl, (one,), i32(1) + written)
    _writes_and_reads(acl, read_acl, (one,) * 3, i32(3) + written * 3)


def _writes_and_reads(write: Write, read: Read, content: Any, written: bytes) -> None:  # noqa: ANN401
    """A content and its bytes belong to each other, at the end of a frame and within it."""
    assert write(content) == written
    for behind in (b"", b"x" * 300):
        assert read(b"x" + written + behind, 1) == (content, 1 + len(written))


ONE = Block(0x11, 100, 0x1001)
LONG = "n" * 128

FORMS: dict[str, tuple[Write, Read, Any, bytes]] = {
    "no text": (text, read_text, "", b"\x00"),
    "a text": (text, read_text, "é😀", b"\x06" + "é😀".encode()),
    "a text of 127 bytes": (text, read_text, LONG[1:], b"\x7f" + b"n" * 127),
    "a text of 128 bytes": (text, read_text, LONG, b"\x8f\x80" + b"n" * 128),
    "the longest text": (
        text, read_text, "n" * MAX_TEXT_BYTES, b"\x8d\x10\x00\x00" + b"n" * MAX_TEXT_BYTES,
    ),
    "no string": (string, read_string, "", b"\x00\x00"),
    "a string of 256 bytes": (string, read_string, "n" * 256, b"\x01\x00" + b"n" * 256),
    "the longest string": (string, read_string, "n" * 0xFFFF, b"\xff\xff" + b"n" * 0xFFFF),
    "the last character of three bytes": (string, read_string, "\uffff", b"\x00\x03\xef\xbf\xbf"),
    "the first pair of surrogates": (
        string, read_string, "\U00010000", b"\x00\x06\xed\xa0\x80\xed\xb0\x80",
    ),
    "no mode": (mode, read_mode, 0, b"\x00\x00"),
    "every bit of a mode": (mode, read_mode, 0xFFFF, b"\xff\xff"),
    "an owner": (permission, read_permission, Permission("o", "gr", 0o640), b"\x01o\x02gr\x01\xa0"),
    "no owner": (permission, read_permission, Permission("", "", 0), b"\x00\x00\x00\x00"),
    "every bit of an owner's mode": (
        permission, read_permission, Permission("o", "g", 0xFFFF), b"\x01o\x01g\xff\xff",
    ),
    "an owner of 127 bytes": (
        permission, read_permission, Permission(LONG[1:], LONG[1:], 1),
        (b"\x7f" + b"n" * 127) * 2 + b"\x00\x01",
    ),
    "an owner of 128 bytes": (
        permission, read_permission, Permission(LONG, "g", 1),
        b"\x8f\x80" + b"n" * 128 + b"\x01g\x00\x01",
    ),
    "a group of 128 bytes": (
        permission, read_permission, Permission("o", LONG, 1),
        b"\x01o\x8f\x80" + b"n" * 128 + b"\x00\x01",
    ),
    "no blocks": (blocks, read_blocks, (), i32(0)),
    "the least and the greatest block": (
        blocks, read_blocks, (Block(LEAST, LEAST, LEAST), Block(GREATEST, GREATEST, GREATEST)),
        i32(2) + i64(LEAST) * 3 + i64(GREATEST) * 3,
    ),
    "no blocks in short": (compact_blocks, read_compact_blocks, (), b"\x00"),
    "the smallest blocks in short": (
        compact_blocks, read_compact_blocks, (Block(1, 2, 3), Block(4, 2, 3)),
        b"\x02" + i64(1) + b"\x02\x03" + i64(4) + b"\x00\x00",
    ),
    "three blocks in short": (
        compact_blocks, read_compact_blocks, (ONE, Block(-1, 90, 0x1003), Block(2, 95, 0x1002)),
        b"\x03" + i64(0x11) + b"\x64\x8e\x10\x01" + i64(-1) + b"\xf6\x02" + i64(2) + b"\x05\xff",
    ),
    "differences of more than 64 bits": (
        compact_blocks, read_compact_blocks,
        (Block(1, GREATEST, LEAST), Block(2, LEAST, GREATEST), Block(3, GREATEST, LEAST)),
        b"\x03" + i64(1) + b"\x88\x7f" + b"\xff" * 7 + b"\x80\x7f" + b"\xff" * 7
        + i64(2) + b"\x01\xff" + i64(3) + b"\xff\x01",
    ),
    "a difference of just 64 bits": (
        compact_blocks, read_compact_blocks, (Block(1, -1, 1), Block(2, GREATEST, -GREATEST)),
        b"\x02" + i64(1) + b"\xff\x01" + i64(2) + b"\x80\x7f" + b"\xff" * 7
        + b"\x80\x7f" + b"\xff" * 7,
    ),
    "no call": (rpc_ids, read_rpc_ids, NO_RPC_IDS, i16(0) + i32(-2)),
    "a call of nobody": (rpc_ids, read_rpc_ids, RpcIds(b"", 3), i16(0) + i32(3)),
    "a call": (
        rpc_ids, read_rpc_ids, RpcIds(bytes(range(16)), -3), i16(16) + bytes(range(16)) + i32(-3),
    ),
    "a call of a short id": (rpc_ids, read_rpc_ids, RpcIds(b"abc", 3), i16(3) + b"abc" + i32(3)),
    "a call of 17 bytes": (
        rpc_ids, read_rpc_ids, RpcIds(b"n" * 17, 3), i16(17) + b"n" * 17 + i32(3),
    ),
    "a call of a long id": (
        rpc_ids, read_rpc_ids, RpcIds(b"n" * 0xFFFF, -2), i16(0xFFFF) + b"n" * 0xFFFF + i32(-2),
    ),
    "no ACL": (acl, read_acl, (), i32(0)),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_a_form_has_its_bytes(case: str) -> None:
    _writes_and_reads(*FORMS[case])


def test_a_missing_call_is_one_object() -> None:
    assert read_rpc_ids(rpc_ids(NO_RPC_IDS), 0)[0] is NO_RPC_IDS


@pytest.mark.parametrize("case", ["an owner", "no owner", "an owner of 127 bytes"])
def test_equal_owners_share_an_object(case: str) -> None:
    _, read, _, written = FORMS[case]
    assert read(written, 0)[0] is read(b"x" + written, 1)[0]


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
    assert delimited(b"m" * length) == bytes.fromhex(LENGTHS[length]) + b"m" * length


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
def test_a_message_says_what_it_says(case: str) -> None:
    read, written, content = MESSAGES[case]
    for behind in (b"", b"x" * 9):
        assert read(b"x" + written + behind, 1) == (*content, 1 + len(written))


def sized(data: bytes, pos: int) -> tuple[bytes, int]:
    """At most three bytes behind their length."""
    return read_sized(data, pos, 3)


def test_as_many_bytes_as_are_allowed_are_read() -> None:
    assert sized(b"\x03abc", 0) == (b"abc", 4)
    assert sized(b"\x00", 0) == (b"", 1)


WRONG: dict[str, tuple[Read, bytes, str | None]] = {
    # None: the words are Python's.
    "a number without its last byte": (read_vlong, b"\x8e\x01", "2 bytes, but 1 are left"),
    "a number of 64 bits and a sign": (read_vlong, b"\x88\x80" + bytes(7), "64 bits"),
    "a negative number below 64 bits": (read_vlong, b"\x80\x80" + bytes(7), "64 bits"),
    "a length of less than nothing": (sized, b"\xffabc", "a length of -1"),
    "a length above the limit": (sized, b"\x04abcd", "a length of 4"),
    "a length above what is left": (sized, b"\x03ab", "a length of 3, but 2 bytes are left"),
    "a text above the limit": (
        read_text, b"\x8d\x10\x00\x01" + b"n" * (MAX_TEXT_BYTES + 1), "a length of 1048577",
    ),
    "a text of other bytes": (read_text, b"\x01\xff", "can't decode"),
    "a string without its last byte": (read_string, b"\x00\x03ab", "3 bytes, but 2 are left"),
    "an owner of less than no bytes": (read_permission, b"\xff\x01g\x00\x00", "a length of -1"),
    "a group of less than no bytes": (read_permission, b"\x01o\xff\x00\x00", "a length of -1"),
    "an owner cut short": (read_permission, b"\x01o\x01g\x00", None),
    "an owner cut in the group": (read_permission, b"\x01o\x02g", None),
    "less than no blocks": (read_blocks, i32(-1) + bytes(24), "-1 blocks"),
    "a block without its last byte": (read_blocks, i32(1) + bytes(23), "1 blocks, but 23 bytes"),
    "less than no blocks in short": (read_compact_blocks, b"\xff" + bytes(20), "-1 blocks"),
    "a block in short cut": (read_compact_blocks, b"\x01" + bytes(9), "1 blocks, but 9 bytes"),
    "more blocks in short than are left": (
        read_compact_blocks, b"\x02" + bytes(19), "2 blocks, but 19 bytes",
    ),
    "the last block in short cut": (
        read_compact_blocks, b"\x02" + i64(1) + b"\x00\x8e\x10\x00" + i64(1) + b"\x00", None,
    ),
    "a call without its last byte": (read_rpc_ids, i16(16) + bytes(19), None),
    "no call without its last byte": (read_rpc_ids, i16(0) + bytes(3), "0 bytes, but 3 are left"),
    "a short id without its last byte": (
        read_rpc_ids, i16(3) + b"abc" + bytes(3), "3 bytes, but 6 are left",
    ),
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
def test_bytes_that_say_nothing_are_refused(read: Read, data: bytes, reason: str | None) -> None:
    with pytest.raises(REFUSALS, match=reason):
        read(data, 0)


TOO_MUCH: dict[str, tuple[Write, Any, str]] = {
    "a text": (text, "n" * (MAX_TEXT_BYTES + 1), "1048577 bytes"),
    "a string": (string, "n" * 65536, "65536 bytes"),
    "a string that grows in surrogates": (string, "😀" * 10923, "65538 bytes"),
    "an id of a client": (rpc_ids, RpcIds(b"n" * 65536, 1), "65536 bytes"),
    "a permission of four bits": (acl, (AclEntry(AclScope.ACCESS, AclType.MASK, None, 8),), "8 is"),
    "less than no permission": (acl, (AclEntry(AclScope.ACCESS, AclType.MASK, None, -1),), "-1 is"),
}


@pytest.mark.parametrize(("write", "content", "reason"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_a_form_cannot_hold_is_not_written(write: Write, content: Any, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=reason):
        write(content)


def test_messages_are_written_as_they_are_read() -> None:
    assert xattrs(None, ()) == b"\x00"
    assert xattrs("/f", ()) == b"\x04\x0a\x02/f"
    assert acl_edit("/f", (AclEntry(AclScope.DEFAULT, AclType.OTHER, None, 7),)) == (
        b"\x0c\x0a\x02/f" + RULE
    )

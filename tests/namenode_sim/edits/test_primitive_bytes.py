"""The bytes of numbers, strings, blocks and the like, and what their readers refuse."""

from struct import error
from typing import Any

import pytest

from hadoop.writable import (
    MAX_TEXT_BYTES,
    read_sized,
    read_text,
    read_vint,
    read_vlong,
    text,
    vint,
    vlong,
)
from namenode_sim.edits.primitives import (
    blocks,
    compact_blocks,
    mode,
    permission,
    read_blocks,
    read_compact_blocks,
    read_mode,
    read_permission,
    read_rpc_ids,
    read_string,
    rpc_ids,
    string,
)
from namenode_sim.edits.values import NO_RPC_IDS, Block, Permission, RpcIds
from tests.namenode_sim.edits import framed_bytes
from tests.namenode_sim.edits.framed_bytes import GREATEST, LEAST, Read, Write, i32, i64, u16

REFUSALS = (ValueError, IndexError, error)

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
    "no call": (rpc_ids, read_rpc_ids, NO_RPC_IDS, u16(0) + i32(-2)),
    "a call of nobody": (rpc_ids, read_rpc_ids, RpcIds(b"", 3), u16(0) + i32(3)),
    "a call": (
        rpc_ids, read_rpc_ids, RpcIds(bytes(range(16)), -3), u16(16) + bytes(range(16)) + i32(-3),
    ),
    "a call of a short id": (rpc_ids, read_rpc_ids, RpcIds(b"abc", 3), u16(3) + b"abc" + i32(3)),
    "a call of 17 bytes": (
        rpc_ids, read_rpc_ids, RpcIds(b"n" * 17, 3), u16(17) + b"n" * 17 + i32(3),
    ),
    "a call of a long id": (
        rpc_ids, read_rpc_ids, RpcIds(b"n" * 0xFFFF, -2), u16(0xFFFF) + b"n" * 0xFFFF + i32(-2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMS)
def test_a_form_has_its_bytes(case: str) -> None:
    framed_bytes.belong_together(*FORMS[case])


def test_a_missing_call_is_one_object() -> None:
    assert read_rpc_ids(rpc_ids(NO_RPC_IDS), 0)[0] is NO_RPC_IDS


@pytest.mark.parametrize("case", ["an owner", "no owner", "an owner of 127 bytes"])
def test_equal_owners_share_an_object(case: str) -> None:
    _, read, _, written = FORMS[case]
    assert read(written, 0)[0] is read(b"x" + written, 1)[0]


def sized(data: bytes, pos: int) -> tuple[bytes, int]:
    """Read at most three bytes behind their length."""
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
    "a call without its last byte": (read_rpc_ids, u16(16) + bytes(19), None),
    "no call without its last byte": (read_rpc_ids, u16(0) + bytes(3), "0 bytes, but 3 are left"),
    "a short id without its last byte": (
        read_rpc_ids, u16(3) + b"abc" + bytes(3), "3 bytes, but 6 are left",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("read", "data", "reason"), WRONG.values(), ids=WRONG)
def test_malformed_bytes_are_refused(read: Read, data: bytes, reason: str | None) -> None:
    with pytest.raises(REFUSALS, match=reason):
        read(data, 0)


TOO_MUCH: dict[str, tuple[Write, Any, str]] = {
    "a text": (text, "n" * (MAX_TEXT_BYTES + 1), "1048577 bytes"),
    "a string": (string, "n" * 65536, "65536 bytes"),
    "a string that grows in surrogates": (string, "😀" * 10923, "65538 bytes"),
    "an id of a client": (rpc_ids, RpcIds(b"n" * 65536, 1), "65536 bytes"),
}


@pytest.mark.parametrize(("write", "content", "reason"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_a_form_cannot_hold_is_not_written(write: Write, content: Any, reason: str) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=reason):
        write(content)

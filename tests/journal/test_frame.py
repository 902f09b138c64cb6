"""The fast walk over frames gives the same result as a slow, simple one, for any bytes."""

import struct
from typing import Any, Final
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from journal.frame import HEADER_BYTES, MAX_OP_BYTES, Scan, file_header, read_header, scan
from journal.model import LAYOUT_VERSION, TxId


def frame(txid: int, body: bytes, opcode: int = 3) -> bytes:
    head = struct.pack(">BiQ", opcode, 12 + len(body), txid) + body
    return head + struct.pack(">I", crc32(head))


def obvious_scan(
    data: bytes, *, expected: int | None, last_wanted: int | None, max_op_bytes: int
) -> tuple[int | None, int | None, int, int, str | None]:
    """First, last, count and end; and what kind of damage."""
    found: list[int] = []
    position = 0
    while position < len(data) and (last_wanted is None or not found or found[-1] < last_wanted):
        rest = data[position:]
        if rest[0] == 0xFF:
            damage = "padding" if rest.strip(b"\xff\x00") else None
            return _result(found, position, damage)
        if len(rest) < 17:
            return _result(found, position, "short")
        _, length, txid = struct.unpack(">BiQ", rest[:13])
        if not 12 <= length <= max_op_bytes - 5:
            return _result(found, position, "claims")
        if len(rest) < length + 5:
            return _result(found, position, "short")
        if crc32(rest[: length + 1]) != int.from_bytes(rest[length + 1 : length + 5], "big"):
            return _result(found, position, "checksum")
        if expected is not None and txid != expected:
            return _result(found, position, "stands where")
        found.append(txid)
        expected = txid + 1
        position += length + 5
    return _result(found, position, None)


def _result(
    found: list[int], position: int, damage: str | None
) -> tuple[int | None, int | None, int, int, str | None]:
    return (found[0] if found else None, found[-1] if found else None, len(found), position, damage)


def agrees(found: Scan, expected: tuple[int | None, int | None, int, int, str | None]) -> bool:
    damage = expected[4]
    same = (found.first, found.last, found.count, found.end) == expected[:4]
    return same and (found.damage is None if damage is None else damage in (found.damage or ""))


SOUND = frame(1, b"") + frame(2, b"") + frame(3, b"")
TXIDS = st.sampled_from([1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 5, -3])
"""Mostly the next one."""
BODIES = st.one_of(
    st.integers(0, 40), st.sampled_from([4083, 4084, 4085, 9000]), st.integers(0, 3)
).map(bytes)


@st.composite
def runs(draw: st.DrawFn) -> bytes:
    """Frames, mostly consecutive, with something behind them."""
    txid, data = draw(st.sampled_from([0, 1, 6, 2**62 - 3, 2**62, 2**63 - 2, 2**64 - 3])), b""
    for body in draw(st.lists(BODIES, max_size=12)):
        opcode = draw(st.sampled_from([3] * 8 + [0, 255]))
        data += frame(txid % 2**64, body, opcode)
        txid += draw(TXIDS)
    tail = draw(st.sampled_from([b"", b"", b"\xff", b"\xff" * 40, b"\xff\x00\x01", b"\0" * 20]))
    return data + tail


@settings(max_examples=1500)
@given(
    data=runs(),
    flips=st.lists(st.integers(0, 10**6), max_size=2),
    cut=st.one_of(st.just(0), st.integers(0, 60)),
    expected=st.sampled_from([None, None, 1, 6, 7]),
    wanted=st.sampled_from([None, None, 0, 3, 7, 10, 2**62 + 1]),
    longest=st.sampled_from([MAX_OP_BYTES, MAX_OP_BYTES, 40, 4101]),
)
@example(SOUND + frame(4, b"", 255) + frame(5, b""), [], 0, 1, None, MAX_OP_BYTES)
@example(SOUND + frame(4, b"x" * 30) + frame(5, b""), [], 0, 1, None, 40)
def test_the_fast_walk_judges_as_the_obvious_one(
    data: bytes, flips: list[int], cut: int, expected: int | None, wanted: int | None, longest: int
) -> None:
    damaged = bytearray(data)
    for flip in flips:
        if data:
            damaged[flip // 8 % len(data)] ^= 1 << flip % 8
    found_in = bytes(damaged[: len(damaged) - cut])
    found = scan(
        found_in,
        expected=None if expected is None else TxId(expected),
        last_wanted=None if wanted is None else TxId(wanted),
        max_op_bytes=longest,
    )
    obvious = obvious_scan(found_in, expected=expected, last_wanted=wanted, max_op_bytes=longest)
    assert agrees(found, obvious), (found, obvious)


# ---- the header ----------------------------------------------------------------------------


def header(layout: int, flags: int = 0) -> bytes:
    return struct.pack(">ii", layout, flags)


@pytest.mark.parametrize("layout", [-16, -17, LAYOUT_VERSION])
@pytest.mark.parametrize("behind", [b"", b"\xff" * 30], ids=["nothing more", "padding"])
def test_a_header_announces_its_layout(layout: int, behind: bytes) -> None:
    assert file_header(layout) == header(layout)
    assert len(file_header()) == HEADER_BYTES
    assert read_header(file_header(layout) + behind) == layout


NO_HEADERS: Final = {
    "nothing": (b"", "ends inside its header"),
    "a byte too few": (header(-63)[:-1], "ends inside its header"),
    "preallocated": (b"\xff" * 40, "never written"),
    "a layout before flags and checksums": (header(-15), "corrupt"),
    "another one": (header(-2), "corrupt"),
    "a layout above zero": (header(63), "corrupt"),
    "flags": (header(-63, 1), "corrupt"),
    "other flags": (header(-63, -1), "corrupt"),
    "neither is right": (header(0, 2), "corrupt"),
}


@pytest.mark.parametrize(("data", "why"), NO_HEADERS.values(), ids=NO_HEADERS.keys())
def test_what_is_no_header(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_header(data)


# ---- what a run of frames holds ------------------------------------------------------------


def run(first: int, *sizes: int) -> bytes:
    """Consecutive frames with bodies of these sizes."""
    return b"".join(frame(first + i, bytes([i + 1]) * size) for i, size in enumerate(sizes))


def claiming(length: int, txid: int, body: bytes = b"") -> bytes:
    head = struct.pack(">BiQ", 3, length, txid) + body
    return head + struct.pack(">I", crc32(head))


def tiny() -> tuple[int, bytes]:
    """Make a frame shorter than any can be, with a right checksum, and the txid read of it.

    The txid goes on behind the frame's end: the checksum is a part of it.
    """
    txid = crc32(struct.pack(">BiB", 3, 5, 0)) << 24
    return txid, struct.pack(">BiQ", 3, 5, txid) + bytes(40)


def spoiled(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


FIVE: Final = run(5, 0, 3, 3, 0, 8)
"""Edits 5 to 9, in 99 bytes."""
TINY_TXID, TINY = tiny()

Options = dict[str, int]
Found = tuple[int | None, int | None, int, int]
RUNS: Final[dict[str, tuple[bytes, Options, Found, str | None]]] = {
    "nothing": (b"", {}, (None, None, 0, 0), None),
    "one frame": (frame(5, b""), {}, (5, 5, 1, 17), None),
    "two frames": (run(5, 0, 0), {}, (5, 6, 2, 34), None),
    "five frames": (FIVE, {}, (5, 9, 5, 99), None),
    "the first that is expected": (FIVE, {"expected": 5}, (5, 9, 5, 99), None),
    "another than is expected": (FIVE, {"expected": 4}, (None, None, 0, 0), "5 stands where 4"),
    "behind other bytes": (b"header.." + FIVE, {"start": 8}, (5, 9, 5, 107), None),
    "behind a frame": (FIVE, {"start": 17, "expected": 6}, (6, 9, 4, 99), None),
    "not behind the last wanted": (FIVE, {"last_wanted": 7}, (5, 7, 3, 57), None),
    "not behind the wanted first": (FIVE, {"last_wanted": 5}, (5, 5, 1, 17), None),
    "not behind the wanted second": (FIVE, {"last_wanted": 6}, (5, 6, 2, 37), None),
    "all are wanted": (FIVE, {"last_wanted": 9}, (5, 9, 5, 99), None),
    "more is wanted": (FIVE, {"last_wanted": 10}, (5, 9, 5, 99), None),
    "from zero": (run(0, 0, 0, 0), {"last_wanted": 0}, (0, 0, 1, 17), None),
    "wanted before damage": (FIVE[:57] + b"ruin" * 9, {"last_wanted": 7}, (5, 7, 3, 57), None),
    "damage behind it": (FIVE[:57] + b"ruin" * 9, {}, (5, 7, 3, 57), "claims"),
    "a gap behind the first": (run(5, 0) + run(7, 0, 0), {}, (5, 5, 1, 17), "7 stands where 6"),
    "a gap behind others": (FIVE + run(11, 0, 0), {}, (5, 9, 5, 99), "11 stands where 10"),
    "one twice": (FIVE + run(9, 8, 0, 0), {}, (5, 9, 5, 99), "9 stands where 10"),
    "a first frame is spoiled": (spoiled(FIVE, 14), {}, (None, None, 0, 0), "of transaction 5"),
    "a second one": (spoiled(FIVE, 31), {}, (5, 5, 1, 17), "of transaction 6"),
    "one among others": (spoiled(FIVE, 51), {}, (5, 6, 2, 37), "of transaction 7"),
    "the last one": (spoiled(FIVE, 98), {}, (5, 8, 4, 74), "of transaction 9"),
    "preallocated bytes": (FIVE + b"\xff" * 40, {}, (5, 9, 5, 99), None),
    "one byte of padding": (FIVE + b"\xff", {}, (5, 9, 5, 99), None),
    "zeros behind a terminator": (FIVE + b"\xff" + bytes(40), {}, (5, 9, 5, 99), None),
    "bytes behind it": (FIVE + b"\xff\0\1\0", {}, (5, 9, 5, 99), "nor padding"),
    "padding alone": (b"\xff" * 30, {}, (None, None, 0, 0), None),
    "zeros": (FIVE + bytes(40), {}, (5, 9, 5, 99), "claims 0 bytes"),
    "a terminator is a frame's opcode": (
        frame(5, b"", 255) + frame(6, b""), {}, (None, None, 0, 0), "nor padding"
    ),
    "a second frame's": (
        frame(5, b"") + frame(6, b"", 255) + frame(7, b""), {}, (5, 5, 1, 17), "nor padding"
    ),
    "a later frame's": (
        FIVE + frame(10, b"", 255) + run(11, 0, 0), {}, (5, 9, 5, 99), "nor padding"
    ),
    "other high opcodes are frames": (
        run(5, 0, 0) + frame(7, b"", 254) + frame(8, b"", 0) + run(9, 0, 0), {}, (5, 10, 6, 102),
        None,
    ),
    "too short for any frame": (FIVE + claiming(11, 10), {}, (5, 9, 5, 99), "claims 11 bytes"),
    "a negative length": (FIVE + claiming(-5, 10, bytes(40)), {}, (5, 9, 5, 99), "claims -5"),
    "the least length": (FIVE + claiming(12, 10), {}, (5, 10, 6, 116), None),
    "a right checksum inside a txid": (
        run(TINY_TXID - 1, 0) + TINY, {}, (TINY_TXID - 1, TINY_TXID - 1, 1, 17), "claims 5 bytes"
    ),
    "as long as an edit may be": (
        FIVE + claiming(MAX_OP_BYTES - 5, 10), {}, (5, 9, 5, 99), "bytes is cut short"
    ),
    "longer": (FIVE + claiming(MAX_OP_BYTES - 4, 10), {}, (5, 9, 5, 99), "claims"),
    "as long as is allowed": (run(5, 0, 23), {"max_op_bytes": 40}, (5, 6, 2, 57), None),
    "longer than is allowed": (
        run(5, 0, 24, 0), {"max_op_bytes": 40}, (5, 5, 1, 17), "claims 36 bytes"
    ),
    "few bytes that claim too much": (
        FIVE + struct.pack(">BiQ", 3, -1, 10) + b"x", {}, (5, 9, 5, 99), "is cut short: 14"
    ),
    "the last txids": (run(2**64 - 3, 0, 0, 0), {}, (2**64 - 3, 2**64 - 1, 3, 51), None),
}  # fmt: skip


@pytest.mark.parametrize(("data", "options", "holds", "damage"), RUNS.values(), ids=RUNS.keys())
def test_what_a_run_of_frames_holds(
    data: bytes, options: dict[str, Any], holds: Found, damage: str | None
) -> None:
    assert agrees(found := scan(data, **options), (*holds, damage)), found


LIMITS: Final = [MAX_OP_BYTES, 4100]
"""With a low one each frame is looked at by itself."""


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("tail", [b"", b"\xff" * 20], ids=["nothing more", "padding"])
def test_a_run_may_be_cut_anywhere(limit: int, tail: bytes) -> None:
    for size in range(len(FIVE) + 1):
        data = FIVE[:size] + tail
        asked = {"expected": 5, "last_wanted": None, "max_op_bytes": limit}
        _holds_as_the_obvious_one_says(data, asked)


@pytest.mark.parametrize("limit", LIMITS)
def test_any_bit_may_be_wrong(limit: int) -> None:
    asked = {"expected": 5, "last_wanted": None, "max_op_bytes": limit}
    for at in range(len(FIVE) * 8):
        data = bytearray(FIVE)
        data[at // 8] ^= 1 << at % 8
        _holds_as_the_obvious_one_says(bytes(data), asked)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("first", [0, 1, 5])
def test_what_is_wanted_and_expected(limit: int, first: int) -> None:
    """Look at one frame always, whatever is wanted."""
    data = run(first, 3, 0, 0, 3, 3) + run(first + 6, 0, 0)
    for wanted in (None, *range(-1, first + 9)):
        for expected in (None, first - 1, first, first + 1):
            asked = {"expected": expected, "last_wanted": wanted, "max_op_bytes": limit}
            _holds_as_the_obvious_one_says(data, asked)


def _holds_as_the_obvious_one_says(data: bytes, asked: dict[str, Any]) -> None:
    found, obvious = scan(data, **asked), obvious_scan(data, **asked)
    assert agrees(found, obvious), (data, asked, found, obvious)

"""The fast walk over frames gives the same result as a slow, simple one, for any bytes."""

import struct
from zlib import crc32

from hypothesis import example, given, settings
from hypothesis import strategies as st

from journal.frame import MAX_OP_BYTES, Scan, scan
from journal.model import TxId


def frame(txid: int, body: bytes, opcode: int = 3) -> bytes:
    """One framed edit."""
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

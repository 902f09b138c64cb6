"""Edits out of a stream of bytes, however the bytes are cut."""

import struct
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.frame import MAX_OP_BYTES, file_header
from journal.model import TxId
from journal.reader.frame_stream import Chunk, FrameReader

PADDING = b"\xff" * 64


def op(txid: int, body: bytes = b"") -> bytes:
    """One framed edit."""
    head = struct.pack(">Biq", 3, 12 + len(body), txid) + body
    return head + struct.pack(">I", zlib.crc32(head))


def ops(first: int, last: int) -> bytes:
    return b"".join(op(txid, bytes([txid % 251]) * (txid % 7)) for txid in range(first, last + 1))


def read(data: bytes, cuts: list[int], frames: FrameReader) -> list[Chunk]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[a:b] for a, b in pairwise(places)]
    return [chunk for piece in pieces if (chunk := frames.feed(piece)) is not None]


@given(cuts=st.lists(st.integers(0, 2000)), wanted=st.integers(1, 25), padded=st.booleans())
def test_the_cuts_do_not_matter(cuts: list[int], wanted: int, padded: bool) -> None:
    data = file_header() + ops(5, 24) + (PADDING if padded else b"")
    frames = FrameReader(TxId(5), wanted=TxId(wanted), last=TxId(24))
    chunks = read(data, cuts, frames)
    begin = max(wanted, 5)
    assert b"".join(chunk.records for chunk in chunks) == ops(begin, 24)
    assert frames.complete
    expected = begin
    for chunk in chunks:
        assert chunk.first == expected
        assert chunk.layout_version == -65
        expected = chunk.last + 1
    assert expected == 25


@given(cuts=st.lists(st.integers(0, 2000)), end=st.integers(5, 24))
def test_nothing_behind_the_last_wanted_edit_is_believed(cuts: list[int], end: int) -> None:
    """Recovery renames without truncating, so a finalized file may have a tail."""
    frames = FrameReader(TxId(5), wanted=TxId(1), last=TxId(end))
    chunks = read(file_header() + ops(5, end) + b"garbage" * 9, cuts, frames)
    assert b"".join(chunk.records for chunk in chunks) == ops(5, end)


@given(cuts=st.lists(st.integers(0, 2000)))
def test_an_open_segment_is_read_up_to_its_padding(cuts: list[int]) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=None)
    chunks = read(file_header() + ops(5, 12) + PADDING, cuts, frames)
    assert b"".join(chunk.records for chunk in chunks) == ops(5, 12)
    assert frames.next_txid == 13


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


DAMAGE = {
    "a flipped bit": flipped(file_header() + ops(5, 24), 100),
    "a missing edit": file_header() + ops(5, 9) + ops(11, 24),
    "an edit twice": file_header() + ops(5, 9) + ops(9, 24),
    "another segment": file_header() + ops(6, 24),
    "padding before the end": file_header() + ops(5, 9) + PADDING,
    "a length beyond all limits": file_header()
    + struct.pack(">Biq", 3, MAX_OP_BYTES, 5)
    + b"x" * 9,
    "a negative length": file_header() + struct.pack(">Biq", 3, -1, 5) + b"x" * 9,
    "a header that was never written": PADDING,
}


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_damage_is_named_and_nothing_behind_it_read(data: bytes, size: int) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=TxId(24))
    with pytest.raises(ValueError, match=r"transaction \d+|header"):
        read(data, list(range(0, len(data), size)), frames)
    assert not frames.complete


def test_a_file_that_ends_early_is_not_complete() -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=TxId(24))
    read(file_header() + ops(5, 20), [], frames)
    assert not frames.complete
    assert frames.next_txid == 21

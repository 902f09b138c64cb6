"""Edits out of a stream of bytes, however the bytes are cut."""

import struct
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.frame import MAX_OP_BYTES, MIN_FRAME_BYTES, file_header
from journal.model import TxId
from journal.reader.frame_stream import Chunk, FrameReader, split

PADDING = b"\xff" * 64


def op(txid: int, body: bytes = b"") -> bytes:
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


def head_of(length: int, opcode: int = 3) -> bytes:
    return struct.pack(">Biq", opcode, length, 5)


DAMAGE = {
    "a flipped bit": flipped(file_header() + ops(5, 24), 100),
    "a missing edit": file_header() + ops(5, 9) + ops(11, 24),
    "an edit twice": file_header() + ops(5, 9) + ops(9, 24),
    "another segment": file_header() + ops(6, 24),
    "padding before the end": file_header() + ops(5, 9) + PADDING,
    "padding that would be a length": file_header() + ops(5, 9) + b"\xff\0" + PADDING,
    "a length beyond all limits": file_header() + head_of(MAX_OP_BYTES) + b"x" * 9,
    "a negative length": file_header() + head_of(-1) + b"x" * 9,
    "a header that was never written": PADDING,
}


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("wanted", [1, 24])
def test_damage_is_named_and_nothing_behind_it_read(data: bytes, size: int, wanted: int) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(wanted), last=TxId(24))
    with pytest.raises(ValueError, match=r"transaction \d+|header"):
        read(data, list(range(0, len(data), size)), frames)
    assert not frames.complete


def test_a_file_that_ends_early_is_not_complete() -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=TxId(24))
    read(file_header() + ops(5, 20), [], frames)
    assert not frames.complete
    assert frames.next_txid == 21


#   what comes at once behind a sound header; the first txid that is wrong
AT_ONCE = {
    "the first edit's checksum": (flipped(op(5), MIN_FRAME_BYTES - 1), 5),
    "the last edit's checksum": (flipped(op(5) + op(6), 2 * MIN_FRAME_BYTES - 1), 6),
    "a long edit's checksum": (op(5) + flipped(op(6, b"x" * 9), MIN_FRAME_BYTES), 6),
    "a checksum, with a part of the next edit": (flipped(op(5), 16) + op(6)[:5], 5),
    "a length that is too small": (head_of(11) + b"x" * 4, 5),
    "a length one byte beyond the limit": (head_of(MAX_OP_BYTES - 4) + b"x" * 4, 5),
    "padding in the place of the first edit": (PADDING, 5),
    "padding in the place of the last edit": (ops(5, 6) + PADDING, 7),
    "one byte of padding": (ops(5, 6) + b"\xff", 7),
    "a byte behind the terminator": (ops(5, 6) + b"\xff\x01", 7),
    "a likely length behind the terminator": (ops(5, 6) + head_of(500, 0xFF) + b"x" * 9, 7),
}


@pytest.mark.parametrize("wanted", [1, 7])
@pytest.mark.parametrize(("data", "txid"), AT_ONCE.values(), ids=AT_ONCE.keys())
def test_what_can_be_no_beginning_of_an_edit_is_refused_at_once(
    data: bytes, txid: int, wanted: int
) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(wanted), last=TxId(7))
    with pytest.raises(ValueError, match=rf"transaction {txid}\b"):
        frames.feed(file_header() + data)


#   what came behind a sound header; the edits that are known by then
UNFINISHED = {
    "no byte": (b"", 0),
    "one byte": (op(5)[:1], 0),
    "all but a byte of the shortest edit": (op(5)[:-1], 0),
    "all but a byte of a long edit": (op(5, b"x" * 30)[:-1], 0),
    "an edit and one byte": (op(5) + op(6)[:1], 1),
    "an edit and all but a byte of the next": (op(5) + op(6, b"x" * 30)[:-1], 1),
    "as many bytes as the shortest edit has": (op(5) + op(6, b"x")[:MIN_FRAME_BYTES], 1),
    "the beginning of the longest edit": (head_of(MAX_OP_BYTES - 5) + b"x" * 30, 0),
    "an edit, whole": (op(5), 1),
    "two edits, whole": (op(5) + op(6), 2),
}


@pytest.mark.parametrize(("data", "known"), UNFINISHED.values(), ids=UNFINISHED.keys())
def test_the_beginning_of_an_edit_is_kept_for_the_next_piece(data: bytes, known: int) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=TxId(24))
    chunk = frames.feed(file_header() + data)
    assert (0 if chunk is None else chunk.last - chunk.first + 1) == known
    assert frames.next_txid == 5 + known


def test_a_header_is_judged_by_its_last_byte() -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=None)
    assert frames.feed(PADDING[:7]) is None
    with pytest.raises(ValueError, match="header"):
        frames.feed(PADDING[:1])


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("wanted", [5, 13, 14, 20])
def test_an_open_segment_ends_at_its_padding(wanted: int, *, together: bool) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(wanted), last=None)
    chunk = frames.feed(file_header() + ops(5, 12) + (PADDING if together else b""))
    assert (chunk is not None) == (wanted == 5)
    assert frames.feed(PADDING) is None
    assert frames.feed(b"garbage" * 9) is None
    assert frames.next_txid == 13
    assert not frames.complete


def test_nothing_is_read_once_all_is_there() -> None:
    frames = FrameReader(TxId(5), wanted=TxId(1), last=TxId(6))
    assert frames.feed(file_header() + op(5)) == Chunk(TxId(5), TxId(5), -65, op(5))
    assert frames.feed(op(6)) == Chunk(TxId(6), TxId(6), -65, op(6))
    assert frames.complete
    assert frames.feed(b"garbage" * 9) is None


#   the last of the edits 5-9 that came; the chunk that is given out of those from 7 on
SKIPPED = {5: None, 6: None, 7: (7, 7), 9: (7, 9)}


@pytest.mark.parametrize(("last", "given"), SKIPPED.items())
def test_edits_before_the_wanted_one_are_dropped(last: int, given: tuple[int, int] | None) -> None:
    frames = FrameReader(TxId(5), wanted=TxId(7), last=TxId(9))
    chunk = frames.feed(file_header() + ops(5, last))
    assert (None if chunk is None else (chunk.first, chunk.last)) == given
    assert chunk is None or chunk.records == ops(7, last)
    assert frames.next_txid == last + 1
    rest = frames.feed(ops(last + 1, 9))
    assert last == 9 or (rest is not None and rest.last == 9)
    assert frames.complete


@pytest.mark.parametrize("last", range(5, 12))
def test_a_chunk_is_cut_between_two_edits(last: int) -> None:
    whole = Chunk(TxId(5), TxId(9), -64, ops(5, 9))
    if last >= 9:
        assert whole.cut(TxId(last)) == (whole, None)
    else:
        head = Chunk(TxId(5), TxId(last), -64, ops(5, last))
        rest = Chunk(TxId(last + 1), TxId(9), -64, ops(last + 1, 9))
        assert whole.cut(TxId(last)) == (head, rest)


@pytest.mark.parametrize("last", range(4, 9))
def test_records_are_split_into_single_edits(last: int) -> None:
    assert split(ops(5, last)) == [ops(txid, txid) for txid in range(5, last + 1)]

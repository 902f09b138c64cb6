"""Frames come out whole however the bytes came in, and nothing oversized is stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.rpc.errors import MalformedFrame
from ha.rpc.frames import FrameSplitter, frame_of, take_delimited, varint
from tests.ha.rpc.wire import cut


@given(st.lists(st.binary(max_size=300), max_size=12), st.lists(st.integers(0, 10_000)))
def test_any_split_gives_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    splitter = FrameSplitter()
    got = []
    for piece in cut(stream, cuts):
        splitter.feed(piece)
        while (frame := splitter.take_frame(300)) is not None:
            got.append(frame)
    assert got == frames
    assert splitter.buffered_bytes == 0


def test_many_frames_in_one_segment_are_compacted() -> None:
    frame = (1000).to_bytes(4, "big") + bytes(1000)
    splitter = FrameSplitter()
    splitter.feed(frame * 500 + b"\0")
    assert sum(splitter.take_frame(1000) is not None for _ in range(500)) == 500
    assert splitter.take_frame(1000) is None
    assert splitter.buffered_bytes == 1


@pytest.mark.parametrize("length", [101, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_frame_is_refused_by_its_length_alone(length: int) -> None:
    splitter = FrameSplitter()
    splitter.feed(length.to_bytes(4, "big"))
    with pytest.raises(MalformedFrame, match="the limit is 100"):
        splitter.take_frame(100)


@given(st.lists(st.binary(max_size=200), max_size=6))
def test_delimited_messages_come_back(messages: list[bytes]) -> None:
    frame = frame_of(*messages)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    offset, got = 0, []
    for _ in messages:
        message, offset = take_delimited(frame[4:], offset)
        got.append(message)
    assert got == messages
    assert offset == len(frame) - 4


@given(st.binary(max_size=64), st.integers(0, 80))
def test_any_bytes_are_a_message_or_malformed(frame: bytes, offset: int) -> None:
    try:
        message, end = take_delimited(frame, offset)
    except MalformedFrame:
        return
    assert frame[:end].endswith(message)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (0xFFFFFFFF, "ffffffff0f")],
)
def test_lengths_are_protobuf_varints(number: int, encoded: str) -> None:
    assert varint(number) == bytes.fromhex(encoded)


def test_an_endless_varint_is_malformed() -> None:
    with pytest.raises(MalformedFrame, match="no message length"):
        take_delimited(b"\xff" * 100, 0)

"""The first bytes of a write lane: the writer's hello is read as it was sent."""

import struct

import pytest

from journal.lane import (
    ANSWER_BYTES,
    HEADER_BYTES,
    HELLO_BYTES,
    KEY_BYTES,
    LEAST_LENGTH,
    LENGTH_BYTES,
    SERIAL_BYTES,
    Hello,
    NoLane,
    hello_bytes,
    hello_of,
    rest_of_hello,
)

KEY = bytes(range(KEY_BYTES))


@pytest.mark.parametrize("journal_id", ["ns1", "", "n" * 300, "\N{GREEK SMALL LETTER NU}s"])
@pytest.mark.parametrize("namespace_id", [None, 0, 1, 2**31 - 1, -(2**31)])
def test_a_hello_is_read_as_it_was_said(journal_id: str, namespace_id: int | None) -> None:
    said = Hello(KEY, journal_id, namespace_id)
    data = hello_bytes(said)
    head, rest = data[:HELLO_BYTES], data[HELLO_BYTES:]
    assert rest_of_hello(head) == len(rest) == len(journal_id.encode())
    assert hello_of(head, rest) == said


def test_a_hello_of_version_1() -> None:
    """Both ends may be of different releases."""
    space, size = (7).to_bytes(8, "big"), b"\0\3"
    assert hello_bytes(Hello(KEY, "ns1", 7)) == b"nnhalane\1" + KEY + space + size + b"ns1"
    assert hello_bytes(Hello(KEY, "", None)) == b"nnhalane\1" + KEY + b"\xff" * 8 + bytes(2)


HEAD = hello_bytes(Hello(KEY, "ns1", 7))[:HELLO_BYTES]


def test_a_length_counts_what_follows_it() -> None:
    assert HELLO_BYTES == 8 + 1 + KEY_BYTES + 8 + 2
    assert struct.calcsize(">I") == LENGTH_BYTES
    assert LENGTH_BYTES + LEAST_LENGTH == HEADER_BYTES
    assert LENGTH_BYTES + SERIAL_BYTES == ANSWER_BYTES


@pytest.mark.parametrize(
    "head",
    [
        b"nnhalame" + HEAD[8:],
        HEAD[:8] + b"\2" + HEAD[9:],
        HEAD[:8] + b"\0" + HEAD[9:],
        b"hrpc\x09\0\0\0\2" + HEAD[9:],
        bytes(HELLO_BYTES),
    ],
    ids=["another word", "a later version", "an earlier one", "neither", "zeros"],
)
def test_what_begins_no_lane(head: bytes) -> None:
    with pytest.raises(NoLane, match="it begins with"):
        rest_of_hello(head)


def test_a_journal_whose_id_is_no_text_has_no_lane() -> None:
    with pytest.raises(NoLane, match="no text"):
        hello_of(HEAD, b"\xff\xfe\xfd")

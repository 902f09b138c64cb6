"""The first bytes of a write lane: the writer's hello is read as it was sent."""

import struct

import pytest

from journal import lane

KEY = bytes(range(lane.KEY_BYTES))


@pytest.mark.parametrize("journal_id", ["ns1", "", "n" * 300, "\N{GREEK SMALL LETTER NU}s"])
@pytest.mark.parametrize("namespace_id", [None, 0, 1, 2**31 - 1, -(2**31)])
def test_a_hello_is_read_as_it_was_said(journal_id: str, namespace_id: int | None) -> None:
    said = lane.Hello(KEY, journal_id, namespace_id)
    data = lane.hello_bytes(said)
    head, rest = data[: lane.HELLO_BYTES], data[lane.HELLO_BYTES :]
    assert lane.rest_of_hello(head) == len(rest) == len(journal_id.encode())
    assert lane.hello_of(head, rest) == said


def test_a_hello_of_version_1() -> None:
    """Both ends may be of different releases."""
    space, size = (7).to_bytes(8, "big"), b"\0\3"
    assert (
        lane.hello_bytes(lane.Hello(KEY, "ns1", 7)) == b"nnhalane\1" + KEY + space + size + b"ns1"
    )
    assert lane.hello_bytes(lane.Hello(KEY, "", None)) == b"nnhalane\1" + KEY + b"\xff" * 8 + bytes(
        2
    )


HEAD = lane.hello_bytes(lane.Hello(KEY, "ns1", 7))[: lane.HELLO_BYTES]


def test_a_length_counts_what_follows_it() -> None:
    assert lane.HELLO_BYTES == 8 + 1 + lane.KEY_BYTES + 8 + 2
    assert struct.calcsize(">I") == lane.LENGTH_BYTES
    assert lane.LENGTH_BYTES + lane.LEAST_LENGTH == lane.HEADER_BYTES
    assert lane.LENGTH_BYTES + lane.SERIAL_BYTES == lane.ANSWER_BYTES


@pytest.mark.parametrize(
    "head",
    [
        b"nnhalame" + HEAD[8:],
        HEAD[:8] + b"\2" + HEAD[9:],
        HEAD[:8] + b"\0" + HEAD[9:],
        b"hrpc\x09\0\0\0\2" + HEAD[9:],
        bytes(lane.HELLO_BYTES),
    ],
    ids=["another word", "a later version", "an earlier one", "neither", "zeros"],
)
def test_what_begins_no_lane(head: bytes) -> None:
    with pytest.raises(lane.NoLane, match="it begins with"):
        lane.rest_of_hello(head)


def test_a_journal_whose_id_is_no_text_has_no_lane() -> None:
    with pytest.raises(lane.NoLane, match="no text"):
        lane.hello_of(HEAD, b"\xff\xfe\xfd")

"""Packets and operations as bytes: Hadoop's own samples, every split, every limit."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire import packets
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.packets import LENGTHS, MAX_PACKET_BYTES, PacketHeader, encode_packet

FIRST = "0000fdfc0019" + "090000000000000000" + "110000000000000000" + "1800" + "2500fc0000"
"""What Java's client sends before 126 checksums and 64,512 bytes of data."""
LAST = "000000040019" + "090000000400000000" + "111204000000000000" + "1801" + "2500000000"


def test_packets_are_those_of_java() -> None:
    header = PacketHeader(0, 0, last=False, length=64512)
    assert encode_packet(header, bytes(504), bytes(64512)).hex().startswith(FIRST)
    assert encode_packet(PacketHeader(1 << 26, 0x412, last=True, length=0), b"", b"").hex() == LAST


@given(
    st.integers(0, 1 << 48),
    st.integers(-1, 1 << 62),
    st.binary(max_size=300),
    st.binary(max_size=40),
    st.booleans(),
)
def test_a_packet_comes_back(offset: int, seqno: int, data: bytes, sums: bytes, sync: bool) -> None:
    data = b"" if seqno == -1 else data
    header = PacketHeader(offset, seqno, last=False, length=len(data), sync=sync)
    raw = encode_packet(header, sums, data)
    assert packets.rest_of_packet(raw[: LENGTHS.size]) == len(raw) - LENGTHS.size
    packet = packets.decode_packet(raw)
    assert (packet.header, bytes(packet.sums), bytes(packet.data)) == (header, sums, data)


@given(st.binary(min_size=6, max_size=200))
def test_no_bytes_do_more_than_be_refused(raw: bytes) -> None:
    try:
        rest = packets.rest_of_packet(raw[: LENGTHS.size])
        assert 0 <= rest <= MAX_PACKET_BYTES
        if len(raw) == rest + LENGTHS.size:
            packets.decode_packet(raw)
    except MalformedTransfer:
        pass


@pytest.mark.parametrize(
    ("length", "header"),
    [(3, 25), (MAX_PACKET_BYTES, 25), (0xFFFFFFFF, 25), (4, 1025), (4, 0xFFFF)],
)
def test_lengths_beyond_a_limit_are_refused(length: int, header: int) -> None:
    with pytest.raises(MalformedTransfer, match="a packet of"):
        packets.rest_of_packet(struct.pack(">IH", length, header))


@pytest.mark.parametrize(("length", "header"), [(4, 1024), (MAX_PACKET_BYTES - 25, 25)])
def test_lengths_up_to_a_limit_are_taken(length: int, header: int) -> None:
    assert packets.rest_of_packet(struct.pack(">IH", length, header)) == header + length - 4


LONG = bytes(MAX_PACKET_BYTES)
UNSENT: dict[str, tuple[PacketHeader, bytes, str]] = {
    "fewer bytes than it says": (PacketHeader(0, 0, False, 9), b"12345678", "8 bytes in a packet"),
    "more bytes than it says": (PacketHeader(0, 0, False, 7), b"12345678", "8 bytes in a packet"),
    "a number that no field holds": (PacketHeader(0, 1 << 63, False, 0), b"", "cannot be sent"),
    "longer than anybody takes": (PacketHeader(0, 0, False, len(LONG)), LONG, "allowed are"),
}


@pytest.mark.parametrize("case", UNSENT)
def test_nothing_is_sent_that_the_other_side_would_refuse(case: str) -> None:
    header, data, why = UNSENT[case]
    with pytest.raises(MalformedTransfer, match=why):
        encode_packet(header, b"", data)


@pytest.mark.parametrize(
    ("offset", "seqno", "last", "length", "why"),
    [
        (0, 0, False, -1, "-1 bytes of data"),
        (0, 0, False, 9, "9 bytes of data in a packet of 12"),
        (-1, 0, False, 0, "a packet at -1"),
        (1 << 60, 0, False, 0, "a packet at"),
        (0, -2, False, 0, "with number -2"),
        (0, 5, True, 8, "in a packet that has none"),
        (0, -1, False, 8, "in a packet that has none"),
    ],
)
def test_headers_that_cannot_be(offset: int, seqno: int, last: bool, length: int, why: str) -> None:
    body = pb.PacketHeaderProto(
        offsetInBlock=offset, seqno=seqno, lastPacketInBlock=last, dataLen=length
    ).SerializeToString()
    with pytest.raises(MalformedTransfer, match=why):
        packets.decode_packet(struct.pack(">IH", 12, len(body)) + body + bytes(8))


def test_operations() -> None:
    request = pb.ClientReadStatusProto(status=pb.Status.SUCCESS)
    raw = packets.encode_op(packets.Op.READ_BLOCK, request)
    assert raw[:3].hex() == "001c51"
    assert packets.decode_op(raw[:3]) is packets.Op.READ_BLOCK
    assert raw[3:] == packets.encode_message(request)
    for head, why in (
        ("001b51", "version 27"),
        ("001c01", "no operation 1"),
        ("deadbe", "wants SASL"),
        ("474554", "version 18245"),
    ):
        with pytest.raises(MalformedTransfer, match=why):
            packets.decode_op(bytes.fromhex(head))


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (16383, "ff7f"), (16384, "808001")],
)
def test_numbers_take_seven_bits_of_each_byte(number: int, expected: str) -> None:
    assert packets.encode_varint(number).hex() == expected


def test_messages_have_a_limit() -> None:
    assert packets.checked_message_length(packets.MAX_MESSAGE_BYTES) == packets.MAX_MESSAGE_BYTES
    with pytest.raises(MalformedTransfer, match="at most 1048576"):
        packets.checked_message_length(packets.MAX_MESSAGE_BYTES + 1)
    with pytest.raises(MalformedTransfer, match="no OpReadBlockProto"):
        packets.parse_message(pb.OpReadBlockProto, b"\xff")

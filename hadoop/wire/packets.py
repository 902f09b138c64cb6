"""Packets and messages of DataTransferProtocol as bytes; nothing here reads or writes a socket.

See docs/reference/datanode.md#packets.

Pure.
"""

import struct
from enum import IntEnum
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from ha.record import dataclass
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.errors import MalformedTransfer

M = TypeVar("M", bound=Message)

VERSION: Final = 28
SASL_MAGIC: Final = b"\xde\xad"
"""How a peer begins that wants to authenticate itself: the first half of 0xDEADBEEF."""
OP_HEAD: Final = struct.Struct(">HB")
LENGTHS: Final = struct.Struct(">IH")
MAX_PACKET_BYTES: Final = 16 * 1024 * 1024
MAX_MESSAGE_BYTES: Final = 1024 * 1024
MAX_HEADER_BYTES: Final = 1024
MAX_VARINT_BYTES: Final = 5
HEARTBEAT_SEQNO: Final = -1
_LENGTH_BYTES: Final = 4
"""A packet's length counts itself."""
_MAX_OFFSET: Final = 1 << 48


class Op(IntEnum):
    """The operations of DataTransferProtocol."""

    WRITE_BLOCK = 80
    READ_BLOCK = 81
    READ_METADATA = 82
    REPLACE_BLOCK = 83
    COPY_BLOCK = 84
    BLOCK_CHECKSUM = 85
    TRANSFER_BLOCK = 86
    REQUEST_SHORT_CIRCUIT_FDS = 87
    RELEASE_SHORT_CIRCUIT_FDS = 88
    REQUEST_SHORT_CIRCUIT_SHM = 89
    BLOCK_GROUP_CHECKSUM = 90
    CUSTOM = 127


@dataclass(frozen=True, slots=True)
class PacketHeader:
    """What a packet is: a stretch of a block, the end of it, or a sign of life."""

    offset: int
    seqno: int
    last: bool
    length: int
    sync: bool = False

    @property
    def end(self) -> int:
        """Where in the block the packet's bytes end."""
        return self.offset + self.length

    @property
    def is_heartbeat(self) -> bool:
        return self.seqno == HEARTBEAT_SEQNO


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet as it came."""

    header: PacketHeader
    sums: memoryview
    data: memoryview


def encode_op(op: Op, message: Message) -> bytes:
    return OP_HEAD.pack(VERSION, op) + encode_message(message)


def decode_op(head: bytes) -> Op:
    """Return the operation that a request begins with.

    Raises:
        MalformedTransfer: if the peer speaks another protocol, or if there is no such operation.
    """
    if head.startswith(SASL_MAGIC):
        raise MalformedTransfer("the peer wants SASL; dfs.data.transfer.protection is not set here")
    version, code = OP_HEAD.unpack(head)
    if version != VERSION:
        raise MalformedTransfer(f"the peer speaks version {version}; only {VERSION} is known")
    try:
        return Op(code)
    except ValueError:
        raise MalformedTransfer(f"there is no operation {code}") from None


def encode_message(message: Message) -> bytes:
    body = message.SerializeToString()
    return encode_varint(len(body)) + body


def encode_varint(number: int) -> bytes:
    """Return the bytes of a number that is not negative, least bits first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def parse_message(kind: type[M], body: bytes) -> M:
    """Parse a message; raise ``MalformedTransfer`` if the bytes are not of its kind."""
    try:
        return kind.FromString(body)
    except DecodeError as problem:
        raise MalformedTransfer(f"no {kind.DESCRIPTOR.name}: {problem}") from problem


def checked_message_length(length: int) -> int:
    """Return ``length``; raise ``MalformedTransfer`` if no operation needs messages as long."""
    if length > MAX_MESSAGE_BYTES:
        raise MalformedTransfer(f"a message of {length} bytes; at most {MAX_MESSAGE_BYTES}")
    return length


def encode_packet(header: PacketHeader, sums: bytes, data: bytes | bytearray | memoryview) -> bytes:
    """Return a packet's bytes.

    Raises:
        MalformedTransfer: if it is not one that ``decode_packet`` would take.
    """
    if header.length != len(data):
        raise MalformedTransfer(f"{len(data)} bytes in a packet that says {header.length}")
    try:
        told = pb.PacketHeaderProto(
            offsetInBlock=header.offset,
            seqno=header.seqno,
            lastPacketInBlock=header.last,
            dataLen=header.length,
        )
        if header.sync:
            told.syncBlock = True
        body = told.SerializeToString()
    except ValueError as problem:
        raise MalformedTransfer(f"{header} cannot be sent: {problem}") from problem
    length = _LENGTH_BYTES + len(sums) + len(data)
    _check_lengths(length, len(body))
    return b"".join((LENGTHS.pack(length, len(body)), body, sums, data))


def rest_of_packet(head: bytes | memoryview) -> int:
    """Return the number of bytes behind the two lengths that a packet begins with.

    Raises:
        MalformedTransfer: if the lengths are beyond a limit.
    """
    length, header = LENGTHS.unpack(head)
    _check_lengths(length, header)
    return int(header + length - _LENGTH_BYTES)


def decode_packet(raw: bytes | memoryview) -> Packet:
    """Return a packet with views of its bytes, which include the two lengths.

    Raises:
        MalformedTransfer: if its header makes no sense.
    """
    length, header_length = LENGTHS.unpack_from(raw)
    begin = LENGTHS.size
    told = parse_message(pb.PacketHeaderProto, bytes(raw[begin : begin + header_length]))
    header = PacketHeader(
        told.offsetInBlock, told.seqno, told.lastPacketInBlock, told.dataLen, told.syncBlock
    )
    if not 0 <= header.length <= length - _LENGTH_BYTES:
        raise MalformedTransfer(f"{header.length} bytes of data in a packet of {length}")
    if not 0 <= header.offset <= _MAX_OFFSET or header.seqno < HEARTBEAT_SEQNO:
        raise MalformedTransfer(f"a packet at {header.offset} with number {header.seqno}")
    if (header.last or header.is_heartbeat) and header.length:
        raise MalformedTransfer(f"{header.length} bytes in a packet that has none")
    view = memoryview(raw)
    split = len(raw) - header.length
    return Packet(header, view[begin + header_length : split], view[split:])


def _check_lengths(length: int, header: int) -> None:
    if length < _LENGTH_BYTES or header > MAX_HEADER_BYTES or length + header > MAX_PACKET_BYTES:
        raise MalformedTransfer(
            f"a packet of {length} bytes with a header of {header}; allowed are "
            f"{MAX_PACKET_BYTES} and {MAX_HEADER_BYTES}"
        )

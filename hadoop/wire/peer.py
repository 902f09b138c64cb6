"""The messages and packets of one connection, with a deadline on everything."""

import asyncio
from typing import Final, TypeVar

from google.protobuf.message import Message

from ha.record import dataclass
from ha.security.sasl.mechanism import Layer
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire import packets as wire_packets
from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.ciphered import Ciphered
from hadoop.wire.connection import Connection, PeerLost
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.sealed import Sealed

M = TypeVar("M", bound=Message)

NO_BUDGET: Final = ByteBudget(0)
"""For peers that send no long packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLimits:
    """How long a peer may take, in seconds, and how many there may be."""

    operation_seconds: float = 5.0
    """From the first byte of an operation to its last."""
    keep_alive_seconds: float = 4.0
    """Between two operations of one connection (dfs.datanode.socket.reuse.keepalive)."""
    packet_seconds: float = 60.0
    """For one packet or acknowledgement; more for each DataNode downstream."""
    downstream_seconds: float = 5.0
    connect_seconds: float = 60.0
    max_connections: int = 4096
    """dfs.datanode.max.transfer.threads."""
    shared_bytes: int = 256 * 1024 * 1024
    """What all connections together may have in memory, in addition to 64 KiB that each may have.
    """

    def waiting(self, downstream: int) -> float:
        """Return how long to wait for a peer that itself waits for ``downstream`` others."""
        return self.packet_seconds + self.downstream_seconds * downstream


@dataclass(frozen=True, slots=True)
class Batch:
    """Packets that came together; ``raw`` is all of them, for the next DataNode.

    They are views: good until the next read from their peer.
    """

    packets: list[wire_packets.Packet]
    raw: memoryview


class Peer:
    """A connection to a client or a DataNode."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._bytes: Connection | Sealed | Ciphered = connection
        self._soon = bytearray()

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def ends(self) -> tuple[object, object]:
        """The names of the other end's socket and of ours."""
        return self._connection.ends

    @classmethod
    async def connect(
        cls, host: str, port: int, *, seconds: float, budget: ByteBudget = NO_BUDGET
    ) -> "Peer":
        """Connect to a peer; ``budget`` is for packets that are longer than usual.

        Raises:
            PeerLost: if the connection is not accepted in time.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(lambda: Connection(budget), host, port)
        except (OSError, TimeoutError, ValueError, OverflowError) as problem:
            raise PeerLost(f"no connection to {host}:{port}: {problem}") from problem
        return cls(connection)

    def protect(self, layer: Layer | None) -> None:
        """Pass all bytes through a layer from now on; None leaves them as they are."""
        if layer is not None:
            self._bytes = Sealed(self._connection, layer)

    def encrypt(self, keys: pb.CipherOptionProto, *, made_here: bool) -> None:
        """Encrypt all bytes from now on; raise MalformedTransfer if these are no keys."""
        self._bytes = Ciphered(self._connection, keys, made_here=made_here)

    # Reading.

    async def read(self, count: int, *, seconds: float) -> bytes:
        """Return exactly ``count`` bytes.

        Raises:
            PeerLost: if they do not come in time.
        """
        await self._bytes.wait_for(count, until=_in(seconds))
        found = bytes(self._bytes.waiting[:count])
        self._bytes.skip(count)
        return found

    async def read_message(self, kind: type[M], *, seconds: float) -> M:
        """Return the next message, which comes behind its length.

        Raises:
            PeerLost: if it does not come in time.
            MalformedTransfer: if it is too long, or no such message.
        """
        connection = self._bytes
        until = _in(seconds)
        while (split := _message_length(connection.waiting)) is None:
            await connection.wait_for(len(connection.waiting) + 1, until=until)
        begin, length = split
        await connection.wait_for(begin + length, until=until)
        body = bytes(connection.waiting[begin : begin + length])
        connection.skip(begin + length)
        return wire_packets.parse_message(kind, body)

    async def read_packets(self, *, seconds: float) -> Batch:
        """Return all packets that have come whole, and at least one; raise as ``read_message``."""
        connection = self._bytes
        until = _in(seconds)
        await connection.wait_for(wire_packets.LENGTHS.size, until=until)
        first = wire_packets.LENGTHS.size + wire_packets.rest_of_packet(
            connection.waiting[: wire_packets.LENGTHS.size]
        )
        await connection.wait_for(first, until=until)
        waiting = connection.waiting
        packets = [wire_packets.decode_packet(waiting[:first])]
        end = first
        try:
            while len(waiting) >= end + wire_packets.LENGTHS.size:
                size = wire_packets.LENGTHS.size + wire_packets.rest_of_packet(
                    waiting[end : end + wire_packets.LENGTHS.size]
                )
                if end + size > len(waiting):
                    break
                packets.append(wire_packets.decode_packet(waiting[end : end + size]))
                end += size
        except MalformedTransfer:
            pass  # raised by the next read: what came before it is good
        connection.skip(end)
        return Batch(packets, waiting[:end])

    # Writing.

    def begin_send(self, data: bytes | memoryview) -> None:
        """Send without waiting; a view must stay as it is until ``flushed``."""
        self._bytes.write(data)

    async def flushed(self, *, seconds: float) -> None:
        """Wait until the kernel has what was sent.

        Raises:
            PeerLost: if the other side does not take it in time.
        """
        await self._bytes.flushed(seconds=seconds)

    async def send(self, data: bytes, *, seconds: float) -> None:
        """Send, and wait until the kernel has it; raises as ``flushed``."""
        self._bytes.write(data)
        await self._bytes.flushed(seconds=seconds)

    async def send_message(self, message: Message, *, seconds: float) -> None:
        """Send a message behind its length; raise ``PeerLost``."""
        await self.send(wire_packets.encode_message(message), seconds=seconds)

    async def send_soon(self, message: Message, *, seconds: float) -> None:
        """Send with others of the same turn of the loop; raises ``PeerLost``.

        Each packet that is sent wakes the other process, which costs more than what is in it.
        """
        if not self._soon:
            asyncio.get_running_loop().call_soon(self._send_collected)
        self._soon += wire_packets.encode_message(message)
        await self._connection.flushed(seconds=seconds)

    def _send_collected(self) -> None:
        collected, self._soon = bytes(self._soon), bytearray()
        if self._connection.is_open:
            self._bytes.write(collected)

    def close(self) -> None:
        """Close once what was written has been sent."""
        self._send_collected()
        self._connection.close()

    def abort(self) -> None:
        self._connection.abort()


def _in(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def _message_length(waiting: memoryview) -> tuple[int, int] | None:
    """Return where a message begins, and its length; None while its length has not come whole."""
    length = 0
    for place, byte in enumerate(waiting[: wire_packets.MAX_VARINT_BYTES]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return place + 1, wire_packets.checked_message_length(length)
    if len(waiting) < wire_packets.MAX_VARINT_BYTES:
        return None
    raise MalformedTransfer(f"a length of more than {wire_packets.MAX_VARINT_BYTES} bytes")

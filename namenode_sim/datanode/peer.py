"""One connection of DataTransferProtocol, with a deadline on everything."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from google.protobuf.message import Message

from namenode_sim.datanode.errors import MalformedTransfer
from namenode_sim.datanode.packets import (
    LENGTHS,
    MAX_VARINT_BYTES,
    Packet,
    checked_message_length,
    decode_packet,
    encode_message,
    parse_message,
    rest_of_packet,
)

M = TypeVar("M", bound=Message)

BUFFER_BYTES: Final = 1024 * 1024
"""So much is read ahead, and so much may wait to be sent, before the other side has to wait."""


class PeerLost(Exception):
    """The other side has closed, or has said or taken nothing for too long."""


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

    def waiting(self, downstream: int) -> float:
        """How long to wait for a peer that itself waits for so many others."""
        return self.packet_seconds + self.downstream_seconds * downstream


class Peer:
    """A connection to a client or a DataNode."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        writer.transport.set_write_buffer_limits(high=BUFFER_BYTES)
        self._soon = bytearray()
        address = writer.get_extra_info("peername")
        self.name = f"{address[0]}:{address[1]}" if address else "?"

    @classmethod
    async def connect(cls, host: str, port: int, *, seconds: float) -> "Peer":
        """Raises ``PeerLost`` if nobody takes the connection in time."""
        try:
            async with asyncio.timeout(seconds):
                reader, writer = await asyncio.open_connection(host, port, limit=BUFFER_BYTES)
        except (OSError, TimeoutError, ValueError, OverflowError) as problem:
            raise PeerLost(f"no connection to {host}:{port}: {problem}") from problem
        return cls(reader, writer)

    async def read(self, count: int, *, seconds: float) -> bytes:
        """Exactly so many bytes.

        Raises:
            PeerLost: if they do not come in time.
        """
        with self._told():
            async with asyncio.timeout(seconds):
                return await self._reader.readexactly(count)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (asyncio.IncompleteReadError, OSError) as problem:
            if isinstance(problem, TimeoutError):
                raise PeerLost(f"{self.name} has sent nothing for too long") from problem
            raise PeerLost(f"{self.name} has closed the connection") from problem

    async def read_message(self, kind: type[M], *, seconds: float) -> M:
        """A message behind its length.

        Raises:
            PeerLost: if it does not come in time.
            MalformedTransfer: if it is too long, or no such message.
        """
        with self._told():
            async with asyncio.timeout(seconds):
                body = await self._reader.readexactly(await self._message_length())
        return parse_message(kind, body)

    async def _message_length(self) -> int:
        length = 0
        for place in range(MAX_VARINT_BYTES):
            (byte,) = await self._reader.readexactly(1)
            length |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return checked_message_length(length)
        raise MalformedTransfer(f"a length of more than {MAX_VARINT_BYTES} bytes")

    async def read_packet(self, *, seconds: float) -> Packet:
        """Raises as ``read_message``."""
        with self._told():
            async with asyncio.timeout(seconds):
                head = await self._reader.readexactly(LENGTHS.size)
                rest = await self._reader.readexactly(rest_of_packet(head))
        return decode_packet(head + rest)

    async def send(self, data: bytes, *, seconds: float) -> None:
        """Send, and wait while too much waits to be sent.

        Raises:
            PeerLost: if the other side does not take it in time.
        """
        transport = self._writer.transport
        try:
            if data:
                self._writer.write(data)
            if not transport.is_closing() and transport.get_write_buffer_size() < BUFFER_BYTES:
                return  # nobody has to wait, which is the usual case
            async with asyncio.timeout(seconds):
                await self._writer.drain()
        except TimeoutError as problem:
            raise PeerLost(f"{self.name} has taken nothing for {seconds} s") from problem
        except OSError as problem:
            raise PeerLost(f"{self.name} has closed the connection: {problem}") from problem
        if transport.is_closing():
            raise PeerLost(f"{self.name} has closed the connection")

    async def send_message(self, message: Message, *, seconds: float) -> None:
        """A message behind its length; raises ``PeerLost``."""
        await self.send(encode_message(message), seconds=seconds)

    async def send_soon(self, message: Message, *, seconds: float) -> None:
        """Send with others of the same turn of the loop; raises ``PeerLost``.

        Each packet that is sent wakes the other process, which costs more than what is in it.
        """
        if not self._soon:
            asyncio.get_running_loop().call_soon(self._send_collected)
        self._soon += encode_message(message)
        await self.send(b"", seconds=seconds)

    def _send_collected(self) -> None:
        collected, self._soon = bytes(self._soon), bytearray()
        if not self._writer.is_closing():
            self._writer.write(collected)

    def close(self) -> None:
        """Close once what was written has been sent."""
        self._send_collected()
        self._writer.close()

    def abort(self) -> None:
        """Close at once."""
        self._writer.transport.abort()

"""A connection whose bytes a layer of SASL signs or encrypts, each token behind its length.

The buffer of the connection is decrypted in place: what a peer can make us hold is bounded as ever.
"""

import asyncio
from typing import Final

import structlog

from ha.security.sasl.mechanism import Layer, SaslFailure
from hadoop.wire.connection import Connection, PeerLost
from hadoop.wire.packets import MAX_PACKET_BYTES

log = structlog.get_logger()

_LENGTH_BYTES: Final = 4
_MOST_GAP_BYTES: Final = 64 * 1024
MAX_TOKEN_BYTES: Final = MAX_PACKET_BYTES + 64 * 1024
"""Java's clients put a whole packet into one token, however short a token we ask for."""


class Sealed:
    """The plain text comes first in the buffer, then ``_gap`` used bytes, then tokens."""

    def __init__(self, connection: Connection, layer: Layer) -> None:
        self._connection, self._layer = connection, layer
        self._plain = self._gap = 0

    @property
    def waiting(self) -> memoryview:
        """All plain text that is not read yet; good until the next ``wait_for``."""
        return self._connection.waiting[: self._plain]

    def skip(self, count: int) -> None:
        self._plain -= count
        self._connection.skip(count if self._plain else count + self._gap)
        self._gap = self._gap if self._plain else 0

    async def wait_for(self, count: int, *, until: float) -> None:
        """Wait until ``count`` bytes of plain text can be read; ``until`` is a time of the loop.

        Raises:
            PeerLost: if they do not come in time, or a token is not the peer's next one.
        """
        if self._plain < count:  # as many come at least: room is made once, not with each token
            await self._connection.wait_for(count + self._gap, until=until)
        while self._plain < count:
            await self._take_token(until)
            await asyncio.sleep(0)  # a peer may send tokens of one byte faster than we open them

    async def _take_token(self, until: float) -> None:
        connection, begin = self._connection, self._plain + self._gap
        body = begin + _LENGTH_BYTES
        await connection.wait_for(body, until=until)
        length = int.from_bytes(connection.waiting[begin:body], "big")
        if length > MAX_TOKEN_BYTES or self._gap > _MOST_GAP_BYTES:
            raise PeerLost(f"{connection.name} sends a token of {length} bytes, or too many at all")
        await connection.wait_for(body + length, until=until)
        try:
            text = self._layer.unwrap(bytes(connection.waiting[body : body + length]))
        except SaslFailure as failure:
            log.warning("wire.token_refused", peer=connection.name, why=str(failure))
            connection.abort()
            raise PeerLost(f"{connection.name} has sent {failure}") from failure
        end = self._plain + len(text)
        connection.waiting[self._plain : end] = text
        self._plain, self._gap = end, body + length - end

    def write(self, data: bytes | memoryview) -> None:
        """Give bytes to the kernel, in tokens that the peer has room for."""
        most, tokens = self._layer.max_plain_bytes, list[bytes]()
        for at in range(0, len(data), most):
            token = self._layer.wrap(bytes(data[at : at + most]))
            tokens += (len(token).to_bytes(_LENGTH_BYTES, "big"), token)
        self._connection.write(b"".join(tokens))

    async def flushed(self, *, seconds: float) -> None:
        """Wait as a connection does, and let others go on: the kernel may be faster than we are."""
        await asyncio.sleep(0)
        await self._connection.flushed(seconds=seconds)

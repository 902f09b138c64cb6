"""A connection whose bytes are encrypted by AES in counter mode, with a key for each direction.

As Hadoop's CryptoInputStream and CryptoOutputStream.  Nothing is signed: the packets' checksums are
all that shows an altered byte.  See docs/reference/block-tokens.md#aes.
"""

import secrets
from typing import Final

from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.connection import Connection
from hadoop.wire.errors import MalformedTransfer

AES: Final = pb.CipherSuiteProto.AES_CTR_NOPADDING
_IV_BYTES: Final = 16


def fresh_keys(bits: int) -> pb.CipherOptionProto:
    """Return new keys for one connection: "in" is to the side that makes them, "out" from it."""
    size = bits // 8
    return pb.CipherOptionProto(
        suite=AES,
        inKey=secrets.token_bytes(size),
        inIv=secrets.token_bytes(_IV_BYTES),
        outKey=secrets.token_bytes(size),
        outIv=secrets.token_bytes(_IV_BYTES),
    )


class Ciphered:
    """The plain text comes first in the buffer, then bytes that are not decrypted yet."""

    def __init__(
        self, connection: Connection, keys: pb.CipherOptionProto, *, made_here: bool
    ) -> None:
        """Encrypt from the next byte on, in both directions.

        Raises:
            MalformedTransfer: these are no keys of AES.
        """
        # Here: few clusters encrypt, and every process that moves blocks would load it.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        try:
            to_maker = Cipher(algorithms.AES(keys.inKey), modes.CTR(keys.inIv))
            from_maker = Cipher(algorithms.AES(keys.outKey), modes.CTR(keys.outIv))
        except ValueError as problem:
            raise MalformedTransfer(f"{connection.name} gives no keys of AES") from problem
        self._connection = connection
        self._from_peer = (to_maker if made_here else from_maker).decryptor()
        self._to_peer = (from_maker if made_here else to_maker).encryptor()
        self._plain = 0

    @property
    def waiting(self) -> memoryview:
        """All plain text that is not read yet; good until the next ``wait_for``."""
        return self._connection.waiting[: self._plain]

    def skip(self, count: int) -> None:
        self._plain -= count
        self._connection.skip(count)

    async def wait_for(self, count: int, *, until: float) -> None:
        """Wait until ``count`` bytes of plain text can be read; ``until`` is a time of the loop.

        Raises:
            PeerLost: if they do not come in time.
        """
        if self._plain >= count:
            return
        await self._connection.wait_for(count, until=until)
        found = self._connection.waiting
        found[self._plain :] = self._from_peer.update(bytes(found[self._plain :]))
        self._plain = len(found)

    def write(self, data: bytes | memoryview) -> None:
        """Give bytes to the kernel, encrypted."""
        self._connection.write(self._to_peer.update(data))

    async def flushed(self, *, seconds: float) -> None:
        """Wait until the kernel has taken everything; raise PeerLost as a connection does."""
        await self._connection.flushed(seconds=seconds)

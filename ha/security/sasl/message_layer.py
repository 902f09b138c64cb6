"""What DIGEST-MD5 does with a connection's bytes after the login (RFC 2831, 2.3 and 2.4).

A token is the text, a MAC of ten bytes over its number and the text, the type 1 and the number;
with privacy text and MAC are encrypted, and the cipher goes on from token to token.
"""

import hmac
from collections.abc import Callable, Mapping
from hashlib import md5
from typing import Final, Protocol

from ha.record import dataclass
from ha.security.sasl.mechanism import SaslFailure

MIN_BUFFER_BYTES: Final = 1024
"""A peer that takes less would be sent a token for every few bytes."""

_MAC_BYTES: Final = 10
_TYPE: Final = b"\x00\x01"
_TAIL_BYTES: Final = 6
_MOST_ADDED_BYTES: Final = 26
"""To a text, as the JDK has it: MAC, tail, what fills a block, and two more."""
_NUMBERS: Final = 1 << 32
_DIRECTIONS: Final = ("client-to-server", "server-to-client")


class _Stream(Protocol):
    def update(self, data: bytes) -> bytes: ...


class _Ciphering(Protocol):
    def encryptor(self) -> _Stream: ...

    def decryptor(self) -> _Stream: ...


@dataclass(frozen=True, slots=True)
class DigestCipher:
    """A cipher by the RFC's name; ``block_bytes`` is 0 where nothing is filled up."""

    start: Callable[[bytes], _Ciphering]
    block_bytes: int


def _rc4(key: bytes) -> _Ciphering:
    # Loaded here, as below: every client of Hadoop RPC would have them in memory.
    from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
    from cryptography.hazmat.primitives.ciphers import Cipher

    return Cipher(ARC4(key), None)


def _spread(number: int) -> bytes:
    """Return the last 56 bits as eight bytes, each with room for the parity that nothing checks."""
    return bytes((number >> 7 * place & 0x7F) << 1 for place in range(7, -1, -1))


def _triple_des(key: bytes) -> _Ciphering:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

    number = int.from_bytes(key[:14], "big")
    first, second = _spread(number >> 56), _spread(number)
    return Cipher(TripleDES(first + second + first), modes.CBC(key[8:]))


CIPHERS: Final[Mapping[str, DigestCipher]] = {
    "3des": DigestCipher(_triple_des, 8),
    "rc4": DigestCipher(_rc4, 0),
}
"""The JDK offers des, rc4-56 and rc4-40, too: keys that anybody finds by trying them all."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one side; ``secret`` is the RFC's H(A1)."""

    secret: bytes
    is_server: bool

    def signing(self, *, own: bool) -> bytes:
        """Return the key of what we send (``own``), or of what the peer sends."""
        return self._key("Digest session key to {} signing key magic constant", own=own)

    def sealing(self, *, own: bool) -> bytes:
        return self._key("Digest H(A1) to {} sealing key magic constant", own=own)

    def _key(self, magic: str, *, own: bool) -> bytes:
        return md5(self.secret + magic.format(_DIRECTIONS[self.is_server is own]).encode()).digest()


class DigestLayer:
    """One connection's bytes: signed, and with a cipher sealed.

    ``buffer_bytes`` is how long a token the peer takes.
    """

    __slots__ = ("_block", "_from_peer", "_max_plain", "_received", "_sent", "_signing", "_to_peer",
                 "_verifying")  # fmt: skip

    def __init__(
        self, keys: Keys, cipher: DigestCipher | None, buffer_bytes: int, first: int = 0
    ) -> None:
        """Begin with the number ``first`` in both directions."""
        self._signing = keys.signing(own=True)
        self._verifying = keys.signing(own=False)
        self._to_peer = self._from_peer = None
        self._block = 0
        if cipher is not None:
            self._block = cipher.block_bytes
            self._to_peer = cipher.start(keys.sealing(own=True)).encryptor()
            self._from_peer = cipher.start(keys.sealing(own=False)).decryptor()
        self._sent = self._received = first
        self._max_plain = buffer_bytes - _MOST_ADDED_BYTES

    @property
    def max_plain_bytes(self) -> int:
        """Return the longest text that one token to the peer may hold."""
        return self._max_plain

    def wrap(self, data: bytes) -> bytes:
        """Return the token for ``data``; call it in the order in which tokens are sent."""
        number = self._sent.to_bytes(4, "big")
        self._sent = (self._sent + 1) % _NUMBERS
        mac = hmac.digest(self._signing, number + data, "md5")[:_MAC_BYTES]
        if self._to_peer is None:
            return data + mac + _TYPE + number
        fill = 0
        if self._block:
            fill = self._block - (len(data) + _MAC_BYTES) % self._block
        return self._to_peer.update(data + bytes((fill,)) * fill + mac) + _TYPE + number

    def unwrap(self, token: bytes) -> bytes:
        """Return the text of the peer's next token.

        Raises:
            SaslFailure: if it was altered, repeated, or is not the next one.
        """
        body, tail = token[:-_TAIL_BYTES], token[-_TAIL_BYTES:]
        number = self._received.to_bytes(4, "big")
        if tail != _TYPE + number:
            raise SaslFailure("a token that is not the next one")
        if self._from_peer is not None:
            body = self._from_peer.update(body)
        text, mac = body[:-_MAC_BYTES], body[-_MAC_BYTES:]
        if self._block and text:
            text = text[: len(text) - text[-1]]  # what fills the last block says how long it is
        expected = hmac.digest(self._verifying, number + text, "md5")[:_MAC_BYTES]
        if not hmac.compare_digest(mac, expected):
            raise SaslFailure("a token that was altered")
        self._received = (self._received + 1) % _NUMBERS
        return text

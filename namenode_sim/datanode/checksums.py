"""CRC-32 and CRC-32C of chunks, without a C extension: numpy over the chunks of a packet.

A CRC is linear: that of a piece is the exclusive or of what each byte gives at its distance from
the end, and of what the initial ones give.  A table holds what each byte gives at each distance.
See docs/reference/datanode.md#checksums.
"""

import zlib
from functools import cache, lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from namenode_sim.datanode.errors import ChecksumMismatch
from namenode_sim.datanode.model import Checksum, ChecksumType

_Words: TypeAlias = NDArray[np.uint32]
_Buffer: TypeAlias = bytes | bytearray | memoryview

_POLYNOMIALS: Final = {ChecksumType.CRC32: 0xEDB88320, ChecksumType.CRC32C: 0x82F63B78}
_ONES: Final = 0xFFFFFFFF
_PIECE: Final = 512
"""Longest run of bytes that one look-up covers; longer chunks are made of several."""
_ROWS: Final = 16
"""Pieces of one look-up: so many that its arrays stay in the processor's cache."""


def checksums_of(data: _Buffer, checksum: Checksum) -> bytes:
    """The checksums of the chunks of ``data``, four bytes each, as in meta files and packets."""
    match checksum.kind:
        case ChecksumType.NULL:
            return b""
        case ChecksumType.CRC32:
            view, step = memoryview(data), checksum.bytes_per_chunk
            return b"".join(
                zlib.crc32(view[at : at + step]).to_bytes(4, "big")
                for at in range(0, len(view), step)
            )
        case ChecksumType.CRC32C:
            return _crc32c_chunks(data, checksum.bytes_per_chunk)


def verify(data: _Buffer, sums: _Buffer, checksum: Checksum, *, at: int, what: str) -> None:
    """Check that the checksums are those of ``data``, which begins at ``at`` in its block.

    Raises:
        ChecksumMismatch: with the place of the first bad chunk.
    """
    made = checksums_of(data, checksum)
    if made == bytes(sums):
        return
    good = 0
    while made[good * 4 : good * 4 + 4] == bytes(sums[good * 4 : good * 4 + 4]):
        good += 1
    raise ChecksumMismatch(what, at + good * checksum.bytes_per_chunk)


def composite(sums: bytes, length: int, checksum: Checksum) -> bytes:
    """The CRC of a whole block of ``length`` bytes, composed from those of its chunks."""
    words = np.frombuffer(sums, dtype=">u4").astype(np.uint32)
    if len(words) == 0:
        return bytes(4)
    span = checksum.bytes_per_chunk
    whole = words[:-1]
    last_length = length - len(whole) * span
    # Zero is the CRC of nothing, so zeros in front change nothing and make the number even.
    size = 1 << max(len(whole) - 1, 0).bit_length()
    joined = np.zeros(size, dtype=np.uint32)
    joined[size - len(whole) :] = whole
    while len(joined) > 1:
        joined = _applied(_behind(span, checksum.kind), joined[::2]) ^ joined[1::2]
        span *= 2
    front = _applied(_behind(last_length, checksum.kind), joined[:1])
    return int(front[0] ^ words[-1]).to_bytes(4, "big")


def _crc32c_chunks(data: _Buffer, step: int) -> bytes:
    length = len(data)
    whole = length // step
    view = np.frombuffer(data, dtype=np.uint8)
    made = b""
    if whole:
        made = _crc32c(view[: whole * step].reshape(whole, step)).astype(">u4").tobytes()
    if whole * step < length:
        made += _crc32c(view[whole * step :].reshape(1, -1)).astype(">u4").tobytes()
    return made


def _crc32c(rows: NDArray[np.uint8]) -> _Words:
    """One checksum for each row."""
    kind = ChecksumType.CRC32C
    width = rows.shape[1]
    first = width % _PIECE or min(width, _PIECE)
    found = _raw(rows[:, :first]) ^ _initial(first)
    for at in range(first, width, _PIECE):
        found = _applied(_behind(_PIECE, kind), found) ^ _raw(rows[:, at : at + _PIECE])
    ended: _Words = found ^ np.uint32(_ONES)
    return ended


@cache
def _initial(length: int) -> np.uint32:
    """What the initial ones become through so many bytes."""
    ones = np.array([_ONES], dtype=np.uint32)
    return np.uint32(_applied(_behind(length, ChecksumType.CRC32C), ones)[0])


def _raw(rows: NDArray[np.uint8]) -> _Words:
    """What the bytes of each row give, at most ``_PIECE`` of them, without initial ones."""
    table, places = _effects()
    at = places[_PIECE - rows.shape[1] :]
    found = np.empty(len(rows), dtype=np.uint32)
    for begin in range(0, len(rows), _ROWS):
        part = rows[begin : begin + _ROWS]
        taken = table.take(at + part)
        np.bitwise_xor.reduce(taken, axis=1, out=found[begin : begin + len(part)])
    return found


@cache
def _effects() -> tuple[_Words, NDArray[np.intp]]:
    """What byte v gives with d bytes behind it, at d * 256 + v; and d * 256 for each place."""
    table = np.empty((_PIECE, 256), dtype=np.uint32)
    one = _byte_table(ChecksumType.CRC32C)
    table[0] = one
    for distance in range(1, _PIECE):
        before = table[distance - 1]
        table[distance] = one[before & 0xFF] ^ (before >> np.uint32(8))
    places = np.arange(_PIECE - 1, -1, -1, dtype=np.intp) * 256
    return table.reshape(-1), places


@cache
def _byte_table(kind: ChecksumType) -> _Words:
    table = np.arange(256, dtype=np.uint32)
    polynomial = np.uint32(_POLYNOMIALS[kind])
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ polynomial * (table & np.uint32(1))
    return table


@lru_cache(maxsize=2048)
def _behind(count: int, kind: ChecksumType) -> _Words:
    """What each bit of a CRC becomes when ``count`` zero bytes follow."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    if count == 0:
        return bits
    if count == 1:
        one: _Words = _byte_table(kind)[bits & 0xFF] ^ (bits >> np.uint32(8))
        return one
    half = _behind(count // 2, kind)
    twice = _applied(half, half)
    return _applied(_behind(1, kind), twice) if count % 2 else twice


def _applied(operator: _Words, words: _Words) -> _Words:
    found = np.zeros_like(words)
    for bit in range(32):
        found ^= operator[bit] * ((words >> np.uint32(bit)) & np.uint32(1))
    return found

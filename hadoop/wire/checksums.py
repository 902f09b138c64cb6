"""CRC-32 and CRC-32C of chunks, and what they say of the whole.

See docs/reference/datanode.md#checksums.

Pure.
"""

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from itertools import starmap
from typing import Final, TypeAlias

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from hadoop.blocks import Checksum, ChecksumType
from hadoop.wire.errors import ChecksumMismatch

_Words: TypeAlias = NDArray[np.uint32]
_Buffer: TypeAlias = bytes | bytearray | memoryview

_POLYNOMIALS: Final = {ChecksumType.CRC32: 0xEDB88320, ChecksumType.CRC32C: 0x82F63B78}
_BITS: Final[_Words] = np.uint32(1) << np.arange(32, dtype=np.uint32)
_SUM_OF: Final[dict[ChecksumType, Callable[[bytes], int]]] = {
    ChecksumType.CRC32: zlib.crc32,
    ChecksumType.CRC32C: google_crc32c.value,
}


def checksums_of(data: _Buffer, checksum: Checksum) -> bytes:
    """Return the checksums of the chunks, four bytes each, as in meta files and packets."""
    sum_of = _SUM_OF.get(checksum.kind)
    if sum_of is None:
        return b""
    view, step = memoryview(data), checksum.bytes_per_chunk
    whole = len(view) // step * step
    sums = [*starmap(sum_of, struct.iter_unpack(f"{step}s", view[:whole]))]  # all in C
    if whole < len(view):
        sums.append(sum_of(bytes(view[whole:])))
    return struct.pack(f">{len(sums)}I", *sums)


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
    """Compose the CRC of a whole block of ``length`` bytes from those of its chunks."""
    words = np.frombuffer(sums, dtype=">u4").astype(np.uint32)
    if len(words) < 2:
        return sums or bytes(4)
    span, kind = checksum.bytes_per_chunk, checksum.kind
    joined = words[:-1]
    last_length = length - len(joined) * span
    while len(joined) > 1:
        # Zero is the CRC of nothing, so one in front changes nothing and makes the number even.
        joined = np.pad(joined, (len(joined) % 2, 0))
        joined = _apply(_behind(span, kind), joined[::2]) ^ joined[1::2]
        span *= 2
    front = _apply(_behind(last_length, kind), joined)
    return int(front[0] ^ words[-1]).to_bytes(4, "big")


@lru_cache(maxsize=2048)
def _behind(count: int, kind: ChecksumType) -> _Words:
    """Return what each bit of a CRC becomes when ``count`` zero bytes follow."""
    if count == 0:
        return _BITS
    half = _behind(count // 2, kind)
    twice = _apply(half, half)
    return _one_behind(twice, kind) if count % 2 else twice


def _one_behind(words: _Words, kind: ChecksumType) -> _Words:
    """Return what CRCs become when one zero byte follows."""
    polynomial = np.uint32(_POLYNOMIALS[kind])
    for _ in range(8):
        words = (words >> np.uint32(1)) ^ polynomial * (words & np.uint32(1))
    return words


def _apply(operator: _Words, words: _Words) -> _Words:
    found = np.zeros_like(words)
    for bit in range(32):
        found ^= operator[bit] * ((words >> np.uint32(bit)) & np.uint32(1))
    return found

"""Damage to bytes of any form: cut, flipped, doubled, moved, and numbers set to extremes."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

MAX_INPUT_BYTES: Final = 1 << 16
ODD_NUMBERS: Final = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                      2**62, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
BAD_UTF8: Final = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x28\xa1")
"""No text; an overlong 0; half a surrogate pair; beyond the last character; a broken sequence."""


def damaged(seeds: Sequence[bytes], source: random.Random) -> bytes:
    data = bytearray(source.choice(seeds)) if seeds else bytearray()
    for _ in range(source.choice((1, 1, 1, 2, 3, 8))):
        _stroke(data, seeds, source)
    return bytes(data[:MAX_INPUT_BYTES])


def pieces(data: bytes, source: random.Random) -> list[bytes]:
    """Cut the bytes as several readings from a socket may bring them."""
    most = min(len(data), source.choice((0, 0, 1, 3, 20)))
    ends = sorted({0, len(data), *(source.randint(0, len(data)) for _ in range(most))})
    return [data[a:b] for a, b in pairwise(ends)]


def _stroke(data: bytearray, seeds: Sequence[bytes], source: random.Random) -> None:
    at = source.randint(0, len(data))
    end = min(len(data), at + source.choice((1, 1, 2, 4, 8, 40, 400)))
    match source.randrange(10):
        case 0 if at < len(data):
            data[at] ^= 1 << source.randrange(8)
        case 1 if at < len(data):
            data[at] = source.randrange(256)
        case 2:
            size = source.choice((1, 2, 4, 8))
            number = source.choice(ODD_NUMBERS) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, "big")
        case 3:
            del data[at:end]
        case 4:
            data[at:at] = data[at:end] * source.choice((1, 1, 2, 50))
        case 5:
            data[at:at] = source.randbytes(source.choice((1, 4, 30)))
        case 6:
            del data[at:]
        case 7:
            data[at:at] = source.choice(BAD_UTF8)
        case 8:
            piece = bytes(data[at:end])
            del data[at:end]
            to = source.randint(0, len(data))
            data[to:to] = piece
        case _:
            other = source.choice(seeds) if seeds else b""
            start = source.randint(0, len(other))
            data[at:end] = other[start : start + source.choice((4, 40, 400))]

"""Rows of a full report as a DataNode writes them."""

from collections.abc import Iterable

Row = tuple[int, int, int, int]
"""An id, a length, a stamp and a state."""


def varint(number: int) -> bytes:
    """Encode a number in groups of seven bits, the least first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def encoded(rows: Iterable[Row]) -> bytes:
    return b"".join(
        varint((number << 1 ^ number >> 63) % 2**64)
        + varint(length)
        + varint(stamp)
        + varint(state)
        for number, length, stamp, state in rows
    )

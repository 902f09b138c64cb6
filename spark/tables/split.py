"""Pieces of an image cut into smaller ones, for more tasks than it has sections."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from spark.image.ranges import SMALLEST_RANGE_BYTES, cut
from spark.tables.images import Piece, header_end

SPLIT_BYTES: Final = 64 * 1024 * 1024
"""What a task reads at most: some 700,000 inodes."""


def split(pieces: Iterable[Piece], size: int) -> Iterator[Piece]:
    """Cut what is not compressed into pieces of about ``size`` bytes.

    Where a piece begins in the middle of a section is a guess by its bytes.  Reading the piece
    before proves it: that must end there exactly, or it is refused as malformed.
    """
    for piece in pieces:
        if piece.codec or piece.length <= size * 3 // 2:
            yield piece
            continue
        begin = header_end(piece) if piece.header else piece.offset
        end = piece.offset + piece.length
        for found in cut(piece.path, piece.section, begin, end, size, 0):
            first = found.number == 0
            offset = piece.offset if first else found.offset
            header = piece.header and first
            yield replace(piece, offset=offset, length=found.end - offset, header=header)


def piece_bytes(pieces: Iterable[Piece], parallelism: int) -> int:
    """Return how large pieces should be: some for each core, but none too small for a task."""
    total = sum(piece.length for piece in pieces)
    return max(SMALLEST_RANGE_BYTES, min(SPLIT_BYTES, total // (3 * parallelism)))

"""Delimited messages in a stream of bytes: chunks of whole messages, with their places."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from ha.record import dataclass
from spark.image.messages import BadPrefix, long_prefix, prefixes
from spark.tables.cursors import SLACK_BYTES, Ints, varints, words_of

CHUNK_BYTES: Final = 1 << 20
"""What is decoded at a time: columns of some ten thousand inodes fit into a processor's cache."""
_SLACK: Final = bytes(SLACK_BYTES)


class BadMessage(Exception):
    """What is wrong with a message, and at which byte of the buffer or stream it begins."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"byte {at}: {what}")
        self.at = at
        self.what = what


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole messages: ``data`` from ``starts`` to ``ends``, and slack behind the last one.

    ``offset`` is where ``data`` begins in what was read.
    """

    data: bytes
    starts: Ints
    ends: Ints
    offset: int

    def __len__(self) -> int:
        return len(self.starts)

    def without_first(self) -> "Chunk":
        """Return the chunk behind its first message, which is a section's header."""
        return Chunk(self.data, self.starts[1:], self.ends[1:], self.offset)

    def first(self) -> bytes:
        return self.data[int(self.starts[0]) : int(self.ends[0])]


def chunks_of(pieces: Iterator[bytes], *, limit: int) -> Iterator[Chunk]:
    """Yield the messages of a stream, in chunks about as large as its pieces.

    Args:
        pieces: the bytes from one message's beginning to another one's end.
        limit: the most bytes that a message can have.

    Raises:
        BadMessage: if one claims more than that, or the last one is cut short.
    """
    offset = 0
    waiting: list[bytes] = []
    held = needed = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece)
        if held < needed:
            continue
        data = b"".join(waiting)
        found = np.fromiter(_prefixes(data, offset), np.int64)
        found, stop, needed = _whole(data, found, offset, limit)
        if len(found):
            yield _chunk(data[:stop] + _SLACK, found, offset)
        waiting, held = [data[stop:]], len(data) - stop
        offset += stop
    if held:
        raise BadMessage(offset, f"a message is cut short: {held} bytes are left of it")


def _prefixes(data: bytes, offset: int) -> Iterator[int]:
    """Yield where the lengths of messages begin; the last one need not be whole."""
    try:
        yield from prefixes(data, 0, len(data))
    except IndexError:
        pass  # the length itself is cut by the end of the data
    except BadPrefix as bad:
        raise BadMessage(offset + bad.position, str(bad)) from None


def _whole(data: bytes, found: Ints, offset: int, limit: int) -> tuple[Ints, int, int]:
    """Drop the last prefix if its message is cut; where the rest begins, and what it needs."""
    if not len(found):
        return found, 0, 0
    at = int(found[-1])
    try:
        start, size = long_prefix(data, at)
        end = start + size
    except IndexError:
        return found[:-1], at, 0
    if end - at - 5 > limit:
        raise BadMessage(offset + at, f"a message claims {end - at} bytes, at most {limit} can be")
    if end > len(data):
        return found[:-1], at, end - at
    return found, end, 0


def _chunk(data: bytes, at: Ints, offset: int) -> Chunk:
    length, size = varints(words_of(data)[at])
    starts = at + size
    return Chunk(data, starts, starts + length.view(np.int64), offset)

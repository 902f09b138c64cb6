"""Parses a stream of bytes into framed edits, with checksums and txids verified.  Pure."""

import struct
from typing import Final

from ha.record import dataclass
from journal import frame
from journal.model import TxId

_LENGTH = struct.Struct(">i")
_OVERHEAD: Final = 5  # opcode and checksum, which the length leaves out


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive framed edits, with checksums and txids verified."""

    first: TxId
    last: TxId
    layout_version: int
    records: bytes

    def cut(self, last: TxId) -> tuple["Chunk", "Chunk | None"]:
        """Return the edits up to ``last``, and the rest if there are any."""
        if last >= self.last:
            return self, None
        end = frame.scan(self.records, expected=self.first, last_wanted=last).end
        layout, records = self.layout_version, self.records
        return (
            Chunk(self.first, last, layout, records[:end]),
            Chunk(TxId(last + 1), self.last, layout, records[end:]),
        )


def split(records: bytes) -> list[bytes]:
    """Split verified records into their framed edits."""
    frames, position, size = [], 0, len(records)
    while position < size:
        end = position + _OVERHEAD + int(_LENGTH.unpack_from(records, position + 1)[0])
        frames.append(records[position:end])
        position = end
    return frames


class FrameReader:
    """Parses a segment file, which comes in pieces, into chunks.

    Args:
        first: the txid of the file's first edit.
        wanted: the first edit to return; edits before it are verified and dropped.
        last: the last edit to read; None reads up to the padding or the end.
    """

    def __init__(self, first: TxId, *, wanted: TxId, last: TxId | None) -> None:
        self._buffer = bytearray()
        self._layout: int | None = None
        self.next_txid = first
        self._wanted = wanted
        self._last = last
        self._padding = False

    @property
    def complete(self) -> bool:
        """Whether the edit ``last`` was read."""
        return self._last is not None and self.next_txid > self._last

    def feed(self, data: bytes) -> Chunk | None:
        """Add the file's next bytes, and return the wanted edits that they complete, if any.

        Raises:
            ValueError: the next edit is damaged or missing.
        """
        if self.complete or self._padding:
            return None
        self._buffer += data
        if self._layout is None:
            if len(self._buffer) < frame.HEADER_BYTES:
                return None
            self._layout = frame.read_header(bytes(self._buffer[: frame.HEADER_BYTES]))
            del self._buffer[: frame.HEADER_BYTES]
        return self._take(self._layout)

    def _take(self, layout: int) -> Chunk | None:
        if not self._buffer or _may_go_on(self._buffer, 0):
            return None  # do not scan a large edit again for each piece of it
        data = bytes(self._buffer)
        start = 0
        if self.next_txid < self._wanted:
            skipped = frame.scan(data, expected=self.next_txid, last_wanted=TxId(self._wanted - 1))
            start = skipped.end
            if skipped.last is not None:
                self.next_txid = TxId(skipped.last + 1)
        # If the first scan ended early, this one finds no edit, and the same damage or padding.
        found = frame.scan(data, start=start, expected=self.next_txid, last_wanted=self._last)
        self._judge(data, found)
        del self._buffer[: found.end]
        if found.first is None or found.last is None:
            return None
        self.next_txid = TxId(found.last + 1)
        return Chunk(found.first, found.last, layout, data[start : found.end])

    def _judge(self, data: bytes, found: frame.Scan) -> None:
        """Raise ValueError for damage; an incomplete last frame may go on in the next piece."""
        end, damage = found.end, found.damage
        reached = self.next_txid if found.last is None else found.last + 1
        if damage is not None and not _may_go_on(data, end):
            raise ValueError(f"at transaction {reached}: {damage}")
        if end < len(data) and data[end] == frame.TERMINATOR:
            if self._last is not None and reached <= self._last:
                raise ValueError(f"the edits end before transaction {reached}")
            self._padding = True


def _may_go_on(data: bytes | bytearray, end: int) -> bool:
    """Return whether an incomplete frame, whose rest has not come yet, begins at ``end``."""
    if data[end] == frame.TERMINATOR:
        return False
    left = len(data) - end
    if left < frame.MIN_FRAME_BYTES:
        return True
    return left < int(_LENGTH.unpack_from(data, end + 1)[0]) + _OVERHEAD <= frame.MAX_OP_BYTES

"""A moving window over a file, so that edits are read frame by frame in little memory.

Not a memory map: a segment that its NameNode finalizes while we read is cut to its true length,
and touching a page behind the cut kills the process.
"""

from typing import BinaryIO, Final

CHUNK_BYTES: Final = 1 << 20


class FileWindow:
    """Some bytes of a file; ``base`` is the offset of the first, ``end`` that behind the last.

    The file's ``size`` is taken once: what a writer appends later is not seen.
    """

    __slots__ = ("_chunk", "_file", "base", "data", "size")

    def __init__(self, file: BinaryIO, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._file = file
        self._chunk = chunk_bytes
        self.size = file.seek(0, 2)
        self.base = 0
        self.data = b""

    @property
    def end(self) -> int:
        """The offset behind the last byte that is held."""
        return self.base + len(self.data)

    def hold(self, offset: int, count: int = 1) -> int:
        """Hold ``count`` bytes from ``offset`` on, or what the file has of them.

        Returns:
            The index of ``offset`` in ``data``.
        """
        wanted = min(offset + count, self.size)
        if self.base <= offset and wanted <= self.end:
            return offset - self.base
        self._file.seek(offset)
        self.data = self._file.read(max(count, self._chunk))[: self.size - offset]
        self.base = offset
        if self.end < wanted:
            self.size = self.end  # The file was cut in the meantime.
        return 0

    def last_not_in(self, padding: bytes, start: int) -> int:
        """Return the offset behind the last byte from ``start`` on that is none of ``padding``."""
        end = self.size
        while end > start:
            begin = max(start, end - self._chunk)
            at = self.hold(begin, end - begin)
            kept = self.data[at : at + end - begin].rstrip(padding)
            if kept:
                return begin + len(kept)
            end = begin
        return start

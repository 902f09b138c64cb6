"""A file in memory that counts what was read of it, and a segment that is read from one."""

from io import BytesIO
from typing import BinaryIO, cast

from journal.model import TxId
from namenode_sim.edits.segment_file import SegmentFile


class Counted:
    """Bytes to read; ``reads`` says how many bytes each call was given."""

    def __init__(self, data: bytes) -> None:
        self._file = BytesIO(data)
        self.size = len(data)
        self.reads: list[int] = []

    @property
    def file(self) -> BinaryIO:
        """For whoever seeks and reads, which is all that one can do with it."""
        return cast("BinaryIO", self)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.reads.append(len(data))
        return data

    def append(self, data: bytes) -> None:
        """Append as a writer does that has the file open too."""
        self._file.seek(0, 2)
        self._file.write(data)

    def cut(self, size: int) -> None:
        """Truncate as its NameNode does when it finalizes a segment."""
        self._file.truncate(size)


def opened(data: bytes | Counted, *, first: int | None = 1) -> SegmentFile:
    """Return a segment of these bytes whose first transaction has this number, or any."""
    counted = Counted(data) if isinstance(data, bytes) else data
    return SegmentFile(counted.file, "edits", first=None if first is None else TxId(first))

"""A file in memory that tells what was read of it."""

from io import BytesIO
from typing import BinaryIO, cast


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
        """As a writer does that has the file open too."""
        self._file.seek(0, 2)
        self._file.write(data)

    def cut(self, size: int) -> None:
        """As its NameNode does when it finalizes a segment."""
        self._file.truncate(size)

"""Ranges of a section that tasks work on, and where to cut a section into them."""

from collections.abc import Iterator
from io import FileIO
from typing import Final

from ha.record import dataclass
from namenode_sim.image.errors import ImageError
from spark.image.sync import next_directory, next_inode
from spark.image.varints import SLACK, ByteWindow

RANGE_BYTES: Final = 64 * 1024 * 1024
"""What a task holds in memory; its arrays take about as much again."""
SMALLEST_RANGE_BYTES: Final = 8 * 1024 * 1024
_LOOKS: Final = (256 * 1024, 4 * 1024 * 1024, 64 * 1024 * 1024)
"""How far to look for the beginning of a message; one directory can be many MB."""


@dataclass(frozen=True, slots=True)
class ImageRange:
    """Plain bytes of a file that hold whole messages of INODE or INODE_DIR.

    ``last`` if the stretch ends here that was cut: a sub-section, or the section.  Where the next
    one of a stretch begins is a guess until this one was read.
    """

    number: int
    section: str
    path: str
    offset: int
    length: int
    last: bool
    image: str = ""
    """How to call the file in errors, if ``path`` holds what was unpacked from an image."""

    @property
    def end(self) -> int:
        """The position in the file behind it."""
        return self.offset + self.length

    def where(self, position: int) -> str:
        """Return a position in the range, for people."""
        at = self.offset + position
        if self.image:
            return f"{self.image}: section {self.section}, byte {at} of its part's plain bytes"
        return f"{self.path}: section {self.section}, byte {at} of the file"


def read_window(item: ImageRange) -> ByteWindow:
    """Read the bytes of a range.

    Raises:
        ImageError: if the file is shorter.
    """
    data = bytearray(item.length + SLACK)
    with open(item.path, "rb", buffering=0) as file:  # noqa: PTH123 - a path of the task's text
        file.seek(item.offset)
        view, have = memoryview(data), 0
        while have < item.length:
            count = file.readinto(view[have:])
            if not count:
                raise ImageError(
                    f"{item.where(have)}: the file ends; it changed while it was read: take "
                    "another copy of this image"
                )
            have += count
    return ByteWindow(data)


def range_bytes(section: str, length: int, parallelism: int) -> int:
    """Return how large the ranges of ``length`` bytes must be, for some tasks per core."""
    # A byte of INODE_DIR takes about ten times as long: it holds a third of an id.
    share = 1 if section == "INODE" else 8
    wanted = min(RANGE_BYTES // share, length // (3 * parallelism))
    return max(SMALLEST_RANGE_BYTES // share, wanted)


def cut(
    path: str,
    section: str,
    begin: int,
    end: int,
    size: int,
    first_number: int,
    image: str = "",
) -> Iterator[ImageRange]:
    """Cut the messages in [begin, end) of a file into ranges of about ``size`` bytes."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a path of the task's text
        at, number = begin, first_number
        while at < end:
            guess = end
            if end - at > size * 3 // 2:
                guess = _guess(file, section, at + size, end)
            yield ImageRange(number, section, path, at, guess - at, guess == end, image)
            at, number = guess, number + 1


def _guess(file: FileIO, section: str, target: int, end: int) -> int:
    search = next_inode if section == "INODE" else next_directory
    for look in _LOOKS:
        size = min(look, end - target)
        file.seek(target)
        data = file.read(size)
        found = search(data, at_end=size == end - target)
        if found is not None and found:
            return target + found
        if size == end - target:
            break
    return end

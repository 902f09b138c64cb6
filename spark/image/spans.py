"""Read pieces of a range: one by one if they are few and small, else the whole range once."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from namenode_sim.image.errors import ImageError
from spark.image.inodes import BadMessage, Heads, heads
from spark.image.messages import Chunk
from spark.image.ranges import ImageRange, read_window
from spark.image.side import INodeIndex
from spark.image.varints import ByteWindow, Numbers, gathered, window_of

_WORTH_A_SEEK: Final = 64 * 1024
"""Reading this many bytes on costs about what a seek costs."""


class RangeReader:
    """The bytes of one range; all positions count from its beginning."""

    __slots__ = ("_window", "item")

    def __init__(self, item: ImageRange) -> None:
        self.item = item
        self._window: ByteWindow | None = None

    def window(self) -> ByteWindow:
        """Return all bytes of the range, which are read once.

        Raises:
            ImageError: if the file is shorter.
        """
        if self._window is None:
            self._window = read_window(self.item)
        return self._window

    def all_bytes(self) -> memoryview:
        """Return the bytes of the range, without what lies behind it."""
        return memoryview(self.window().data)[: self.item.length]

    def spans(self, starts: Numbers, ends: Numbers) -> bytes:
        """Return the bytes of the spans, one behind the other."""
        if not starts.size:
            return b""
        if self._worth_seeking(starts, ends):
            return b"".join(self._each(starts, ends))
        return gathered(self.window(), starts, ends)

    def messages(self, starts: Numbers, ends: Numbers) -> tuple[ByteWindow, Chunk]:
        """Return a window with the messages at these positions, and where in it they lie."""
        if not self._worth_seeking(starts, ends):
            return self.window(), Chunk(0, starts, ends)
        behind = np.cumsum(ends - starts)
        data = b"".join(self._each(starts, ends))
        return window_of(data), Chunk(0, behind - (ends - starts), behind)

    def heads(self, index: INodeIndex, rows: Numbers) -> Heads:
        """Return the heads of some inodes.

        Raises:
            ImageError: if one is malformed; names file and offset.
        """
        starts = index.starts[rows]
        window, chunk = self.messages(starts, index.ends[rows])
        try:
            return heads(window, chunk)
        except BadMessage as problem:
            row = int(np.flatnonzero(chunk.starts == problem.position)[0])
            raise ImageError(f"{self.item.where(int(starts[row]))}: {problem}") from problem

    def _worth_seeking(self, starts: Numbers, ends: Numbers) -> bool:
        if self._window is not None:
            return False
        return starts.size * _WORTH_A_SEEK + int((ends - starts).sum()) < self.item.length

    def _each(self, starts: Numbers, ends: Numbers) -> Iterator[bytes]:
        item = self.item
        with open(item.path, "rb", buffering=0) as file:  # noqa: PTH123 - a path of the task's text
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                file.seek(item.offset + start)
                data = file.read(end - start)
                while len(data) < end - start:
                    more = file.read(end - start - len(data))
                    if not more:
                        raise ImageError(f"{item.where(start)}: the file ends inside a message")
                    data += more
                yield data

"""Read many small pieces of a range: one by one if they are few, else the whole range."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from namenode_sim.image.errors import ImageError
from spark.image.messages import Chunk
from spark.image.ranges import ImageRange, read_window
from spark.image.varints import Numbers, Window, gathered, window_of

_WORTH_A_SEEK: Final = 64 * 1024
"""Reading so much on costs about what a seek costs."""


def read_spans(item: ImageRange, starts: Numbers, ends: Numbers) -> bytes:
    """The bytes of spans of a range behind each other; positions count from its beginning.

    Raises:
        ImageError: if the file is shorter.
    """
    if not starts.size:
        return b""
    if not _worth_seeking(item, starts, ends):
        return gathered(read_window(item), starts, ends)
    return b"".join(_each(item, starts, ends))


def _each(item: ImageRange, starts: Numbers, ends: Numbers) -> Iterator[bytes]:
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


def messages_at(item: ImageRange, starts: Numbers, ends: Numbers) -> tuple[Window, Chunk]:
    """A window that holds the messages at these positions of a range, and where in it they lie."""
    if not _worth_seeking(item, starts, ends):
        return read_window(item), Chunk(0, starts, ends)
    behind = np.cumsum(ends - starts)
    data = b"".join(_each(item, starts, ends))
    return window_of(data), Chunk(0, behind - (ends - starts), behind)


def _worth_seeking(item: ImageRange, starts: Numbers, ends: Numbers) -> bool:
    return starts.size * _WORTH_A_SEEK + int((ends - starts).sum()) < item.length

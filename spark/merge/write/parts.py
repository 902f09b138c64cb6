"""Parts of a section: what tasks write of a range, or the range itself where nothing changes."""

from pathlib import Path
from typing import Final, Self

from ha.record import dataclass
from namenode_sim.image.codecs import Compressor, compressor
from spark.image.ranges import ImageRange

_GATHER_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a file as they are to be in the section; a temporary file is removed after use."""

    path: str
    offset: int
    length: int
    temporary: bool


def unchanged(item: ImageRange) -> Part:
    """Return a range of a plain image as it is."""
    return Part(item.path, item.offset, item.length, temporary=False)


class PartWriter:
    """Gathers small pieces, compresses them if need be, and writes them to a part's file.

    Use it in a ``with``, which closes the file.
    """

    def __init__(self, path: Path, codec: str) -> None:
        self._path = path
        self._file = path.open("wb", buffering=0)
        self._stream: Compressor | None = compressor(codec) if codec else None
        self._pieces: list[bytes | memoryview] = []
        self._waiting = self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, piece: bytes | memoryview) -> None:
        """Add the next bytes; the memory of a view must stay until `finish`."""
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._waiting >= _GATHER_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._stream is None and len(self._pieces) == 1:
            self._put(self._pieces[0])
        else:
            data = b"".join(self._pieces)
            self._put(data if self._stream is None else self._stream.compress(data))
        self._pieces.clear()
        self._waiting = 0

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._written += len(data)

    def finish(self) -> Part:
        """Return the part; nothing is synced, for a part that is lost is made again."""
        if self._pieces:
            self._flush()
        if self._stream is not None:
            self._put(self._stream.flush())
        return Part(str(self._path), 0, self._written, temporary=True)

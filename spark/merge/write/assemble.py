"""Put an image together from its parts in one pass with its digest, while they are written.

See docs/reference/checkpoint.md#assemble.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Self

from ha.record import dataclass, field
from namenode_sim.image.codecs import Compressor, compressor
from namenode_sim.image.container import SUB, ImageWriter
from namenode_sim.image.errors import ImageError
from namenode_sim.image.unknown import restore_unknown
from spark.image.opened import LARGE, OpenedImage
from spark.merge.stages import Progress, Tell
from spark.merge.write.parts import Part

_COPY_BYTES: Final = 4 * 1024 * 1024
_DEADLINE_SECONDS: Final = 600.0
"""How long closing may wait for the thread, which is only behind by what it is copying."""

Fresh = Callable[[], Iterator[bytes]]
"""Delimited messages that go behind a section's parts."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the new image holds in addition to its parts.

    Attributes:
        header: the INodeSection message, with its length.
        sections: plain bytes of the sections that are written anew, by name.
        fresh: what goes behind the parts of INODE and INODE_DIR.
    """

    header: bytes
    sections: dict[str, bytes]
    fresh: dict[str, Fresh]


@dataclass(frozen=True, slots=True)
class Written:
    """The image that was written: inodes in it, its length in bytes, its MD5 digest in hex."""

    inodes: int
    bytes: int
    md5: str


class _Abandoned(Exception):
    """The parts will not come."""


@dataclass(slots=True)
class _Outcome:
    """How the writing ended."""

    bytes: int = 0
    md5: str = ""
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)


class Assembly:
    """Writes an image in a thread of its own, which takes parts in their order as they come.

    Use it in a ``with``: leaving it waits for the end of the file, or gives up on an error.
    Copying and MD5 let go of the interpreter, so that they cost the driver's own work nothing.
    """

    def __init__(self, image: OpenedImage, layout: Layout, path: Path, tell: Tell) -> None:
        self._image = image
        self._layout = layout
        self._path = path
        self._tell = tell
        self._parts: dict[str, queue.SimpleQueue[Part | None]] = {
            name: queue.SimpleQueue() for name in LARGE
        }
        self._outcome = _Outcome()
        self._thread = threading.Thread(target=self._run, name="assemble", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            self._outcome.stop.set()
        for name in LARGE:
            self._parts[name].put(None)
        self._thread.join(_DEADLINE_SECONDS if error is not None else None)
        if error is None and self._outcome.error is not None:
            raise self._outcome.error

    def put(self, section: str, part: Part) -> None:
        """Take the next part of INODE or INODE_DIR.

        Raises:
            OSError: if the thread could not write; nothing more is taken.
        """
        if self._outcome.error is not None:
            raise self._outcome.error
        self._parts[section].put(part)

    def end(self, section: str) -> None:
        """Note that all parts of a section are there."""
        self._parts[section].put(None)

    @property
    def size(self) -> int:
        """Bytes of the image, once it is written."""
        return self._outcome.bytes

    @property
    def md5(self) -> str:
        """The image's digest in hex, once the image is written."""
        return self._outcome.md5

    def _run(self) -> None:
        try:
            self._write()
        except _Abandoned:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the parts are put
            self._outcome.error = error

    def _write(self) -> None:
        # Buffered: a raw file may take less than it is given, and what it left out of the last
        # write on a full disk would not be reported.
        with self._path.open("wb") as file:
            summary = self._image.summary
            writer = ImageWriter(
                file, layout=summary.layout, codec=summary.codec, check=self._check
            )
            restore_unknown({("SUMMARY", ""): summary.raw}, ("SUMMARY", ""), writer.summary)
            for name in self._names():
                if name in LARGE:
                    self._write_large(writer, name)
                elif name in self._layout.sections:
                    with writer.section(name) as write:
                        write(self._layout.sections[name])
                else:
                    self._copy_section(writer, name)
            self._outcome.md5 = writer.finish()
            self._outcome.bytes = writer.position
            file.flush()
            os.fsync(file.fileno())

    def _names(self) -> list[str]:
        """Return the sections in the order of the old image, then those that it lacks."""
        old = sorted(
            (s for s in self._image.summary.sections if not s.name.endswith(SUB)),
            key=lambda section: section.offset,
        )
        names = [section.name for section in old]
        if "INODE_DIR" not in names:
            names.insert(names.index("INODE") + 1, "INODE_DIR")
        return [*names, *(name for name in self._layout.sections if name not in names)]

    def _check(self) -> None:
        if self._outcome.stop.is_set():
            raise _Abandoned

    def _write_large(self, writer: ImageWriter, name: str) -> None:
        start = writer.position
        sub = name + SUB if self._image.divided else ""
        begin = start
        if name == "INODE" and not writer.codec:
            writer.put(self._layout.header)
        while (part := self._parts[name].get()) is not None:
            self._check()
            _copy(writer, part.path, part.offset, part.length)
            self._told(writer)
            if part.temporary:
                Path(part.path).unlink()
            if sub:
                writer.add_entry(sub, begin)
                begin = writer.position
        self._check()
        _put_fresh(writer, self._layout.fresh[name]())
        if sub:
            writer.add_entry(sub, begin)
        if writer.codec and writer.position == start:
            # Hadoop's decompressors want a stream even where nothing is to be read.
            writer.put(compressor(writer.codec).flush())
        writer.add_entry(name, start)

    def _copy_section(self, writer: ImageWriter, name: str) -> None:
        """Copy a section as it is, compressed or not, with its sub-sections."""
        start = writer.position
        for part in self._image.summary.parts(name):
            begin = writer.position
            _copy(writer, self._image.path, part.offset, part.length)
            if part.name.endswith(SUB):
                writer.add_entry(part.name, begin)
        writer.add_entry(name, start)

    def _told(self, writer: ImageWriter) -> None:
        self._tell(Progress("assemble", writer.position, None, "bytes"))


def _copy(writer: ImageWriter, path: str, offset: int, length: int) -> None:
    room = memoryview(bytearray(min(_COPY_BYTES, length)))
    with Path(path).open("rb", buffering=0) as file:
        file.seek(offset)
        left = length
        while left:
            count = file.readinto(room[: min(len(room), left)])
            if not count:
                raise ImageError(f"{path} ends at byte {offset + length - left} while it is copied")
            writer.put(room[:count])
            left -= count


def _put_fresh(writer: ImageWriter, messages: Iterable[bytes]) -> None:
    """Messages as a stream of their own; no stream if there are none."""
    stream: Compressor | None = None
    waiting: list[bytes] = []
    for message in messages:
        waiting.append(message)
        if len(waiting) == 4096:
            stream = _put_batch(writer, waiting, stream)
    if waiting:
        stream = _put_batch(writer, waiting, stream)
    if stream is not None:
        writer.put(stream.flush())


def _put_batch(
    writer: ImageWriter, waiting: list[bytes], stream: Compressor | None
) -> Compressor | None:
    data = b"".join(waiting)
    waiting.clear()
    if writer.codec:
        stream = stream or compressor(writer.codec)
        data = stream.compress(data)
    writer.put(data)
    return stream

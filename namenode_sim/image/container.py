"""The file around an image's sections: magic, sections, summary.

    "HDFSIMG1" | section bytes ... | FileSummary, delimited | i32 size of the summary

Each section is a run of delimited protobuf messages, compressed on its own or not at all.

See docs/reference/formats.md#image-file.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from ha.record import dataclass
from namenode_sim.edits.attributes import delimited
from namenode_sim.image.codecs import CHUNK_BYTES, Compressor, compressor, decompressed
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto.fsimage_pb2 import FileSummary

MAGIC: Final = b"HDFSIMG1"
MAX_SUMMARY_BYTES: Final = 64 * 1024 * 1024
MAX_MESSAGE_BYTES: Final = 24 * 1024 * 1024
"""A message of a compressed section; a directory of a million children takes about 5 MiB."""
SUB: Final = "_SUB"
"""What the names of sub-sections end with."""
OLDEST_LAYOUT: Final = -52
NEWEST_LAYOUT: Final = -67

_TRAILER = struct.Struct(">i")

WriteBytes = Callable[[bytes], None]
"""Takes the next bytes of a section."""


@dataclass(frozen=True, slots=True)
class Section:
    """Where a section's bytes lie in the file."""

    name: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What the end of the file says about the rest.  ``codec`` is empty for plain sections."""

    layout: int
    codec: str
    sections: tuple[Section, ...]
    raw: bytes = b""
    """The message itself, for fields that we do not know."""

    def find(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def parts(self, name: str) -> tuple[Section, ...]:
        """Return the sub-sections of a section in order, or the section itself if it has none.

        Each is a compressed stream of its own and ends between two messages, so that several can be
        read at the same time (docs/reference/formats.md#sub-sections).

        Raises:
            ImageError: if they are not together exactly the section.
        """
        whole = self.find(name)
        found = sorted(
            (section for section in self.sections if section.name == name + SUB),
            key=lambda section: section.offset,
        )
        if whole is None or not found:
            return (whole,) if whole is not None else ()
        at = whole.offset
        for part in found:
            if part.offset != at:
                break
            at += part.length
        else:
            if at == whole.offset + whole.length:
                return tuple(found)
        raise ImageError(f"its sections {name}{SUB} are together not its section {name}")


def read_summary(file: BinaryIO) -> Summary:
    """Find the sections of an image.

    Raises:
        ImageError: if it is no image, is cut short, or has an unknown version.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise ImageError("it does not begin with HDFSIMG1, so it is no protobuf fsimage")
    if size < len(MAGIC) + _TRAILER.size:
        raise ImageError(f"it ends after {size} bytes")
    file.seek(size - _TRAILER.size)
    (length,) = _TRAILER.unpack(file.read(_TRAILER.size))
    room = min(size - len(MAGIC) - _TRAILER.size, MAX_SUMMARY_BYTES)
    if not 0 < length <= room:
        raise ImageError(f"its summary claims {length} bytes; at most {room} are there")
    start = size - _TRAILER.size - length
    file.seek(start)
    found = list(messages(iter([file.read(length)]), limit=length))
    if len(found) != 1:
        raise ImageError(f"its summary holds {len(found)} messages, expected one")
    message = FileSummary.FromString(found[0])
    if message.ondiskVersion != 1:
        raise ImageError(f"its on-disk version is {message.ondiskVersion}, expected 1")
    layout = message.layoutVersion - (1 << 32 if message.layoutVersion >= 1 << 31 else 0)
    if not NEWEST_LAYOUT <= layout <= OLDEST_LAYOUT:
        raise ImageError(
            f"its layout version is {layout}, expected {OLDEST_LAYOUT} to {NEWEST_LAYOUT}"
        )
    sections = tuple(Section(s.name, s.offset, s.length) for s in message.sections)
    for section in sections:
        if section.offset < len(MAGIC) or section.offset + section.length > start:
            raise ImageError(f"its section {section.name} lies outside the file")
    return Summary(layout, message.codec, sections, found[0])


@dataclass(slots=True)
class MessagePosition:
    """Where in a section the message lies that was taken last, for errors."""

    offset: int = 0
    """Bytes from the section's beginning; in a compressed section, of its plain bytes."""


def section_messages(
    file: BinaryIO, section: Section, codec: str, place: MessagePosition | None = None
) -> Iterator[bytes]:
    """Yield the messages of a section, one after another, in constant memory.

    Raises:
        ImageError: if the section is cut short or its compression is broken or unknown.
    """
    # A plain message cannot be longer than its section; what a compressed one claims is free.
    limit = MAX_MESSAGE_BYTES if codec else section.length
    raw = stretch(file, section.offset, section.length, of=f"section {section.name}")
    chunks = decompressed(raw, codec)
    return messages(chunks, limit=limit, place=place)


def stretch(
    file: BinaryIO, offset: int, length: int, *, of: str = "it", at_once: int = CHUNK_BYTES
) -> Iterator[bytes]:
    """Yield the bytes of a stretch as they lie in the file; others may read there in between.

    Raises:
        ImageError: if the file ends inside; the text calls the stretch ``of``.
    """
    end = offset + length
    while offset < end:
        file.seek(offset)
        chunk = file.read(min(at_once, end - offset))
        if not chunk:
            raise ImageError(f"the file ends inside {of}")
        offset += len(chunk)
        yield chunk


def messages(
    chunks: Iterator[bytes], *, limit: int = MAX_MESSAGE_BYTES, place: MessagePosition | None = None
) -> Iterator[bytes]:
    """Split delimited messages.

    Raises:
        ImageError: if one claims more than ``limit`` bytes, or the last one is cut short.
    """
    place = place or MessagePosition()
    data, pos, size, base = b"", 0, 0, 0
    for chunk in chunks:
        if pos < size:
            chunk = _complete(data[pos:] + chunk, chunks, limit)
        base += pos
        data, pos, size = chunk, 0, len(chunk)
        while pos < size:
            length = data[pos]
            start = pos + 1
            if length > 0x7F:
                length, start = _long_length(data, pos, limit)
            end = start + length
            if not length >= 0 or end > size:
                break
            place.offset = base + pos
            yield data[start:end]
            pos = end
    if pos < size:
        place.offset = base + pos
        raise ImageError(f"a message is cut short: {size - pos} bytes are left of it")


def _complete(data: bytes, chunks: Iterator[bytes], limit: int) -> bytes:
    """Return a message that begins with ``data``, and what came with its end, joined only once."""
    length, start = _long_length(data, 0, limit) if data[0] > 0x7F else (data[0], 1)
    if length < 0 or start + length <= len(data):
        return data
    parts, missing = [data], start + length - len(data)
    while missing > 0 and (chunk := next(chunks, None)) is not None:
        parts.append(chunk)
        missing -= len(chunk)
    return b"".join(parts)


def _long_length(data: bytes, pos: int, limit: int) -> tuple[int, int]:
    """Return a length of several bytes and the position behind it; -1 if the data ends inside."""
    length = 0
    for shift in range(0, 35, 7):
        if pos >= len(data):
            return -1, pos
        byte = data[pos]
        pos += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            if length > limit:
                raise ImageError(f"a message claims {length} bytes, at most {limit} can be")
            return length, pos
    raise ImageError("the length of a message is longer than five bytes")


def next_message(section: Iterator[bytes]) -> bytes:
    """Return the next message of a section; raise ImageError if there is none."""
    raw = next(section, None)
    if raw is None:
        raise ImageError("a section ends before all that it announces")
    return raw


class SectionStream:
    """A section being written: call it with delimited messages."""

    __slots__ = ("_begin", "_start", "_stream", "_sub_name", "_writer")

    def __init__(self, writer: "ImageWriter", sub_name: str) -> None:
        self._writer = writer
        self._sub_name = sub_name
        self._begin = self._start = writer.position
        self._stream: Compressor | None = None

    def __call__(self, data: bytes) -> None:
        if self._writer.codec:
            self._stream = self._stream or compressor(self._writer.codec)
            data = self._stream.compress(data)
        self._writer.put(data)

    def split(self) -> None:
        """End a sub-section here: its own compressed stream and an entry in the summary."""
        self._end_stream()
        self._writer.add_entry(self._sub_name, self._start)
        self._start = self._writer.position

    def end(self) -> None:
        if self._sub_name:
            self.split()
        else:
            self._end_stream()
        if self._writer.codec and self._writer.position == self._begin:
            # Hadoop's decompressors want a stream even where nothing is to be read.
            self._writer.put(compressor(self._writer.codec).flush())

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._writer.put(self._stream.flush())
            self._stream = None


class ImageWriter:
    """Writes an image section by section; ``finish`` adds the summary and gives the digest."""

    def __init__(
        self,
        file: BinaryIO,
        *,
        layout: int,
        codec: str = "",
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Call ``check`` before each write: what it raises ends the saving."""
        if codec:
            compressor(codec)  # fail before anything is written
        self.codec = codec
        self.position = 0
        self._file = file
        self._check = check
        self._digest = hashlib.md5(usedforsecurity=False)
        self._summary = FileSummary(
            ondiskVersion=1, layoutVersion=layout & 0xFFFFFFFF, codec=codec or None
        )
        self.put(MAGIC)

    @property
    def summary(self) -> FileSummary:
        return self._summary

    def put(self, data: bytes | memoryview) -> None:
        self._check()
        self._file.write(data)
        self._digest.update(data)
        self.position += len(data)

    def add_entry(self, name: str, start: int) -> None:
        """Enter in the summary what was written since ``start``, but no empty sub-section."""
        length = self.position - start
        if length or not name.endswith(SUB):
            self._summary.sections.add(name=name, length=length, offset=start)

    @contextmanager
    def section(self, name: str, *, divided: bool = False) -> Iterator[SectionStream]:
        """Write a section through the stream given; ``divided`` if it is to have sub-sections.

        The entries of the sub-sections come before the section's own.
        """
        start = self.position
        stream = SectionStream(self, name + SUB if divided else "")
        yield stream
        stream.end()
        self.add_entry(name, start)

    def finish(self) -> str:
        """Write the summary; returns the MD5 digest of the whole file in hex."""
        summary = delimited(self._summary.SerializeToString())
        self.put(summary)
        self.put(_TRAILER.pack(len(summary)))
        return self._digest.hexdigest()

"""The file around an image's sections: magic, sections, summary (hadoop-formats 3.1).

    "HDFSIMG1" | section bytes ... | FileSummary, delimited | i32 size of the summary

Each section is a run of delimited protobuf messages, compressed on its own or not at all.
"""

import bz2
import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from namenode_sim.edits.attributes import delimited
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto.fsimage_pb2 import FileSummary

MAGIC: Final = b"HDFSIMG1"
CHUNK_BYTES: Final = 1024 * 1024
MAX_SUMMARY_BYTES: Final = 64 * 1024 * 1024
MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""A directory of a million children takes about 5 MiB."""
OLDEST_LAYOUT: Final = -52
NEWEST_LAYOUT: Final = -67

_PACKAGE: Final = "org.apache.hadoop.io.compress."
ZLIB_CODEC: Final = _PACKAGE + "DefaultCodec"
GZIP_CODEC: Final = _PACKAGE + "GzipCodec"
BZIP2_CODEC: Final = _PACKAGE + "BZip2Codec"

_WINDOW_BITS: Final = {ZLIB_CODEC: 15, _PACKAGE + "DeflateCodec": 15, GZIP_CODEC: 31}
_TRAILER = struct.Struct(">i")


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
    found = list(messages(iter([file.read(length)])))
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
    return Summary(layout, message.codec, sections)


def section_messages(file: BinaryIO, section: Section, codec: str) -> Iterator[bytes]:
    """The messages of a section, one after another, in constant memory.

    Raises:
        ImageError: if the section is cut short or its compression is broken or unknown.
    """
    return messages(_decompressed(_chunks(file, section), codec))


def _chunks(file: BinaryIO, section: Section) -> Iterator[bytes]:
    offset, end = section.offset, section.offset + section.length
    while offset < end:
        file.seek(offset)
        chunk = file.read(min(CHUNK_BYTES, end - offset))
        if not chunk:
            raise ImageError(f"the file ends inside section {section.name}")
        offset += len(chunk)
        yield chunk


def _decompressed(chunks: Iterator[bytes], codec: str) -> Iterator[bytes]:
    if not codec:
        return chunks
    if codec in _WINDOW_BITS:
        return _inflated(chunks, _WINDOW_BITS[codec])
    if codec == BZIP2_CODEC:
        return _bunzipped(chunks)
    raise ImageError(
        f"it is compressed with {codec}, which is not supported; save it with "
        f"dfs.image.compression.codec = {ZLIB_CODEC} or dfs.image.compress = false"
    )


def _inflated(chunks: Iterator[bytes], window_bits: int) -> Iterator[bytes]:
    """A section may be several streams behind each other: one per sub-section."""
    stream = zlib.decompressobj(window_bits)
    fresh = True
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if stream.eof:
                    stream, fresh = zlib.decompressobj(window_bits), True
                yield stream.decompress(rest, CHUNK_BYTES)
                fresh = False
                rest = stream.unused_data if stream.eof else stream.unconsumed_tail
        if not stream.eof and not fresh:
            yield stream.flush()
    except zlib.error as problem:
        raise ImageError(f"its compressed data is broken: {problem}") from None
    if not stream.eof and not fresh:
        raise ImageError("its compressed data is cut short")


def _bunzipped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    stream = bz2.BZ2Decompressor()
    fresh = True
    try:
        for chunk in chunks:
            rest = chunk
            while rest or not stream.needs_input:
                if stream.eof:
                    stream = bz2.BZ2Decompressor()
                yield stream.decompress(rest, CHUNK_BYTES)
                fresh = False
                rest = stream.unused_data if stream.eof else b""
                if stream.eof and not rest:
                    break
    except OSError as problem:
        raise ImageError(f"its compressed data is broken: {problem}") from None
    if not stream.eof and not fresh:
        raise ImageError("its compressed data is cut short")


def messages(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split delimited messages; ImageError if the last one is cut short."""
    data, pos, size = b"", 0, 0
    for chunk in chunks:
        data = data[pos:] + chunk if pos < size else chunk
        pos, size = 0, len(data)
        while pos < size:
            length = data[pos]
            start = pos + 1
            if length > 0x7F:
                length, start = _long_length(data, pos)
            end = start + length
            if not length >= 0 or end > size:
                break
            yield data[start:end]
            pos = end
    if pos < size:
        raise ImageError(f"a message is cut short: {size - pos} bytes are left of it")


def _long_length(data: bytes, pos: int) -> tuple[int, int]:
    """A length of several bytes and the position behind it; -1 if the data ends inside."""
    length = 0
    for shift in range(0, 35, 7):
        if pos >= len(data):
            return -1, pos
        byte = data[pos]
        pos += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            if length > MAX_MESSAGE_BYTES:
                raise ImageError(f"a message claims {length} bytes")
            return length, pos
    raise ImageError("the length of a message is longer than five bytes")


def next_message(section: Iterator[bytes]) -> bytes:
    """The next message of a section; ImageError if there is none."""
    raw = next(section, None)
    if raw is None:
        raise ImageError("a section ends before all that it announces")
    return raw


class ImageWriter:
    """Writes an image section by section; ``finish`` adds the summary and gives the digest."""

    def __init__(self, file: BinaryIO, *, layout: int, codec: str = "") -> None:
        if codec and codec not in _WINDOW_BITS:
            raise ImageError(f"writing with {codec} is not supported; use {ZLIB_CODEC} or none")
        self._file = file
        self._digest = hashlib.md5(usedforsecurity=False)
        self._position = 0
        self._summary = FileSummary(
            ondiskVersion=1, layoutVersion=layout & 0xFFFFFFFF, codec=codec or None
        )
        self._put(MAGIC)

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._position += len(data)

    @contextmanager
    def section(self, name: str) -> Iterator[Callable[[bytes], None]]:
        """Write a section's bytes through the function given.  They must be delimited messages."""
        start = self._position
        if self._summary.codec:
            stream = zlib.compressobj(wbits=_WINDOW_BITS[self._summary.codec])
            yield lambda data: self._put(stream.compress(data))
            self._put(stream.flush())
        else:
            yield self._put
        self._summary.sections.add(name=name, length=self._position - start, offset=start)

    def finish(self) -> str:
        """Write the summary; returns the MD5 digest of the whole file in hex."""
        summary = delimited(self._summary.SerializeToString())
        self._put(summary)
        self._put(_TRAILER.pack(len(summary)))
        return self._digest.hexdigest()

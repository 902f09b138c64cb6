"""Hadoop's compression codecs by class name, as streams in constant memory.

zlib, gzip and bzip2 come with Python.  lz4 and snappy need the package ``cramjam``, zstd needs
``zstandard`` (together: ``nnha[codecs]``); they are imported when an image asks for them.

See docs/reference/formats.md#image-file.
"""

import bz2
import importlib
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeAlias

from namenode_sim.image.errors import ImageError

CHUNK_BYTES: Final = 1024 * 1024
"""What is read, and what comes out of a decompressor, at a time."""

_PACKAGE: Final = "org.apache.hadoop.io.compress."
ZLIB_CODEC: Final = _PACKAGE + "DefaultCodec"
GZIP_CODEC: Final = _PACKAGE + "GzipCodec"
BZIP2_CODEC: Final = _PACKAGE + "BZip2Codec"
LZ4_CODEC: Final = _PACKAGE + "Lz4Codec"
SNAPPY_CODEC: Final = _PACKAGE + "SnappyCodec"
ZSTD_CODEC: Final = _PACKAGE + "ZStandardCodec"

_WINDOW_BITS: Final = {ZLIB_CODEC: 15, _PACKAGE + "DeflateCodec": 15, GZIP_CODEC: 31}
_SIZE = struct.Struct(">I")
_BLOCK_BYTES: Final = 128 * 1024
"""Plain bytes per block when writing; Hadoop's default buffers hold 256 KiB less an overhead."""
_MAX_BLOCK_BYTES: Final = 8 * 1024 * 1024
"""Most plain bytes of one block when reading; Hadoop's buffers are a matter of configuration."""
_ZSTD_FEED_BYTES: Final = 256
"""zstd has no bound on its output; 256 bytes in are at most 8 MiB out."""
_ZSTD_WINDOW_BYTES: Final = 32 * 1024 * 1024

Library: TypeAlias = Any
"""A compression package; none of them is typed."""


class Compressor(Protocol):
    """One compressed stream being written."""

    def compress(self, data: bytes, /) -> bytes:
        """Return what is ready after more data."""

    def flush(self) -> bytes:
        """Return the end of the stream; nothing may follow."""


def decompressed(chunks: Iterator[bytes], codec: str) -> Iterator[bytes]:
    """Yield the plain bytes of a section; ``codec`` is Hadoop's class name, or empty.

    A section may be several streams behind each other, one for each sub-section.

    Raises:
        ImageError: while iterating, if the data is broken or cut short; at once, if the codec is
            unknown or its package is missing.
    """
    if not codec:
        return chunks
    if codec in _WINDOW_BITS:
        return _inflate(chunks, _WINDOW_BITS[codec])
    if codec == BZIP2_CODEC:
        return _bunzip(chunks)
    if codec == ZSTD_CODEC:
        return _unzstd(chunks, _library("zstandard", codec))
    if codec in _BLOCKS:
        return _decompress_blocks(_Source(chunks), _BLOCKS[codec](_library("cramjam", codec)))
    raise ImageError(
        f"it is compressed with {codec}, which is not supported; save it with "
        f"dfs.image.compression.codec = {ZLIB_CODEC} or dfs.image.compress = false"
    )


def compressor(codec: str) -> Compressor:
    """Return a stream to write.

    Raises:
        ImageError: if the codec is unknown or its package is missing.
    """
    if codec in _WINDOW_BITS:
        return zlib.compressobj(wbits=_WINDOW_BITS[codec])
    if codec == BZIP2_CODEC:
        return bz2.BZ2Compressor()
    if codec == ZSTD_CODEC:
        stream: Compressor = _library("zstandard", codec).ZstdCompressor().compressobj()
        return stream
    if codec in _BLOCKS:
        return _BlockCompressor(_BLOCKS[codec](_library("cramjam", codec)))
    raise ImageError(f"writing with {codec} is not supported; use {ZLIB_CODEC} or none")


def _library(name: str, codec: str) -> Library:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        raise ImageError(
            f"it is compressed with {codec}, which needs the Python package {name}: install "
            "nnha[codecs], or save the image with another codec"
        ) from problem


_CUT_SHORT: Final = "its compressed data is cut short"


def _inflate(chunks: Iterator[bytes], window_bits: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(window_bits)
    fresh = True
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if stream.eof:
                    stream = zlib.decompressobj(window_bits)
                yield stream.decompress(rest, CHUNK_BYTES)
                fresh = False
                rest = stream.unused_data if stream.eof else stream.unconsumed_tail
        if not stream.eof and not fresh:
            yield stream.flush()
    except zlib.error as problem:
        raise ImageError(f"its compressed data is broken: {problem}") from None
    if not stream.eof and not fresh:
        raise ImageError(_CUT_SHORT)


def _bunzip(chunks: Iterator[bytes]) -> Iterator[bytes]:
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
        raise ImageError(_CUT_SHORT)


def _unzstd(chunks: Iterator[bytes], zstandard: Library) -> Iterator[bytes]:
    frames = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    stream = None
    try:
        for chunk in chunks:
            for start in range(0, len(chunk), _ZSTD_FEED_BYTES):
                rest = chunk[start : start + _ZSTD_FEED_BYTES]
                while rest:
                    stream = stream or frames.decompressobj()
                    yield stream.decompress(rest)
                    rest = stream.unused_data if stream.eof else b""
                    if stream.eof:
                        stream = None
    except zstandard.ZstdError as problem:
        raise ImageError(f"its compressed data is broken: {problem}") from None
    if stream is not None:
        raise ImageError(_CUT_SHORT)


class _Source:
    """Exact amounts out of chunks of any size."""

    __slots__ = ("_chunks", "_data")

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._data = b""

    def at_end(self) -> bool:
        while not self._data:
            chunk = next(self._chunks, None)
            if chunk is None:
                return True
            self._data = chunk
        return False

    def take(self, count: int) -> bytes:
        while len(self._data) < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise ImageError(_CUT_SHORT)
            self._data += chunk
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def number(self) -> int:
        found: int = _SIZE.unpack(self.take(_SIZE.size))[0]
        return found


class _Snappy:
    """Raw snappy blocks."""

    __slots__ = ("_library",)

    def __init__(self, cramjam: Library) -> None:
        self._library = cramjam

    def compress(self, data: bytes) -> bytes:
        return bytes(self._library.snappy.compress_raw(data))

    def decompress(self, data: bytes, room: int) -> bytes:
        try:
            size = self._library.snappy.decompress_raw_len(data)
            if size > room:
                raise ImageError(f"a compressed block claims {size} bytes, expected {room}")
            return bytes(self._library.snappy.decompress_raw(data))
        except self._library.DecompressionError as problem:
            raise ImageError(f"its compressed data is broken: {problem}") from None


class _Lz4:
    """Raw lz4 blocks."""

    __slots__ = ("_library",)

    def __init__(self, cramjam: Library) -> None:
        self._library = cramjam

    def compress(self, data: bytes) -> bytes:
        return bytes(self._library.lz4.compress_block(data, store_size=False))

    def decompress(self, data: bytes, room: int) -> bytes:
        plain = bytearray(room)
        try:
            size = self._library.lz4.decompress_block_into(data, plain, output_len=room)
        except self._library.DecompressionError as problem:
            raise ImageError(f"its compressed data is broken: {problem}") from None
        return bytes(memoryview(plain)[:size])


_Blocks = _Snappy | _Lz4
_BLOCKS: Final[dict[str, Callable[[Library], _Blocks]]] = {SNAPPY_CODEC: _Snappy, LZ4_CODEC: _Lz4}


def _decompress_blocks(source: _Source, blocks: _Blocks) -> Iterator[bytes]:
    """Decompress Hadoop's block streams: plain size, then compressed pieces until it is reached.

    A plain size of 0 ends a stream; another one may follow.
    """
    while not source.at_end():
        left = source.number()
        while left:
            size = source.number()
            if size > _MAX_BLOCK_BYTES:
                raise ImageError(f"a compressed block claims {size} bytes")
            plain = blocks.decompress(source.take(size), min(left, _MAX_BLOCK_BYTES))
            if not plain:
                raise ImageError("a compressed block is empty")
            left -= len(plain)
            yield plain


class _BlockCompressor:
    """Hadoop's BlockCompressorStream: each block with its plain and its compressed size."""

    def __init__(self, blocks: _Blocks) -> None:
        self._blocks = blocks
        self._waiting = bytearray()

    def compress(self, data: bytes, /) -> bytes:
        self._waiting += data
        out = []
        while len(self._waiting) >= _BLOCK_BYTES:
            out.append(self._block(_BLOCK_BYTES))
        return b"".join(out)

    def flush(self) -> bytes:
        return self._block(len(self._waiting)) if self._waiting else _SIZE.pack(0)

    def _block(self, count: int) -> bytes:
        plain = bytes(self._waiting[:count])
        del self._waiting[:count]
        packed = self._blocks.compress(plain)
        return _SIZE.pack(count) + _SIZE.pack(len(packed)) + packed

"""Variable-length numbers and texts as Hadoop's Writables have them (WritableUtils, Text).  Pure.

Each ``read_*`` takes bytes and a position, and returns the value and the position behind it.  It
raises ValueError or IndexError for what the bytes cannot hold.
"""

from typing import Final

MAX_TEXT_BYTES: Final = 1024 * 1024


def read_vlong(data: bytes, pos: int) -> tuple[int, int]:
    """Read Hadoop's variable-length number (WritableUtils)."""
    first = data[pos]
    if first < 128:
        return first, pos + 1
    if first >= 144:
        return first - 256, pos + 1
    size = 136 - first if first < 136 else 144 - first
    end = pos + 1 + size
    if end > len(data):
        raise ValueError(f"a number of {size} bytes, but {len(data) - pos - 1} are left")
    number = int.from_bytes(data[pos + 1 : end], "big")
    if number > 0x7FFFFFFFFFFFFFFF:
        raise ValueError("a variable-length number does not fit in 64 bits")
    return (~number if first < 136 else number), end


def vlong(number: int) -> bytes:
    """Encode Hadoop's variable-length number (WritableUtils)."""
    if -112 <= number <= 127:
        return bytes((number & 0xFF,))
    base, magnitude = (144, number) if number >= 0 else (136, ~number)
    size = (magnitude.bit_length() + 7) // 8
    if magnitude > 0x7FFFFFFFFFFFFFFF:
        raise ValueError(f"{number} does not fit in 64 bits")
    return bytes((base - size,)) + magnitude.to_bytes(size, "big")


def read_vint(data: bytes, pos: int) -> tuple[int, int]:
    """Read a variable-length number that must fit in 32 bits."""
    number, pos = read_vlong(data, pos)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise ValueError(f"{number} does not fit in 32 bits")
    return number, pos


def vint(number: int) -> bytes:
    """Encode a variable-length number that must fit in 32 bits."""
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise ValueError(f"{number} does not fit in 32 bits")
    return vlong(number)


def read_sized(data: bytes, pos: int, limit: int) -> tuple[bytes, int]:
    """Read a vint length and that many bytes."""
    size, pos = read_vint(data, pos)
    end = pos + size
    if size < 0 or size > limit or end > len(data):
        raise ValueError(f"a length of {size}, but {len(data) - pos} bytes are left")
    return data[pos:end], end


def read_text(data: bytes, pos: int) -> tuple[str, int]:
    """Read ``text``: a vint length and UTF-8."""
    raw, pos = read_sized(data, pos, MAX_TEXT_BYTES)
    return raw.decode(), pos


def text(content: str) -> bytes:
    """Encode ``text``: a vint length and UTF-8."""
    raw = content.encode()
    if len(raw) > MAX_TEXT_BYTES:
        raise ValueError(f"a text of {len(raw)} bytes; at most {MAX_TEXT_BYTES} fit")
    return vint(len(raw)) + raw


def read_long_string(data: bytes, pos: int) -> tuple[str, int]:
    """Read a length of four bytes and that many of UTF-8 (WritableUtils.readString)."""
    size, start = int.from_bytes(data[pos : pos + 4], "big", signed=True), pos + 4
    end = start + max(size, 0)  # -1 is Java's null
    if size < -1 or end > len(data):
        raise ValueError(f"a string of {size} bytes, but {len(data) - start} are left")
    return data[start:end].decode(), end


def long_string(value: str) -> bytes:
    raw = value.encode()
    return len(raw).to_bytes(4, "big") + raw

"""Transactions with their writer in the bytes: equal txids of two writers always differ."""

import struct
from dataclasses import dataclass
from typing import Final
from zlib import crc32

_HEAD: Final = struct.Struct(">BiQ")
_CRC: Final = struct.Struct(">I")
_OPCODE: Final = 3
_BODY_BYTES: Final = 24
TRANSACTION_BYTES: Final = _HEAD.size + _BODY_BYTES + _CRC.size

Tag = tuple[int, int, int]
"""Creating epoch, the writer's nonce, and its count of transactions."""


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive transactions as they stand in a file."""

    first: int
    tags: tuple[Tag, ...]
    records: bytes
    sound: bool
    """Whether nothing but padding follows."""

    @property
    def last(self) -> int:
        """The last txid; ``first - 1`` if there is none."""
        return self.first + len(self.tags) - 1


def transaction(txid: int, tag: Tag) -> bytes:
    body = b"%d:%d:%d:" % tag
    body = body.ljust(_BODY_BYTES, b".")
    frame = _HEAD.pack(_OPCODE, 12 + len(body), txid) + body
    return frame + _CRC.pack(crc32(frame))


def read_run(data: bytes, first: int, *, start: int = 8, last: int | None = None) -> Run:
    """Read a segment file's transactions; a reading of docs/reference/formats.md of its own."""
    tags: list[Tag] = []
    position = start
    while len(data) - position >= 17 and (last is None or first + len(tags) <= last):
        opcode, length, txid = _HEAD.unpack_from(data, position)
        end = position + 1 + length
        if opcode != _OPCODE or not 12 <= length <= 200 or end + 4 > len(data):
            break
        frame = data[position:end]
        if _CRC.unpack_from(data, end)[0] != crc32(frame) or txid != first + len(tags):
            break
        epoch, nonce, count, _ = frame[13:].split(b":", 3)
        tags.append((int(epoch), int(nonce), int(count)))
        position = end + 4
    rest = data[position:].strip(b"\xff\x00")
    return Run(first, tuple(tags), data[start:position], not rest)

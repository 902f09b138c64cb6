"""Edit-log frames: walk, check and number the ops of a segment without decoding them.

A segment file is an 8-byte header and then frames::

    opcode u8 | length i32 | txid i64 | body | crc32 u32

``length`` counts everything but the opcode and the checksum; the checksum covers everything before
it (docs/reference/formats.md#op-frame).  After the last frame only 0xFF padding may follow.
"""

import struct
from collections.abc import Callable
from typing import Any, Final
from zlib import crc32

from ha.record import record
from journal.model import LAYOUT_VERSION, TxId

HEADER_BYTES: Final = 8
TERMINATOR: Final = 0xFF
MIN_FRAME_BYTES: Final = 17
MAX_OP_BYTES: Final = 50 * 1024 * 1024

_HEADER = struct.Struct(">ii")
_FRAME = struct.Struct(">BiQ")
_CRC = struct.Struct(">I")
_FRAME_OVERHEAD = 5  # opcode and checksum, which ``length`` leaves out
_SHORTEST = MIN_FRAME_BYTES - _FRAME_OVERHEAD
_BEHIND_ALL = 1 << 64
_LAST_FAST: Final = 1 << 62  # a range may count so far
_LONGEST_USUAL: Final = 4096
_USUAL: Final[dict[int, Callable[[Any, int], tuple[bytes, int, int, int, int]]]] = {}
"""By the length of a frame: what takes its bytes, its checksum and the next frame's opcode, length
and txid out of the data in one step."""


@record
class Scan:
    """What a run of frames holds.

    ``end`` is the offset just behind the last good frame.  ``damage`` says what stands there
    instead of a frame, the clean end or padding; it is None for a sound run.
    """

    first: TxId | None
    last: TxId | None
    count: int
    end: int
    damage: str | None


def file_header(layout_version: int = LAYOUT_VERSION) -> bytes:
    """Return the first eight bytes of a segment file: the layout and an empty set of flags."""
    return _HEADER.pack(layout_version, 0)


def read_header(data: bytes) -> int:
    """Return the layout version in a segment file's header.

    Raises:
        ValueError: if the header is cut short, was never written or names flags.
    """
    if len(data) < HEADER_BYTES:
        raise ValueError(f"the file ends inside its header ({len(data)} of {HEADER_BYTES} bytes)")
    layout, flags = _HEADER.unpack_from(data)
    if layout == -1:
        raise ValueError("the file was preallocated, but its header was never written")
    if layout > -16 or flags != 0:
        raise ValueError(f"the header is corrupt (layout {layout}, flags {flags})")
    return int(layout)


def scan(
    data: bytes,
    *,
    start: int = 0,
    expected: TxId | None = None,
    last_wanted: TxId | None = None,
    max_op_bytes: int = MAX_OP_BYTES,
) -> Scan:
    """Walk the frames of ``data`` from ``start`` up to the first byte that is not a sound frame.

    Unlike Hadoop's scan it never looks for another frame behind damage: that would report an
    end behind a hole (docs/reference/journal-node.md#damage).

    Args:
        data: bytes or anything that slices like them (an mmap).
        start: where the first frame begins; HEADER_BYTES in a file.
        expected: the first txid that must be found; None accepts any.
        last_wanted: stop behind this txid and believe nothing that follows.
        max_op_bytes: a longer frame is damage.
    """
    unpack, read_crc, size = _FRAME.unpack_from, _CRC.unpack_from, len(data)
    position, first, last, count = start, None, None, 0
    damage: str | None = None
    longest = max_op_bytes - _FRAME_OVERHEAD
    room, before = size - MIN_FRAME_BYTES, -1
    stop = _BEHIND_ALL if last_wanted is None else max(last_wanted, 0)
    while position < size and before < stop:
        if data[position] == TERMINATOR:
            damage = _padding_damage(data, position)
            break
        if position > room:
            damage = f"a frame is cut short: {size - position} bytes are left"
            break
        _, length, txid = unpack(data, position)
        crc_at = position + 1 + length
        if not _SHORTEST <= length <= longest:
            damage = f"a frame claims {length} bytes"
            break
        if crc_at + 4 > size:
            damage = f"a frame of {length} bytes is cut short: {size - position} bytes are left"
            break
        if crc32(data[position:crc_at]) != read_crc(data, crc_at)[0]:
            damage = f"the checksum of transaction {txid} is wrong"
            break
        if expected is not None and txid != expected:
            damage = f"transaction {txid} stands where {expected} belongs"
            break
        if first is None:
            first = txid
        position, expected = crc_at + 4, TxId(txid + 1)
        if longest >= _LONGEST_USUAL:
            position, expected = _scan_usual(data, position, expected, stop)
        count += expected - txid
        before = last = TxId(expected - 1)
    return Scan(first, last, count, position, damage)


def _scan_usual(data: bytes, position: int, expected: int, stop: int) -> tuple[int, TxId]:
    """Walk sound frames of usual length that another one follows; judge nothing else.

    This is ``scan`` without its explanations: each comparison counts, as the loop sets how fast a
    segment is validated.  Two calls into C take half the time of a step that unpacks, slices,
    checks and unpacks again.

    Returns:
        The offset of the first frame that was not walked over, and the txid that is due there.
    """
    check, read, stop = crc32, _USUAL, min(stop, _LAST_FAST)
    if len(data) - position < MIN_FRAME_BYTES:
        return position, TxId(expected)
    opcode, length, found = _FRAME.unpack_from(data, position)
    if found != expected or opcode == TERMINATOR:
        return position, TxId(expected)
    while True:
        due = expected
        try:
            for due in range(expected + 1, stop + 2):
                frame, checksum, opcode, following, found = read[length](data, position)
                if check(frame) != checksum:
                    return position, TxId(due - 1)
                position += length + 5
                if found != due or opcode == 255:
                    break
                length = following
            return position, TxId(due)
        except (KeyError, struct.error):
            expected = due - 1
            if not _learn(length):
                return position, TxId(expected)


def _learn(length: int) -> bool:
    """Prepare for frames of that length; False if that is done already or of no use."""
    if length in _USUAL or not _SHORTEST <= length <= _LONGEST_USUAL:
        return False
    _USUAL[length] = struct.Struct(f">{length + 1}sIBiQ").unpack_from
    return True


def _padding_damage(data: bytes, position: int) -> str | None:
    """Behind a terminator only 0x00 and 0xFF may stand (docs/reference/formats.md#padding)."""
    tail = bytes(data[position:])
    if tail.strip(b"\xff\x00"):
        return "bytes that are neither a frame nor padding follow the terminator"
    return None

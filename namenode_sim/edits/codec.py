"""Framed ops of Hadoop's edit log, to bytes and back.

    opcode u8 | length i32 (from layout -56 on) | txid i64 | body | crc32 u32

Unlike Hadoop's reader this one checks that a body was read to its end: one field too many or too
few shows at the op that has it, not as garbage behind it.

See docs/reference/formats.md#op-frame.
"""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import Final
from zlib import crc32

from google.protobuf.message import DecodeError, EncodeError

from journal.frame import MAX_OP_BYTES, TERMINATOR
from journal.model import LAYOUT_VERSION, TxId
from namenode_sim.edits.admin_codec import ADMIN_CODECS
from namenode_sim.edits.errors import EditsError
from namenode_sim.edits.fields import Reader, Writer
from namenode_sim.edits.file_codec import FILE_CODECS
from namenode_sim.edits.ops import CreateSnapshot, DeleteSnapshot, Op, RenameSnapshot
from namenode_sim.edits.tree_codec import SNAPSHOT_MTIME_LAYOUT, TREE_CODECS

OLDEST_LAYOUT: Final = -47
NEWEST_LAYOUT: Final = -67
LENGTH_LAYOUT: Final = -56
"""The first layout whose frames have a length."""

_CODECS: Final = {**FILE_CODECS, **TREE_CODECS, **ADMIN_CODECS}
_READERS: Final[tuple[Reader | None, ...]] = tuple(
    {op.opcode: read for op, (read, _) in _CODECS.items()}.get(code) for code in range(256)
)
_WRITERS: Final[dict[type[Op], Writer]] = {op: write for op, (_, write) in _CODECS.items()}
_SNAPSHOT_OPCODES: Final = frozenset(
    (CreateSnapshot.opcode, DeleteSnapshot.opcode, RenameSnapshot.opcode)
)

_FRAME = Struct(">Biq")
_OLD_FRAME = Struct(">Bq")
_CRC = Struct(">I")
_MIN_LENGTH = 12
_OVERHEAD = 5  # opcode and checksum, which the length leaves out
_MALFORMED = (ValueError, IndexError, StructError, DecodeError)


def encode(
    op: Op, txid: TxId, layout: int = LAYOUT_VERSION, *, unversioned_mtime: bool = False
) -> bytes:
    """Return the whole frame of one op.

    Args:
        op: the edit.
        txid: its number.
        layout: the layout version of the file that it goes to.
        unversioned_mtime: write the time of snapshot ops at any layout, as Hadoop 3.3.0 GA does.

    Raises:
        EditsError: if the op does not fit into the format, or not into that layout.
    """
    timed = unversioned_mtime and op.opcode in _SNAPSHOT_OPCODES
    body_layout = SNAPSHOT_MTIME_LAYOUT if timed else layout
    try:
        body = _WRITERS[type(op)](op, body_layout)
        if layout > LENGTH_LAYOUT:
            frame = _OLD_FRAME.pack(op.opcode, txid) + body
        else:
            frame = _FRAME.pack(op.opcode, _MIN_LENGTH + len(body), txid) + body
    except (*_MALFORMED, EncodeError, TypeError) as problem:
        raise EditsError(f"{type(op).__name__} cannot be written: {problem}", txid=txid) from None
    if len(frame) + 4 > MAX_OP_BYTES:
        raise EditsError(f"{type(op).__name__} takes {len(frame)} bytes, no reader takes more than "
                         f"{MAX_OP_BYTES}", txid=txid)  # fmt: skip
    return frame + _CRC.pack(crc32(frame))


def decode(data: bytes, offset: int, layout: int) -> tuple[TxId, Op, int]:
    """Return the op whose frame begins at ``offset``, with its txid and the offset behind it.

    Raises:
        EditsError: if no sound frame of a known op stands there.
    """
    check_layout(layout)
    if layout > LENGTH_LAYOUT:
        return _decode_old(data, offset, layout)
    try:
        opcode, length, txid = _FRAME.unpack_from(data, offset)
    except StructError:
        left = len(data) - offset
        raise EditsError(f"a frame is cut short: {left} bytes are left", offset=offset) from None
    end = offset + length + _OVERHEAD
    if length < _MIN_LENGTH or end - offset > MAX_OP_BYTES or end > len(data):
        left = len(data) - offset
        raise EditsError(f"a frame claims {length} bytes; {left} are left", offset=offset)
    frame = data[offset : end - 4]
    if crc32(frame) != _CRC.unpack_from(data, end - 4)[0]:
        raise EditsError("the checksum is wrong", offset=offset, txid=txid)
    reader = _reader(opcode, offset, txid)
    try:
        op, pos = reader(frame, 13, layout)
        if pos == len(frame):
            return txid, op, end
        problem = f"its fields take {pos - 13} bytes, its frame has {len(frame) - 13}"
    except _MALFORMED as failure:
        problem = str(failure)
    if opcode in _SNAPSHOT_OPCODES:
        op_with_time = _decode_3_3_0(reader, frame)
        if op_with_time is not None:
            return txid, op_with_time, end
    raise EditsError(f"opcode {opcode} is malformed at layout {layout}: {problem}",
                     offset=offset, txid=txid)  # fmt: skip


def check_layout(layout: int) -> None:
    """Refuse a layout whose ops we do not know.

    Raises:
        EditsError: naming the layout and those that are known.
    """
    if not NEWEST_LAYOUT <= layout <= OLDEST_LAYOUT:
        raise EditsError(
            f"layout version {layout} is unknown; known are {OLDEST_LAYOUT} to {NEWEST_LAYOUT}"
        )


def _reader(opcode: int, offset: int, txid: int) -> Reader:
    reader = _READERS[opcode]
    if reader is None:
        raise EditsError(f"opcode {opcode} is unknown", offset=offset, txid=txid)
    if txid < 0:
        raise EditsError("a transaction id is negative", offset=offset, txid=txid)
    return reader


def _decode_3_3_0(reader: Reader, frame: bytes) -> Op | None:
    """Read a snapshot op of Hadoop 3.3.0 GA: layout -65, but with the time of -66.

    Only the length of the frame distinguishes the two.
    """
    try:
        op, pos = reader(frame, 13, SNAPSHOT_MTIME_LAYOUT)
    except _MALFORMED:
        return None
    return op if pos == len(frame) else None


def _decode_old(data: bytes, offset: int, layout: int) -> tuple[TxId, Op, int]:
    """Read a frame without length: its fields say where it ends, and the checksum verifies that."""
    try:
        opcode, txid = _OLD_FRAME.unpack_from(data, offset)
    except StructError:
        left = len(data) - offset
        raise EditsError(f"a frame is cut short: {left} bytes are left", offset=offset) from None
    reader = _reader(opcode, offset, txid)
    try:
        op, pos = reader(data, offset + _OLD_FRAME.size, layout)
        (checksum,) = _CRC.unpack_from(data, pos)
    except _MALFORMED as failure:
        raise EditsError(f"opcode {opcode} is malformed at layout {layout}: {failure}",
                         offset=offset, txid=txid) from None  # fmt: skip
    if pos + 4 - offset > MAX_OP_BYTES or crc32(data[offset:pos]) != checksum:
        raise EditsError("the checksum is wrong", offset=offset, txid=txid)
    return txid, op, pos + 4


def decode_all(
    records: bytes, layout: int = LAYOUT_VERSION, *, start: int = 0
) -> Iterator[tuple[TxId, Op]]:
    """Yield the ops of ``records`` from ``start`` to the end or to a terminator.

    Raises:
        EditsError: at the first frame that is not sound, or when anything but padding follows
            the terminator.
    """
    check_layout(layout)
    offset, size = start, len(records)
    while offset < size and records[offset] != TERMINATOR:
        txid, op, offset = decode(records, offset, layout)
        yield txid, op
    if records[offset:].strip(b"\xff\x00"):
        raise EditsError("neither a frame nor padding follows the terminator", offset=offset)

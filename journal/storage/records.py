"""``segments/<S>``: the writer of the segment and, once they are settled, its end and digest.

The record is durable before its segment's file has its name.  So a file without one was not written
by us, and a record without a file means nothing.
"""

from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from google.protobuf.message import DecodeError

from ha.record import dataclass
from journal.errors import StorageFailed
from journal.model import NO_EPOCH, Epoch, Segment, TxId
from journal.proto import journal_pb2 as pb

_CRC: Final = Struct(">I")
_MAX_RECORD_BYTES: Final = 4096
_DIGEST_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """What a segment file does not say itself.

    ``last``, ``digest`` and ``end``, the offset behind the last edit, are there once the segment
    is finalized or was fetched whole.
    ``layout_version`` is what its header must say; 0 accepts any.
    """

    first: TxId
    writer: Epoch = NO_EPOCH
    layout_version: int = 0
    last: TxId | None = None
    digest: bytes = b""
    end: int = 0

    def describes(self, last: TxId) -> bool:
        """Return whether it has the digest of exactly the edits up to there."""
        return self.last == last and len(self.digest) == _DIGEST_BYTES


def record_of(segment: Segment, end: int) -> SegmentRecord:
    """Return the record of a closed segment whose last edit ends at that offset."""
    known = len(segment.digest) == _DIGEST_BYTES
    return SegmentRecord(
        segment.first,
        segment.writer,
        segment.layout_version,
        segment.last if known else None,
        segment.digest if known else b"",
        end if known else 0,
    )


def record_bytes(record: SegmentRecord) -> bytes:
    """Encode a record behind its length, with a checksum behind it."""
    message = pb.SegmentRecord(
        first_txid=record.first,
        writer_epoch=record.writer,
        last_txid=record.last,
        digest=record.digest,
        layout_version=record.layout_version,
        end=record.end,
    )
    data = delimited(message.SerializeToString())
    return data + _CRC.pack(crc32(data))


def parse_record(path: Path, first: TxId, data: bytes) -> SegmentRecord:
    """Read a record.

    Raises:
        StorageFailed: it is damaged, or about another segment.
    """
    body, end = undelimited(path, data)
    if len(data) != end + _CRC.size or _CRC.unpack_from(data, end)[0] != crc32(data[:end]):
        raise StorageFailed(f"{path} is corrupt: its checksum is wrong.")
    try:
        found = pb.SegmentRecord.FromString(body)
    except DecodeError as failure:
        raise StorageFailed(f"{path} is corrupt ({failure}).") from failure
    if found.first_txid != first:
        raise StorageFailed(f"{path} is about segment {found.first_txid}.")
    return SegmentRecord(
        first,
        Epoch(found.writer_epoch),
        found.layout_version,
        TxId(found.last_txid) if found.HasField("last_txid") else None,
        found.digest,
        found.end,
    )


def delimited(data: bytes) -> bytes:
    """Bytes behind their length as a varint, as protobuf's writeDelimitedTo has it."""
    length, prefix = len(data), bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + data


def undelimited(path: Path, data: bytes) -> tuple[bytes, int]:
    """Return the bytes behind a length, and the offset behind them.

    Raises:
        StorageFailed: the length is cut short, or more than there is.
    """
    length, shift, position = 0, 0, 0
    while True:
        if position >= min(len(data), 5):
            raise StorageFailed(f"{path} is corrupt: its length is cut short.")
        byte = data[position]
        length |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    end = position + length
    if length > _MAX_RECORD_BYTES or end > len(data):
        raise StorageFailed(f"{path} is corrupt: it announces {length} bytes.")
    return data[position:end], end

"""The contents of VERSION, the epoch files, committed-txid and paxos/<S>, checked on reading.

Each reader raises StorageFailed with the file's name, what was found and what to do.

Pure.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

from google.protobuf.message import DecodeError

from journal.core.state import Decision
from journal.errors import StorageFailed
from journal.messages import segment_message, segment_of
from journal.model import NO_EPOCH, NO_TXID, Epoch, NamespaceInfo, TxId
from journal.proto import journal_pb2 as pb
from journal.storage.records import delimited, undelimited

_COMMITTED = struct.Struct(">q")
_CRC_MARK = b"\ncrc32="
_CRC_LINE = _CRC_MARK + b"%08x\n"
_CRC_BYTES = len(_CRC_LINE % 0)
_ADVICE = "Nothing was changed. Restore the file, or re-create this journal from the other nodes."


def version_text(namespace: NamespaceInfo) -> bytes:
    """VERSION as Hadoop's JournalNode writes it: java properties.

    The block pool id is ours; Hadoop neither writes nor minds it there.
    """
    lines = [
        "#written by nnha",
        f"namespaceID={namespace.namespace_id}",
        f"clusterID={_escape(namespace.cluster_id)}",
        f"cTime={namespace.ctime}",
        "storageType=JOURNAL_NODE",
    ]
    if namespace.block_pool_id:
        lines.append(f"blockpoolID={_escape(namespace.block_pool_id)}")
    lines.append(f"layoutVersion={namespace.layout_version}")
    return ("\n".join(lines) + "\n").encode("latin-1")


def parse_version(path: Path, data: bytes) -> NamespaceInfo:
    """Read VERSION; Hadoop's own files read the same."""
    try:
        found = _properties(data.decode("latin-1"))
        if found.get("storageType", "JOURNAL_NODE") != "JOURNAL_NODE":
            raise StorageFailed(
                f"{path} belongs to a {found['storageType']}, not to a JOURNAL_NODE. {_ADVICE}"
            )
        return NamespaceInfo(
            layout_version=int(found["layoutVersion"]),
            namespace_id=int(found["namespaceID"]),
            cluster_id=found["clusterID"],
            ctime=int(found["cTime"]),
            block_pool_id=found.get("blockpoolID", ""),
        )
    except KeyError as failure:
        raise StorageFailed(f"{path} is corrupt: it lacks {failure.args[0]}. {_ADVICE}") from None
    except ValueError as failure:
        raise StorageFailed(f"{path} is corrupt ({failure}). {_ADVICE}") from failure


def _properties(text: str) -> dict[str, str]:
    pairs = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            name, _, value = stripped.partition("=")
            pairs[name.strip()] = _unescape(value.strip())
    return pairs


def _escape(value: str) -> str:
    """java.util.Properties escapes these in values; a cluster id may hold any of them."""
    out = []
    for char in value:
        if char in "\\:=#!":
            out.append("\\" + char)
        elif not " " <= char <= "~":
            out.append("".join(f"\\u{unit:04X}" for unit in _utf16(char)))
        else:
            out.append(char)
    return "".join(out)


def _utf16(char: str) -> list[int]:
    raw = char.encode("utf-16-be", "surrogatepass")
    return [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]


def _unescape(value: str) -> str:
    out, position = [], 0
    while position < len(value):
        char = value[position]
        if char != "\\" or position + 1 == len(value):
            out.append(char)
            position += 1
        elif value[position + 1] == "u" and len(value) >= position + 6:
            out.append(chr(int(value[position + 2 : position + 6], 16)))
            position += 6
        else:
            escaped = value[position + 1]
            out.append({"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(escaped, escaped))
            position += 2
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def epoch_text(epoch: Epoch) -> bytes:
    """Return an epoch file's contents: decimal text and a line's end."""
    return f"{epoch}\n".encode()


def txid_text(txid: TxId) -> bytes:
    """Return the contents of a transaction id's file, as an epoch's."""
    return f"{txid}\n".encode()


def parse_txid(path: Path, data: bytes | None) -> TxId:
    """Read a transaction id's file."""
    return NO_TXID if data is None else TxId(parse_epoch(path, data))


def parse_epoch(path: Path, data: bytes | None) -> Epoch:
    """Read an epoch file; there is none before the first promise."""
    if data is None:
        return NO_EPOCH
    text = data.strip()
    if not text.isdigit() or len(text) > 19:
        raise StorageFailed(f"{path} is corrupt: it holds {data[:40]!r}, not a number. {_ADVICE}")
    return Epoch(int(text))


def ensure_promise(
    path: Path, promised: Epoch, writer: Epoch, decisions: Mapping[TxId, Decision]
) -> None:
    """Refuse a promise older than what was written or decided under it: it was lost.

    The file is durable before anything is done in its epoch.  Taken for none, as one that is
    missing is on a new node, it would let a superseded writer in again.
    """
    known = max([writer, *(decision.epoch for decision in decisions.values())])
    if promised < known:
        raise StorageFailed(
            f"{path} is missing or too old: it promises {promised}, while epoch {known} wrote or "
            f"decided here. {_ADVICE}"
        )


def committed_bytes(txid: TxId) -> bytes:
    """committed-txid: eight bytes, so that writing over it never changes its length."""
    return _COMMITTED.pack(txid)


def parse_committed(path: Path, data: bytes | None) -> TxId:
    """Read committed-txid.  It is a hint that was never synced: an empty file is none."""
    if not data:
        return NO_TXID
    if len(data) != _COMMITTED.size:
        raise StorageFailed(
            f"{path} is corrupt: it holds {len(data)} bytes, not {_COMMITTED.size}. It may be "
            "removed: it is only a lower bound, and the next batch writes it again."
        )
    (value,) = _COMMITTED.unpack(data)
    return TxId(value)


def decision_bytes(decision: Decision) -> bytes:
    """paxos/<S>: the record behind its length as a varint, and a line with its CRC-32.

    The line stands where Hadoop's debug text does, which no reader parses.
    """
    record = pb.AcceptedRecovery(
        segment=segment_message(decision.segment), accepted_in_epoch=decision.epoch
    ).SerializeToString()
    framed = delimited(record)
    return framed + _CRC_LINE % crc32(framed)


def parse_decision(path: Path, first: TxId, data: bytes) -> Decision:
    """Read paxos/<S>; the segment inside must be S.

    Older files have no checksum, nor have Hadoop's, which end in a text for people.
    """
    try:
        body, end = undelimited(path, data)
    except StorageFailed as failure:
        raise StorageFailed(f"{failure} {_ADVICE}") from failure
    behind = data[end:]
    checked = _CRC_MARK in behind or data[-_CRC_BYTES:].startswith(_CRC_MARK)
    cut_short = behind and _CRC_MARK.startswith(behind)
    if cut_short or (checked and behind != _CRC_LINE % crc32(data[:end])):
        raise StorageFailed(f"{path} is corrupt: its checksum is wrong. {_ADVICE}")
    record = pb.AcceptedRecovery()
    try:
        record.ParseFromString(body)
    except DecodeError as failure:
        raise StorageFailed(f"{path} is corrupt ({failure}). {_ADVICE}") from failure
    found = record.segment
    if found.first_txid != first:
        raise StorageFailed(f"{path} is about segment {found.first_txid}. {_ADVICE}")
    return Decision(segment_of(found), Epoch(record.accepted_in_epoch))

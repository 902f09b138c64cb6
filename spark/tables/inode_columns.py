"""INODE messages to columns: what every row of the table of inodes says.

Nothing is guessed: a message is decoded here only if it consists of known fields in the order of
their numbers, to its last byte; protobuf's own parser takes the others.

See docs/reference/formats.md#image-messages.

Pure.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError, EncodeError

from ha.record import dataclass
from namenode_sim.image.proto import fsimage_pb2 as pb
from spark.tables.cursors import Cursors, Flags, Ints, Words, varints, words_of
from spark.tables.message_stream import BadMessage

FILE, DIRECTORY, SYMLINK = 1, 2, 3
NO_QUOTA: Final = -1

_U = np.uint64
_HEAD: Final = (_U(0xFF00FF), _U(0x100008))
"""``08 type 10`` begins an inode: the mask that leaves the type out, and the rest."""
_BODY_KEYS: Final = {FILE: 0x22, DIRECTORY: 0x2A, SYMLINK: 0x32}
_MOST_BLOCKS_AT_A_TIME: Final = 48
"""Blocks of one file that are taken by cursors; files with more go to protobuf's parser."""
_MOST_XATTRS: Final = 16
_SIGN: Final = 1 << 63


@dataclass(slots=True)
class InodeColumns:
    """One entry per inode.  Times are milliseconds since 1970, sizes bytes.

    ``name_at``, ``target_at`` and what begins with ``xattrs_`` are places in the buffer that was
    decoded.  ``storage_policy_id`` and ``ec_policy_id`` are files' own; directories have theirs
    among the extended attributes.
    """

    id: Ints
    type: Ints
    name_at: Ints
    name_end: Ints
    permission: Words
    mtime: Ints
    atime: Ints
    replication: Ints
    preferred_block_size: Ints
    length: Ints
    blocks: Ints
    under_construction: Flags
    acl: Flags
    xattrs: Ints
    storage_policy_id: Ints
    ec_policy_id: Ints
    ns_quota: Ints
    ds_quota: Ints
    target_at: Ints
    target_end: Ints
    xattrs_at: Ints
    xattrs_end: Ints
    loose_xattrs: dict[int, bytes]
    """Those of messages that protobuf's parser took, by row: they need not be in one place."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(slots=True)
class BlockColumns:
    """One entry per block: its file, its place in the file, and what Hadoop knows of it."""

    inode_id: Ints
    number: Ints
    block_id: Ints
    generation_stamp: Ints
    length: Ints


@dataclass(slots=True)
class _Blocks:
    """Blocks as they are found: all first ones, all second ones, ..."""

    wanted: bool
    rows: list[Ints]
    parts: list[tuple[Ints, Ints, Ints, Ints]]


def decode_inodes(data: bytes | bytearray, starts: Ints, ends: Ints) -> InodeColumns:
    """Columns of the messages of ``data`` from ``starts`` to ``ends``.

    Args:
        data: a buffer with ``SLACK_BYTES`` behind the last message.
        starts: where the messages begin, without their lengths.
        ends: where they end.

    Raises:
        BadMessage: if one is malformed.
    """
    return _decode(data, starts, ends, _Blocks(wanted=False, rows=[], parts=[]))


def decode_blocks(data: bytes | bytearray, starts: Ints, ends: Ints) -> BlockColumns:
    """Return the blocks of all files among such messages, file by file; otherwise as above."""
    found = _Blocks(wanted=True, rows=[], parts=[])
    columns = _decode(data, starts, ends, found)
    if not found.rows:
        nothing = np.zeros(0, np.int64)
        return BlockColumns(nothing, nothing, nothing, nothing, nothing)
    rows = np.concatenate(found.rows)
    number, block_id, stamp, length = (
        np.concatenate([part[at] for part in found.parts]) for at in range(4)
    )
    order = np.lexsort((number, rows))
    return BlockColumns(
        columns.id[rows[order]], number[order], block_id[order], stamp[order], length[order]
    )


def _decode(data: bytes | bytearray, starts: Ints, ends: Ints, found: _Blocks) -> InodeColumns:
    words = words_of(data)
    columns, cursors, sound = _heads(words, starts, ends)
    for kind, read in ((FILE, _read_files), (DIRECTORY, _read_directories), (SYMLINK, _read_links)):
        rows = np.flatnonzero((columns.type == kind) & sound)
        if len(rows):
            one = Cursors(words, cursors.at[rows], cursors.end[rows])
            read(columns, rows, one, found)
            sound[rows] &= one.at_end()
    odd = np.flatnonzero(~sound)
    if len(odd):
        # Their blocks were found only in part.
        keep = [sound[rows] for rows in found.rows]
        found.rows = [rows[k] for rows, k in zip(found.rows, keep, strict=True)]
        found.parts = [
            (a[k], b[k], c[k], d[k]) for (a, b, c, d), k in zip(found.parts, keep, strict=True)
        ]
    for row in odd.tolist():
        _read_alone(columns, row, data, int(starts[row]), int(ends[row]), found)
    return columns


def _heads(words: Words, starts: Ints, ends: Ints) -> tuple[InodeColumns, Cursors, Flags]:
    """Type, id and name of each, the cursors at the body behind them, and which are sound."""
    count = len(starts)
    word = words[starts]
    sound = ((word & _HEAD[0]) == _HEAD[1]) & (ends - starts >= 4)
    kind = ((word >> _U(8)) & _U(0xFF)).astype(np.int64)
    cursors = Cursors(words, np.minimum(starts + 2, ends), ends)
    number, _ = cursors.number(0x10)
    name_at, name_end, named = cursors.inner(0x1A)
    word = words[cursors.at]
    key = (word & _U(0xFF)).astype(np.int64)
    length, size = varints(word >> _U(8))
    body = cursors.at + size + 1
    right = np.zeros(count, np.bool_)
    for each, expected in _BODY_KEYS.items():
        right |= (kind == each) & (key == expected)
    sound &= named & right & ~cursors.bad & (size < 6)
    sound &= body + np.minimum(length, _U(1 << 40)).view(np.int64) == ends
    cursors.at = np.where(sound, body, ends)

    def zeros() -> Ints:
        return np.zeros(count, np.int64)

    columns = InodeColumns(
        id=number.view(np.int64),
        type=kind,
        name_at=name_at,
        name_end=name_end,
        permission=np.zeros(count, np.uint64),
        mtime=zeros(),
        atime=zeros(),
        replication=zeros(),
        preferred_block_size=zeros(),
        length=zeros(),
        blocks=zeros(),
        under_construction=np.zeros(count, np.bool_),
        acl=np.zeros(count, np.bool_),
        xattrs=zeros(),
        storage_policy_id=zeros(),
        ec_policy_id=zeros(),
        ns_quota=np.full(count, NO_QUOTA, np.int64),
        ds_quota=np.full(count, NO_QUOTA, np.int64),
        target_at=zeros(),
        target_end=zeros(),
        xattrs_at=zeros(),
        xattrs_end=zeros(),
        loose_xattrs={},
    )
    return columns, cursors, sound


def _read_files(columns: InodeColumns, rows: Ints, cursors: Cursors, found: _Blocks) -> None:
    columns.replication[rows] = cursors.number(0x08)[0].view(np.int64)
    columns.mtime[rows] = cursors.number(0x10)[0].view(np.int64)
    columns.atime[rows] = cursors.number(0x18)[0].view(np.int64)
    size = cursors.number(0x20)[0].view(np.int64)
    columns.preferred_block_size[rows] = np.where(size == 0, 1, size)  # as Hadoop's loader
    columns.permission[rows] = cursors.fixed64(0x29)
    _read_blocks(columns, rows, cursors, found)
    columns.under_construction[rows] = cursors.inner(0x3A)[2]
    _read_acl(columns, rows, cursors, 0x42)
    begin, end, has = cursors.inner(0x4A)
    if has.any():
        _count_xattrs(columns, rows[has], cursors, np.flatnonzero(has), begin[has], end[has])
    columns.storage_policy_id[rows] = cursors.number(0x50)[0].view(np.int64)
    striped = cursors.number(0x58)[0] != 0
    policy = cursors.number(0x60)[0].view(np.int64)
    columns.ec_policy_id[rows] = policy * striped


def _read_blocks(columns: InodeColumns, rows: Ints, cursors: Cursors, found: _Blocks) -> None:
    """Read all first blocks, all second blocks, and so on: ever fewer files have one more."""
    key = (cursors.words[cursors.at] & _U(0xFF)) == _U(0x32)
    active = np.flatnonzero(key & (cursors.at < cursors.end))
    number = 0
    while len(active):
        if number == _MOST_BLOCKS_AT_A_TIME:
            cursors.bad[active] = True
            cursors.at[active] = cursors.end[active]
            return
        outer = Cursors(cursors.words, cursors.at[active], cursors.end[active])
        begin, end, has = outer.inner(0x32)
        active, begin, end = (active, begin, end) if has.all() else (active[has], begin[has],
                                                                      end[has])  # fmt: skip
        block = Cursors(cursors.words, begin, end)
        block_id, first = block.number(0x08)
        stamp, second = block.number(0x10)
        length = block.number(0x18)[0].view(np.int64)
        cursors.bad[active] |= ~(block.at_end() & first & second) | outer.bad[has]
        cursors.at[active] = end
        into = rows[active]
        columns.blocks[into] += 1
        columns.length[into] += length
        if found.wanted:
            found.rows.append(into)
            found.parts.append((np.full(len(into), number, np.int64), block_id.view(np.int64),
                                stamp.view(np.int64), length))  # fmt: skip
        number += 1


def _read_directories(columns: InodeColumns, rows: Ints, cursors: Cursors, _found: _Blocks) -> None:
    columns.mtime[rows] = cursors.number(0x08)[0].view(np.int64)
    columns.ns_quota[rows] = cursors.number(0x10)[0].view(np.int64)
    columns.ds_quota[rows] = cursors.number(0x18)[0].view(np.int64)
    columns.permission[rows] = cursors.fixed64(0x21)
    _read_acl(columns, rows, cursors, 0x2A)
    begin, end, has = cursors.inner(0x32)
    if has.any():
        _count_xattrs(columns, rows[has], cursors, np.flatnonzero(has), begin[has], end[has])
    cursors.inner(0x3A)


def _read_links(columns: InodeColumns, rows: Ints, cursors: Cursors, _found: _Blocks) -> None:
    columns.permission[rows] = cursors.fixed64(0x09)
    columns.target_at[rows], columns.target_end[rows], _ = cursors.inner(0x12)
    columns.mtime[rows] = cursors.number(0x18)[0].view(np.int64)
    columns.atime[rows] = cursors.number(0x20)[0].view(np.int64)


def _read_acl(columns: InodeColumns, rows: Ints, cursors: Cursors, key: int) -> None:
    begin, end, has = cursors.inner(key)
    # Less than key, length and one entry is an ACL of no entries, which is none.
    columns.acl[rows] = has & (end - begin > 2)


def _count_xattrs(
    columns: InodeColumns, rows: Ints, cursors: Cursors, which: Ints, begin: Ints, end: Ints
) -> None:
    columns.xattrs_at[rows], columns.xattrs_end[rows] = begin, end
    inner = Cursors(cursors.words, begin, end)
    for _ in range(_MOST_XATTRS):
        has = inner.inner(0x0A)[2]
        if not has.any():
            break
        columns.xattrs[rows] += has
    cursors.bad[which] |= ~inner.at_end()


def _read_alone(
    columns: InodeColumns,
    row: int,
    data: bytes | bytearray,
    start: int,
    end: int,
    found: _Blocks,
) -> None:
    """Read one message by protobuf's parser."""
    raw = bytes(data[start:end])
    try:
        message = pb.INode.FromString(raw)
        message.ByteSize()  # misses what the parser lets pass: required fields further inside
        for name, value in _values(message, raw, start).items():
            getattr(columns, name)[row] = value
    except (DecodeError, EncodeError, ValueError, OverflowError) as problem:
        what = f"an inode is malformed ({type(problem).__name__}: {problem})"
        raise BadMessage(start, what) from problem
    if found.wanted and message.type == FILE:
        blocks = message.file.blocks
        found.rows.append(np.full(len(blocks), row, np.int64))
        found.parts.append((
            np.arange(len(blocks), dtype=np.int64),
            np.array([_to_signed(b.blockId) for b in blocks], np.int64),
            np.array([_to_signed(b.genStamp) for b in blocks], np.int64),
            np.array([_to_signed(b.numBytes) for b in blocks], np.int64),
        ))  # fmt: skip


def _to_signed(number: int) -> int:
    return number - 2 * _SIGN if number >= _SIGN else number


def _values(message: pb.INode, raw: bytes, start: int) -> Mapping[str, int | bool | bytes]:
    """Return the columns of one message; its bytes are located by their content."""

    def place(part: bytes, column: str) -> dict[str, int]:
        at = raw.find(part) + start
        return {f"{column}_at": at, f"{column}_end": at + len(part)}

    values: dict[str, int | bool | bytes] = dict.fromkeys(_PLAIN, 0)
    values |= {"id": _to_signed(message.id), "type": message.type}
    values |= {"ns_quota": NO_QUOTA, "ds_quota": NO_QUOTA} | place(message.name, "name")
    body: pb.INodeFile | pb.INodeDirectory | pb.INodeSymlink
    if message.type == FILE:
        body = message.file
        values |= {
            "atime": _to_signed(body.accessTime),
            "replication": body.replication,
            "preferred_block_size": _to_signed(body.preferredBlockSize) or 1,
            "length": sum(_to_signed(block.numBytes) for block in body.blocks),
            "blocks": len(body.blocks),
            "under_construction": body.HasField("fileUC"),
            "storage_policy_id": body.storagePolicyID,
            "ec_policy_id": body.erasureCodingPolicyID if body.blockType else 0,
        }
    elif message.type == DIRECTORY:
        body = message.directory
        values |= {"ns_quota": _to_signed(body.nsQuota), "ds_quota": _to_signed(body.dsQuota)}
    else:
        body = message.symlink
        values |= place(body.target, "target") | {"atime": _to_signed(body.accessTime)}
    values |= {"permission": body.permission, "mtime": _to_signed(body.modificationTime)}
    if isinstance(body, pb.INodeSymlink):
        return values
    if body.HasField("xAttrs"):
        values["xattrs"] = len(body.xAttrs.xAttrs)
        values["loose_xattrs"] = body.xAttrs.SerializeToString()
    return values | {"acl": bool(body.acl.entries)}


_PLAIN: Final = tuple(field.name for field in fields(InodeColumns) if field.name != "loose_xattrs")
"""What is a number in each row."""

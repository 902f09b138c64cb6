"""Columns to Arrow record batches, and what the tables' columns are called."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ha.record import dataclass
from namenode_sim.edits.values import XAttrNamespace
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import Strings
from spark.tables.cursors import Flags, Ints
from spark.tables.inode_columns import DIRECTORY, NO_QUOTA, InodeColumns, decode_inodes
from spark.tables.message_stream import BadMessage, Chunk

Batch: TypeAlias = Any
"""A pyarrow.RecordBatch; pyarrow has no types."""
Column: TypeAlias = Any
"""A pyarrow.Array."""

INODE_TYPES: Final[Mapping[str, Any]] = {
    "id": pa.int64(),
    "type": pa.string(),
    "name": pa.string(),
    "name_bytes": pa.binary(),
    "user": pa.string(),
    "group": pa.string(),
    "mode": pa.int32(),
    "mtime_ms": pa.int64(),
    "atime_ms": pa.int64(),
    "replication": pa.int32(),
    "preferred_block_size": pa.int64(),
    "length": pa.int64(),
    "blocks": pa.int32(),
    "under_construction": pa.bool_(),
    "ec_policy_id": pa.int32(),
    "storage_policy_id": pa.int32(),
    "ns_quota": pa.int64(),
    "ds_quota": pa.int64(),
    "acl": pa.bool_(),
    "xattrs": pa.int32(),
    "target": pa.string(),
}
"""The columns of the table of inodes."""

_KINDS: Final = pa.array(["", "FILE", "DIRECTORY", "SYMLINK"])
_POLICY_XATTR: Final = (XAttrNamespace.SYSTEM, "hsm.block.storage.policy.id")


@dataclass(frozen=True, slots=True)
class Names:
    """Names by their serial numbers: ``known`` says which there are."""

    texts: Column
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, names: Mapping[int, str]) -> "Names":
        """Make them from a part of the string table."""
        size = max(names, default=0) + 1
        known = np.zeros(size, np.bool_)
        known[list(names)] = True
        return cls(pa.array([names.get(number, "") for number in range(size)], pa.string()), known)

    def column(self, serials: Ints, what: str, starts: Ints) -> Column:
        """Return the names of some rows; ``starts`` are their messages' places, for errors."""
        missing = serials >= len(self.known)
        missing |= ~self.known[np.where(missing, 0, serials)]
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise BadMessage(int(starts[row]), f"{what} {serials[row]} is not in the string table")
        return self.texts.take(pa.array(serials))


class InodeBatches:
    """Makes record batches of inodes."""

    def __init__(self, strings: Strings, columns: tuple[str, ...] = tuple(INODE_TYPES)) -> None:
        """``columns`` are those wanted, in their order."""
        self.schema = pa.schema([(name, INODE_TYPES[name]) for name in columns])
        self._columns = columns
        self._users = Names.of(strings.users)
        self._groups = Names.of(strings.groups)
        self._strings = strings

    def batch(self, chunk: Chunk) -> Batch:
        """Return the rows of a chunk of INODE messages; BadMessage if one is malformed."""
        return self.of(decode_inodes(chunk.data, chunk.starts, chunk.ends), chunk)

    def of(self, rows: InodeColumns, chunk: Chunk) -> Batch:
        """Return the rows of a chunk that is decoded already."""
        made: dict[str, Column] = {}
        for name in self._columns:
            if name in ("name", "name_bytes"):
                if name not in made:
                    made["name"], made["name_bytes"] = texts(
                        slices(chunk.data, rows.name_at, rows.name_end)
                    )
            elif name not in made:
                made[name] = self._column(name, rows, chunk)
        return pa.record_batch([made[name] for name in self._columns], schema=self.schema)

    def _column(self, name: str, rows: InodeColumns, chunk: Chunk) -> Column:
        match name:
            case "type":
                return _KINDS.take(pa.array(rows.type))
            case "user":
                serials = (rows.permission >> np.uint64(40)).view(np.int64)
                return self._users.column(serials, "user", chunk.starts)
            case "group":
                serials = (rows.permission >> np.uint64(16)).view(np.int64) & 0xFFFFFF
                return self._groups.column(serials, "group", chunk.starts)
            case "mode":
                return pa.array((rows.permission & np.uint64(0xFFFF)).astype(np.int32))
            case "atime_ms":
                return pa.array(rows.atime, mask=rows.type == DIRECTORY)
            case "ns_quota" | "ds_quota":
                values = rows.ns_quota if name == "ns_quota" else rows.ds_quota
                return pa.array(values, mask=values == NO_QUOTA)
            case "storage_policy_id":
                return pa.array(self._policies(rows, chunk).astype(np.int32))
            case "target":
                return _targets(rows, chunk)
            case _:
                return _plain(name, rows)

    def _policies(self, rows: InodeColumns, chunk: Chunk) -> Ints:
        """Return the storage policies; a directory's is an extended attribute, which are rare."""
        policies = rows.storage_policy_id
        held = np.flatnonzero((rows.type == DIRECTORY) & (rows.xattrs > 0))
        for row in held.tolist():
            loose = rows.loose_xattrs.get(row)
            raw = chunk.data[rows.xattrs_at[row] : rows.xattrs_end[row]] if loose is None else loose
            try:
                for packed in pb.XAttrFeatureProto.FromString(raw).xAttrs:
                    xattr = self._strings.xattr(packed.name, packed.value or None)
                    if (xattr.namespace, xattr.name) == _POLICY_XATTR and xattr.value:
                        policies[row] = xattr.value[0]
            except (LookupError, ValueError) as problem:
                what = f"an extended attribute is malformed ({type(problem).__name__}: {problem})"
                raise BadMessage(int(chunk.starts[row]), what) from problem
        return policies


_PLAIN: Final[Mapping[str, Callable[[InodeColumns], Ints | Flags]]] = {
    "id": lambda rows: rows.id,
    "mtime_ms": lambda rows: rows.mtime,
    "replication": lambda rows: rows.replication,
    "preferred_block_size": lambda rows: rows.preferred_block_size,
    "length": lambda rows: rows.length,
    "blocks": lambda rows: rows.blocks,
    "under_construction": lambda rows: rows.under_construction,
    "ec_policy_id": lambda rows: rows.ec_policy_id,
    "acl": lambda rows: rows.acl,
    "xattrs": lambda rows: rows.xattrs,
}


def _plain(name: str, rows: InodeColumns) -> Column:
    kind = INODE_TYPES[name]
    values = _PLAIN[name](rows)
    return pa.array(values.astype(np.int32) if kind == pa.int32() else values, kind)


def _targets(rows: InodeColumns, chunk: Chunk) -> Column:
    links = np.flatnonzero(rows.target_end > rows.target_at)
    if not len(links):
        return pa.nulls(len(rows), pa.string())
    found, _ = texts(slices(chunk.data, rows.target_at[links], rows.target_end[links]))
    where = np.zeros(len(rows), np.int64)
    where[links] = np.arange(len(links))
    absent = np.ones(len(rows), np.bool_)
    absent[links] = False
    return found.take(pa.array(where, mask=absent))


def slices(data: bytes, begin: Ints, end: Ints) -> Column:
    """Parts of a buffer, in its order, as binary values."""
    count = len(begin)
    if not count:
        return pa.array([], pa.binary())
    # One array of the parts and of what lies between them; every second value of it is wanted.
    places = np.empty(2 * count + 1, np.int32)
    places[0:-1:2] = begin
    places[1::2] = end
    places[-1] = end[-1]
    everything = pa.Array.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(places), pa.py_buffer(data)]
    )
    return everything.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def texts(raw: Column) -> tuple[Column, Column]:
    """Bytes as text, and the bytes of those only that are no UTF-8 (there U+FFFD stands)."""
    try:
        return raw.cast(pa.string()), pa.nulls(len(raw), pa.binary())
    except pa.ArrowInvalid:
        pass
    shown: list[str] = []
    kept: list[bytes | None] = []
    for value in raw.to_pylist():
        try:
            shown.append(value.decode())
            kept.append(None)
        except UnicodeDecodeError:
            shown.append(value.decode("utf-8", "replace"))
            kept.append(value)
    return pa.array(shown, pa.string()), pa.array(kept, pa.binary())

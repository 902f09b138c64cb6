"""Bytes of the ops about paths.  ``file_codec`` explains how they work."""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from namenode_sim.edits import attributes as edits_attributes
from namenode_sim.edits import fields, ops, primitives
from namenode_sim.edits.fields import I64, STRING
from namenode_sim.edits.file_codec import ACL_LAYOUT, XATTR_LAYOUT, inherited
from namenode_sim.edits.values import RenameOption, StorageType

SNAPSHOT_MTIME_LAYOUT: Final = -66
NVDIMM_LAYOUT: Final = -67

_TYPE_AND_QUOTA = Struct(">iq")
_RENAME_OPTIONS: Final = tuple(RenameOption)
_STORAGE_TYPES: Final = tuple(StorageType)


def read_rename_old(data: bytes, pos: int, _layout: int) -> fields.Read:
    src, pos = primitives.read_string(data, pos)
    dst, pos = primitives.read_string(data, pos)
    time, pos = primitives.read_i64(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.RenameOld(src, dst, time, ids), pos


def write_rename_old(op: ops.RenameOld, _layout: int) -> bytes:
    return (
        primitives.string(op.src)
        + primitives.string(op.dst)
        + primitives.I64.pack(op.time)
        + primitives.rpc_ids(op.rpc)
    )


def read_rename(data: bytes, pos: int, _layout: int) -> fields.Read:
    src, pos = primitives.read_string(data, pos)
    dst, pos = primitives.read_string(data, pos)
    time, pos = primitives.read_i64(data, pos)
    count, pos = primitives.read_i32(data, pos)
    if not 0 <= count <= len(data) - pos:
        raise ValueError(f"{count} rename options, but {len(data) - pos} bytes are left")
    options = tuple(_RENAME_OPTIONS[code] for code in data[pos : pos + count])
    ids, pos = primitives.read_rpc_ids(data, pos + count)
    return ops.Rename(src, dst, time, options, ids), pos


def write_rename(op: ops.Rename, _layout: int) -> bytes:
    head = primitives.string(op.src) + primitives.string(op.dst) + primitives.I64.pack(op.time)
    return (
        head + primitives.I32.pack(len(op.options)) + bytes(op.options) + primitives.rpc_ids(op.rpc)
    )


def read_delete(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    time, pos = primitives.read_i64(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.Delete(path, time, ids), pos


def write_delete(op: ops.Delete, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.I64.pack(op.time) + primitives.rpc_ids(op.rpc)


def read_mkdir(data: bytes, pos: int, layout: int) -> fields.Read:
    (inode_id,) = primitives.I64.unpack_from(data, pos)
    path, pos = primitives.read_string(data, pos + 8)
    time, atime = primitives.I64I64.unpack_from(data, pos)
    owner, pos = primitives.read_permission(data, pos + 16)
    entries, pos = edits_attributes.read_acl(data, pos) if layout <= ACL_LAYOUT else ((), pos)
    _, attributes, pos = (
        edits_attributes.read_xattrs(data, pos) if layout <= XATTR_LAYOUT else ("", (), pos)
    )
    return ops.Mkdir(inode_id, path, time, atime, owner, entries, attributes), pos


def write_mkdir(op: ops.Mkdir, layout: int) -> bytes:
    return b"".join((
        primitives.I64.pack(op.inode_id),
        primitives.string(op.path),
        primitives.I64I64.pack(op.time, op.atime),
        primitives.permission(op.permission),
        *inherited(op.acl, op.xattrs, layout),
    ))  # fmt: skip


def read_set_permissions(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    bits, pos = primitives.read_mode(data, pos)
    return ops.SetPermissions(path, bits), pos


def write_set_permissions(op: ops.SetPermissions, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.mode(op.mode)


def read_set_owner(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    user, pos = primitives.read_string(data, pos)
    group, pos = primitives.read_string(data, pos)
    return ops.SetOwner(path, user, group), pos


def write_set_owner(op: ops.SetOwner, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.string(op.user) + primitives.string(op.group)


def read_times(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    return ops.Times(path, *primitives.I64I64.unpack_from(data, pos)), pos + 16


def write_times(op: ops.Times, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.I64I64.pack(op.mtime, op.atime)


def read_set_quota_by_storage_type(data: bytes, pos: int, layout: int) -> fields.Read:
    path, pos = primitives.read_string(data, pos)
    ordinal, quota = _TYPE_AND_QUOTA.unpack_from(data, pos)
    known = len(_STORAGE_TYPES) if layout <= NVDIMM_LAYOUT else StorageType.NVDIMM
    if not 0 <= ordinal < known:
        raise ValueError(f"layout {layout} has no storage type {ordinal}")
    return ops.SetQuotaByStorageType(path, _STORAGE_TYPES[ordinal], quota), pos + 12


def write_set_quota_by_storage_type(op: ops.SetQuotaByStorageType, layout: int) -> bytes:
    if op.storage_type is StorageType.NVDIMM and layout > NVDIMM_LAYOUT:
        raise ValueError(f"layout {layout} has no storage type NVDIMM")
    return primitives.string(op.path) + _TYPE_AND_QUOTA.pack(op.storage_type, op.quota)


def read_set_acl(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, entries, pos = edits_attributes.read_acl_edit(data, pos)
    return ops.SetAcl(path, entries), pos


def write_set_acl(op: ops.SetAcl, _layout: int) -> bytes:
    return edits_attributes.acl_edit(op.path, op.entries)


def read_set_xattr(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, found, pos = edits_attributes.read_xattrs(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.SetXAttr(path, found, ids), pos


def read_remove_xattr(data: bytes, pos: int, _layout: int) -> fields.Read:
    path, found, pos = edits_attributes.read_xattrs(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.RemoveXAttr(path, found, ids), pos


def write_xattr(op: ops.SetXAttr | ops.RemoveXAttr, _layout: int) -> bytes:
    """Write OP_SET_XATTR (43) and OP_REMOVE_XATTR (44)."""
    return edits_attributes.xattrs(op.path, op.xattrs) + primitives.rpc_ids(op.rpc)


def _pack_time(mtime: int | None) -> bytes:
    return primitives.I64.pack(mtime or 0)


_TIME: Final = fields.Field(primitives.read_i64, _pack_time)
_NO_TIME: Final = fields.Field(lambda _data, pos: (None, pos), lambda _mtime: b"")


def _snapshot_codec(op: type[ops.Op], *names: fields.Field) -> tuple[fields.Reader, fields.Writer]:
    """Return the codec of a snapshot op, whose time only newer layouts have.

    A reader of an older layout would lose the boundary of the op.
    """
    timed = fields.record_of(op, *names, _TIME, fields.RPC_IDS)
    untimed = fields.record_of(op, *names, _NO_TIME, fields.RPC_IDS)

    def at(layout: int) -> fields.Field:
        return timed if layout <= SNAPSHOT_MTIME_LAYOUT else untimed

    return (
        lambda data, pos, layout: at(layout).read(data, pos),
        lambda op, layout: at(layout).write(op),
    )


TREE_CODECS: Final[Mapping[type[ops.Op], tuple[fields.Reader, fields.Writer]]] = {
    ops.RenameOld: (read_rename_old, write_rename_old),
    ops.Rename: (read_rename, write_rename),
    ops.Delete: (read_delete, write_delete),
    ops.Mkdir: (read_mkdir, write_mkdir),
    ops.Symlink: fields.codec_of(
        ops.Symlink, I64, STRING, STRING, I64, I64, fields.PERMISSION, fields.RPC_IDS
    ),
    ops.SetPermissions: (read_set_permissions, write_set_permissions),
    ops.SetOwner: (read_set_owner, write_set_owner),
    ops.Times: (read_times, write_times),
    ops.SetNsQuota: fields.codec_of(ops.SetNsQuota, STRING, I64),
    ops.ClearNsQuota: fields.codec_of(ops.ClearNsQuota, STRING),
    ops.SetQuota: fields.codec_of(ops.SetQuota, STRING, I64, I64),
    ops.SetQuotaByStorageType: (read_set_quota_by_storage_type, write_set_quota_by_storage_type),
    ops.SetStoragePolicy: fields.codec_of(ops.SetStoragePolicy, STRING, fields.I8),
    ops.SetAcl: (read_set_acl, write_set_acl),
    ops.SetXAttr: (read_set_xattr, write_xattr),
    ops.RemoveXAttr: (read_remove_xattr, write_xattr),
    ops.CreateSnapshot: _snapshot_codec(ops.CreateSnapshot, STRING, STRING),
    ops.DeleteSnapshot: _snapshot_codec(ops.DeleteSnapshot, STRING, STRING),
    ops.RenameSnapshot: _snapshot_codec(ops.RenameSnapshot, STRING, STRING, STRING),
    ops.AllowSnapshot: fields.codec_of(ops.AllowSnapshot, STRING),
    ops.DisallowSnapshot: fields.codec_of(ops.DisallowSnapshot, STRING),
}

"""Bytes of the ops about paths.  ``file_codec`` explains how they work."""

from struct import Struct
from typing import Final

from namenode_sim.edits import attributes as edits_attributes
from namenode_sim.edits import ops, primitives
from namenode_sim.edits.file_codec import ACL_LAYOUT, XATTR_LAYOUT, Read, Reader, Writer, inherited
from namenode_sim.edits.values import RenameOption, RpcIds, StorageType

SNAPSHOT_MTIME_LAYOUT: Final = -66
NVDIMM_LAYOUT: Final = -67

_I8 = Struct(">b")
_TYPE_AND_QUOTA = Struct(">iq")
_RENAME_OPTIONS: Final = tuple(RenameOption)
_STORAGE_TYPES: Final = tuple(StorageType)


def read_rename_old(data: bytes, pos: int, _layout: int) -> Read:
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


def read_rename(data: bytes, pos: int, _layout: int) -> Read:
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


def read_delete(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    time, pos = primitives.read_i64(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.Delete(path, time, ids), pos


def write_delete(op: ops.Delete, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.I64.pack(op.time) + primitives.rpc_ids(op.rpc)


def read_mkdir(data: bytes, pos: int, layout: int) -> Read:
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


def read_symlink(data: bytes, pos: int, _layout: int) -> Read:
    inode_id, pos = primitives.read_i64(data, pos)
    path, pos = primitives.read_string(data, pos)
    target, pos = primitives.read_string(data, pos)
    mtime, atime = primitives.I64I64.unpack_from(data, pos)
    owner, pos = primitives.read_permission(data, pos + 16)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.Symlink(inode_id, path, target, mtime, atime, owner, ids), pos


def write_symlink(op: ops.Symlink, _layout: int) -> bytes:
    head = (
        primitives.I64.pack(op.inode_id) + primitives.string(op.path) + primitives.string(op.target)
    )
    return (
        head
        + primitives.I64I64.pack(op.mtime, op.atime)
        + primitives.permission(op.permission)
        + primitives.rpc_ids(op.rpc)
    )


def read_set_permissions(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    bits, pos = primitives.read_mode(data, pos)
    return ops.SetPermissions(path, bits), pos


def write_set_permissions(op: ops.SetPermissions, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.mode(op.mode)


def read_set_owner(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    user, pos = primitives.read_string(data, pos)
    group, pos = primitives.read_string(data, pos)
    return ops.SetOwner(path, user, group), pos


def write_set_owner(op: ops.SetOwner, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.string(op.user) + primitives.string(op.group)


def read_times(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    return ops.Times(path, *primitives.I64I64.unpack_from(data, pos)), pos + 16


def write_times(op: ops.Times, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.I64I64.pack(op.mtime, op.atime)


def read_set_ns_quota(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    return ops.SetNsQuota(path, primitives.I64.unpack_from(data, pos)[0]), pos + 8


def write_set_ns_quota(op: ops.SetNsQuota, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.I64.pack(op.ns_quota)


def read_clear_ns_quota(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    return ops.ClearNsQuota(path), pos


def write_clear_ns_quota(op: ops.ClearNsQuota, _layout: int) -> bytes:
    return primitives.string(op.path)


def read_set_quota(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    return ops.SetQuota(path, *primitives.I64I64.unpack_from(data, pos)), pos + 16


def write_set_quota(op: ops.SetQuota, _layout: int) -> bytes:
    return primitives.string(op.path) + primitives.I64I64.pack(op.ns_quota, op.ds_quota)


def read_set_quota_by_storage_type(data: bytes, pos: int, layout: int) -> Read:
    """Read OP_SET_QUOTA_BY_STORAGETYPE (48)."""
    path, pos = primitives.read_string(data, pos)
    ordinal, quota = _TYPE_AND_QUOTA.unpack_from(data, pos)
    known = len(_STORAGE_TYPES) if layout <= NVDIMM_LAYOUT else StorageType.NVDIMM
    if not 0 <= ordinal < known:
        raise ValueError(f"layout {layout} has no storage type {ordinal}")
    return ops.SetQuotaByStorageType(path, _STORAGE_TYPES[ordinal], quota), pos + 12


def write_set_quota_by_storage_type(op: ops.SetQuotaByStorageType, layout: int) -> bytes:
    """Write OP_SET_QUOTA_BY_STORAGETYPE (48)."""
    if op.storage_type is StorageType.NVDIMM and layout > NVDIMM_LAYOUT:
        raise ValueError(f"layout {layout} has no storage type NVDIMM")
    return primitives.string(op.path) + _TYPE_AND_QUOTA.pack(op.storage_type, op.quota)


def read_set_storage_policy(data: bytes, pos: int, _layout: int) -> Read:
    path, pos = primitives.read_string(data, pos)
    return ops.SetStoragePolicy(path, _I8.unpack_from(data, pos)[0]), pos + 1


def write_set_storage_policy(op: ops.SetStoragePolicy, _layout: int) -> bytes:
    return primitives.string(op.path) + _I8.pack(op.policy_id)


def read_set_acl(data: bytes, pos: int, _layout: int) -> Read:
    path, entries, pos = edits_attributes.read_acl_edit(data, pos)
    return ops.SetAcl(path, entries), pos


def write_set_acl(op: ops.SetAcl, _layout: int) -> bytes:
    return edits_attributes.acl_edit(op.path, op.entries)


def read_set_xattr(data: bytes, pos: int, _layout: int) -> Read:
    path, found, pos = edits_attributes.read_xattrs(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.SetXAttr(path, found, ids), pos


def read_remove_xattr(data: bytes, pos: int, _layout: int) -> Read:
    path, found, pos = edits_attributes.read_xattrs(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return ops.RemoveXAttr(path, found, ids), pos


def write_xattr(op: ops.SetXAttr | ops.RemoveXAttr, _layout: int) -> bytes:
    """Write OP_SET_XATTR (43) and OP_REMOVE_XATTR (44)."""
    return edits_attributes.xattrs(op.path, op.xattrs) + primitives.rpc_ids(op.rpc)


def _read_snapshot_tail(data: bytes, pos: int, layout: int) -> tuple[int | None, RpcIds, int]:
    mtime = None
    if layout <= SNAPSHOT_MTIME_LAYOUT:
        mtime, pos = primitives.read_i64(data, pos)
    ids, pos = primitives.read_rpc_ids(data, pos)
    return mtime, ids, pos


def _snapshot_tail(mtime: int | None, ids: RpcIds, layout: int) -> bytes:
    """Return the end of a snapshot op: an older layout has no field for the time.

    Its readers would lose the op boundary.
    """
    if layout > SNAPSHOT_MTIME_LAYOUT:
        return primitives.rpc_ids(ids)
    return primitives.I64.pack(mtime or 0) + primitives.rpc_ids(ids)


def read_create_snapshot(data: bytes, pos: int, layout: int) -> Read:
    root, pos = primitives.read_string(data, pos)
    name, pos = primitives.read_string(data, pos)
    mtime, ids, pos = _read_snapshot_tail(data, pos, layout)
    return ops.CreateSnapshot(root, name, mtime, ids), pos


def read_delete_snapshot(data: bytes, pos: int, layout: int) -> Read:
    root, pos = primitives.read_string(data, pos)
    name, pos = primitives.read_string(data, pos)
    mtime, ids, pos = _read_snapshot_tail(data, pos, layout)
    return ops.DeleteSnapshot(root, name, mtime, ids), pos


def write_snapshot(op: ops.CreateSnapshot | ops.DeleteSnapshot, layout: int) -> bytes:
    """Write OP_CREATE_SNAPSHOT (26) and OP_DELETE_SNAPSHOT (27)."""
    head = primitives.string(op.snapshot_root) + primitives.string(op.snapshot_name)
    return head + _snapshot_tail(op.mtime, op.rpc, layout)


def read_rename_snapshot(data: bytes, pos: int, layout: int) -> Read:
    root, pos = primitives.read_string(data, pos)
    old_name, pos = primitives.read_string(data, pos)
    new_name, pos = primitives.read_string(data, pos)
    mtime, ids, pos = _read_snapshot_tail(data, pos, layout)
    return ops.RenameSnapshot(root, old_name, new_name, mtime, ids), pos


def write_rename_snapshot(op: ops.RenameSnapshot, layout: int) -> bytes:
    head = (
        primitives.string(op.snapshot_root)
        + primitives.string(op.old_name)
        + primitives.string(op.new_name)
    )
    return head + _snapshot_tail(op.mtime, op.rpc, layout)


def read_allow_snapshot(data: bytes, pos: int, _layout: int) -> Read:
    root, pos = primitives.read_string(data, pos)
    return ops.AllowSnapshot(root), pos


def read_disallow_snapshot(data: bytes, pos: int, _layout: int) -> Read:
    root, pos = primitives.read_string(data, pos)
    return ops.DisallowSnapshot(root), pos


def write_snapshot_root(op: ops.AllowSnapshot | ops.DisallowSnapshot, _layout: int) -> bytes:
    """Write OP_ALLOW_SNAPSHOT (29) and OP_DISALLOW_SNAPSHOT (30)."""
    return primitives.string(op.snapshot_root)


TREE_CODECS: Final[dict[type[ops.Op], tuple[Reader, Writer]]] = {
    ops.RenameOld: (read_rename_old, write_rename_old),
    ops.Rename: (read_rename, write_rename),
    ops.Delete: (read_delete, write_delete),
    ops.Mkdir: (read_mkdir, write_mkdir),
    ops.Symlink: (read_symlink, write_symlink),
    ops.SetPermissions: (read_set_permissions, write_set_permissions),
    ops.SetOwner: (read_set_owner, write_set_owner),
    ops.Times: (read_times, write_times),
    ops.SetNsQuota: (read_set_ns_quota, write_set_ns_quota),
    ops.ClearNsQuota: (read_clear_ns_quota, write_clear_ns_quota),
    ops.SetQuota: (read_set_quota, write_set_quota),
    ops.SetQuotaByStorageType: (read_set_quota_by_storage_type, write_set_quota_by_storage_type),
    ops.SetStoragePolicy: (read_set_storage_policy, write_set_storage_policy),
    ops.SetAcl: (read_set_acl, write_set_acl),
    ops.SetXAttr: (read_set_xattr, write_xattr),
    ops.RemoveXAttr: (read_remove_xattr, write_xattr),
    ops.CreateSnapshot: (read_create_snapshot, write_snapshot),
    ops.DeleteSnapshot: (read_delete_snapshot, write_snapshot),
    ops.RenameSnapshot: (read_rename_snapshot, write_rename_snapshot),
    ops.AllowSnapshot: (read_allow_snapshot, write_snapshot_root),
    ops.DisallowSnapshot: (read_disallow_snapshot, write_snapshot_root),
}

"""Ops about paths: names, attributes, quotas, ACLs, extended attributes and snapshots."""

from typing import ClassVar

from ha.record import record
from namenode_sim.edits import values


@record
class RenameOld:
    """A rename with the first semantics: a failure is no error."""

    opcode: ClassVar[int] = 1
    src: str
    dst: str
    time: int
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class Delete:
    """A path goes away with all below it."""

    opcode: ClassVar[int] = 2
    path: str
    time: int
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class Mkdir:
    """A directory is created.  Hadoop writes the time twice; replay uses the first."""

    opcode: ClassVar[int] = 3
    inode_id: int
    path: str
    time: int
    atime: int
    permission: values.Permission
    acl: tuple[values.AclEntry, ...] = ()
    xattrs: tuple[values.XAttr, ...] = ()


@record
class SetPermissions:
    """A path's mode changes."""

    opcode: ClassVar[int] = 7
    path: str
    mode: int


@record
class SetOwner:
    """A path's owner changes; an empty string leaves that part as it is."""

    opcode: ClassVar[int] = 8
    path: str
    user: str
    group: str


@record
class SetNsQuota:
    """A name quota; read from old logs only."""

    opcode: ClassVar[int] = 11
    path: str
    ns_quota: int


@record
class ClearNsQuota:
    """No name quota any more; read from old logs only."""

    opcode: ClassVar[int] = 12
    path: str


@record
class Times:
    """Modification and access time; -1 leaves the one it stands for."""

    opcode: ClassVar[int] = 13
    path: str
    mtime: int
    atime: int


@record
class SetQuota:
    """Name and space quota; -1 removes one, 2^63-1 leaves it."""

    opcode: ClassVar[int] = 14
    path: str
    ns_quota: int
    ds_quota: int


@record
class Rename:
    """A rename that must succeed, with options."""

    opcode: ClassVar[int] = 15
    src: str
    dst: str
    time: int
    options: tuple[values.RenameOption, ...] = ()
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class Symlink:
    """A symbolic link is created."""

    opcode: ClassVar[int] = 17
    inode_id: int
    path: str
    target: str
    mtime: int
    atime: int
    permission: values.Permission
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class CreateSnapshot:
    """A snapshot is taken; mtime is None in logs before layout -66."""

    opcode: ClassVar[int] = 26
    snapshot_root: str
    snapshot_name: str
    mtime: int | None = None
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class DeleteSnapshot:
    """A snapshot is dropped; mtime is None in logs before layout -66."""

    opcode: ClassVar[int] = 27
    snapshot_root: str
    snapshot_name: str
    mtime: int | None = None
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class RenameSnapshot:
    """A snapshot is renamed; mtime is None in logs before layout -66."""

    opcode: ClassVar[int] = 28
    snapshot_root: str
    old_name: str
    new_name: str
    mtime: int | None = None
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class AllowSnapshot:
    """A directory may have snapshots."""

    opcode: ClassVar[int] = 29
    snapshot_root: str


@record
class DisallowSnapshot:
    """A directory may no longer have snapshots."""

    opcode: ClassVar[int] = 30
    snapshot_root: str


@record
class SetAcl:
    """A path's ACL is replaced; no entries remove it."""

    opcode: ClassVar[int] = 40
    path: str
    entries: tuple[values.AclEntry, ...]


@record
class SetXAttr:
    """Extended attributes are set."""

    opcode: ClassVar[int] = 43
    path: str
    xattrs: tuple[values.XAttr, ...]
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class RemoveXAttr:
    """Extended attributes are removed; their values do not matter."""

    opcode: ClassVar[int] = 44
    path: str
    xattrs: tuple[values.XAttr, ...]
    rpc: values.RpcIds = values.NO_RPC_IDS


@record
class SetStoragePolicy:
    """A path's storage policy; 0 removes it from a directory."""

    opcode: ClassVar[int] = 45
    path: str
    policy_id: int


@record
class SetQuotaByStorageType:
    """A space quota for one storage type; -1 removes it."""

    opcode: ClassVar[int] = 48
    path: str
    storage_type: values.StorageType
    quota: int

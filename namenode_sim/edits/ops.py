"""Every op of Hadoop's edit log as a typed value, with its fields in the order of the file.

One class per opcode, named after it without ``OP_`` (Hadoop's FSEditLogOpCodes).  Times are Unix
milliseconds.  A transaction id belongs to the frame, not to the op.  Opcodes 5 and 6 (DATANODE_ADD,
DATANODE_REMOVE) have no reader in Hadoop either.
"""

from typing import Final

from namenode_sim.edits.admin_ops import (
    AddCacheDirective,
    AddCachePool,
    AddErasureCodingPolicy,
    CancelDelegationToken,
    DisableErasureCodingPolicy,
    EnableErasureCodingPolicy,
    EndLogSegment,
    GetDelegationToken,
    ModifyCacheDirective,
    ModifyCachePool,
    RemoveCacheDirective,
    RemoveCachePool,
    RemoveErasureCodingPolicy,
    RenewDelegationToken,
    RollingUpgradeFinalize,
    RollingUpgradeStart,
    StartLogSegment,
    UpdateMasterKey,
)
from namenode_sim.edits.file_ops import (
    Add,
    AddBlock,
    AllocateBlockId,
    Append,
    Close,
    ConcatDelete,
    ReassignLease,
    SetGenstampV1,
    SetGenstampV2,
    SetReplication,
    Truncate,
    UpdateBlocks,
)
from namenode_sim.edits.tree_ops import (
    AllowSnapshot,
    ClearNsQuota,
    CreateSnapshot,
    Delete,
    DeleteSnapshot,
    DisallowSnapshot,
    Mkdir,
    RemoveXAttr,
    Rename,
    RenameOld,
    RenameSnapshot,
    SetAcl,
    SetNsQuota,
    SetOwner,
    SetPermissions,
    SetQuota,
    SetQuotaByStorageType,
    SetStoragePolicy,
    SetXAttr,
    Symlink,
    Times,
)
from namenode_sim.edits.values import (
    NO_RPC_IDS,
    AclEntry,
    AclScope,
    AclType,
    Block,
    CacheDirective,
    CachePool,
    DelegationKey,
    DelegationTokenIdentifier,
    EcPolicy,
    Permission,
    RenameOption,
    RpcIds,
    StorageType,
    XAttr,
    XAttrNamespace,
)

Op = (
    Add
    | RenameOld
    | Delete
    | Mkdir
    | SetReplication
    | SetPermissions
    | SetOwner
    | Close
    | SetGenstampV1
    | SetNsQuota
    | ClearNsQuota
    | Times
    | SetQuota
    | Rename
    | ConcatDelete
    | Symlink
    | GetDelegationToken
    | RenewDelegationToken
    | CancelDelegationToken
    | UpdateMasterKey
    | ReassignLease
    | EndLogSegment
    | StartLogSegment
    | UpdateBlocks
    | CreateSnapshot
    | DeleteSnapshot
    | RenameSnapshot
    | AllowSnapshot
    | DisallowSnapshot
    | SetGenstampV2
    | AllocateBlockId
    | AddBlock
    | AddCacheDirective
    | RemoveCacheDirective
    | AddCachePool
    | ModifyCachePool
    | RemoveCachePool
    | ModifyCacheDirective
    | SetAcl
    | RollingUpgradeStart
    | RollingUpgradeFinalize
    | SetXAttr
    | RemoveXAttr
    | SetStoragePolicy
    | Truncate
    | Append
    | SetQuotaByStorageType
    | AddErasureCodingPolicy
    | EnableErasureCodingPolicy
    | DisableErasureCodingPolicy
    | RemoveErasureCodingPolicy
)
"""Any edit."""

OP_CLASSES: Final[tuple[type[Op], ...]] = (
    Add,
    RenameOld,
    Delete,
    Mkdir,
    SetReplication,
    SetPermissions,
    SetOwner,
    Close,
    SetGenstampV1,
    SetNsQuota,
    ClearNsQuota,
    Times,
    SetQuota,
    Rename,
    ConcatDelete,
    Symlink,
    GetDelegationToken,
    RenewDelegationToken,
    CancelDelegationToken,
    UpdateMasterKey,
    ReassignLease,
    EndLogSegment,
    StartLogSegment,
    UpdateBlocks,
    CreateSnapshot,
    DeleteSnapshot,
    RenameSnapshot,
    AllowSnapshot,
    DisallowSnapshot,
    SetGenstampV2,
    AllocateBlockId,
    AddBlock,
    AddCacheDirective,
    RemoveCacheDirective,
    AddCachePool,
    ModifyCachePool,
    RemoveCachePool,
    ModifyCacheDirective,
    SetAcl,
    RollingUpgradeStart,
    RollingUpgradeFinalize,
    SetXAttr,
    RemoveXAttr,
    SetStoragePolicy,
    Truncate,
    Append,
    SetQuotaByStorageType,
    AddErasureCodingPolicy,
    EnableErasureCodingPolicy,
    DisableErasureCodingPolicy,
    RemoveErasureCodingPolicy,
)
"""All op classes in the order of their opcodes."""

__all__ = [
    "OP_CLASSES",
    "Op",
    "Add",
    "RenameOld",
    "Delete",
    "Mkdir",
    "SetReplication",
    "SetPermissions",
    "SetOwner",
    "Close",
    "SetGenstampV1",
    "SetNsQuota",
    "ClearNsQuota",
    "Times",
    "SetQuota",
    "Rename",
    "ConcatDelete",
    "Symlink",
    "GetDelegationToken",
    "RenewDelegationToken",
    "CancelDelegationToken",
    "UpdateMasterKey",
    "ReassignLease",
    "EndLogSegment",
    "StartLogSegment",
    "UpdateBlocks",
    "CreateSnapshot",
    "DeleteSnapshot",
    "RenameSnapshot",
    "AllowSnapshot",
    "DisallowSnapshot",
    "SetGenstampV2",
    "AllocateBlockId",
    "AddBlock",
    "AddCacheDirective",
    "RemoveCacheDirective",
    "AddCachePool",
    "ModifyCachePool",
    "RemoveCachePool",
    "ModifyCacheDirective",
    "SetAcl",
    "RollingUpgradeStart",
    "RollingUpgradeFinalize",
    "SetXAttr",
    "RemoveXAttr",
    "SetStoragePolicy",
    "Truncate",
    "Append",
    "SetQuotaByStorageType",
    "AddErasureCodingPolicy",
    "EnableErasureCodingPolicy",
    "DisableErasureCodingPolicy",
    "RemoveErasureCodingPolicy",
    "AclEntry",
    "AclScope",
    "AclType",
    "Block",
    "CacheDirective",
    "CachePool",
    "DelegationKey",
    "DelegationTokenIdentifier",
    "EcPolicy",
    "NO_RPC_IDS",
    "Permission",
    "RenameOption",
    "RpcIds",
    "StorageType",
    "XAttr",
    "XAttrNamespace",
]

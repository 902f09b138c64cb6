# ruff: noqa: F403, F405 - the ops of three files, under one name each
"""Every op of Hadoop's edit log as a typed value, with its fields in the order of the file.

One class per opcode, named after it without ``OP_`` (Hadoop's FSEditLogOpCodes).  Times are Unix
milliseconds.  A transaction id belongs to the frame, not to the op.  Opcodes 5 and 6 (DATANODE_ADD,
DATANODE_REMOVE) have no reader in Hadoop either.
"""

from typing import Final, get_args

from namenode_sim.edits.admin_ops import *
from namenode_sim.edits.file_ops import *
from namenode_sim.edits.tree_ops import *

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

OP_CLASSES: Final[tuple[type[Op], ...]] = get_args(Op)
"""All op classes in the order of their opcodes."""

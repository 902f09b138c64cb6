"""Which edits belong together."""

from enum import Enum, auto
from typing import Final, get_args

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.namespace.admin import CacheOp, EcOp, SecretsOp
from namenode_sim.namespace.snapshots.snapshots import SnapshotOp

FileOp = (
    ops.Add
    | ops.Append
    | ops.Close
    | ops.AddBlock
    | ops.UpdateBlocks
    | ops.Truncate
    | ops.ConcatDelete
    | ops.SetReplication
    | ops.ReassignLease
    | ops.SetGenstampV1
    | ops.SetGenstampV2
    | ops.AllocateBlockId
)
PathOp = ops.Mkdir | ops.Delete | ops.RenameOld | ops.Rename | ops.Symlink
AttributeOp = (
    ops.SetPermissions
    | ops.SetOwner
    | ops.Times
    | ops.SetQuota
    | ops.SetNsQuota
    | ops.ClearNsQuota
    | ops.SetQuotaByStorageType
    | ops.SetAcl
    | ops.SetXAttr
    | ops.RemoveXAttr
    | ops.SetStoragePolicy
)
AdminOp = (
    SecretsOp
    | CacheOp
    | EcOp
    | ops.RollingUpgradeStart
    | ops.RollingUpgradeFinalize
    | ops.StartLogSegment
    | ops.EndLogSegment
)


class Family(Enum):
    """A group of edits that one method applies."""

    FILE = auto()
    PATH = auto()
    ATTRIBUTE = auto()
    SNAPSHOT = auto()
    ADMIN = auto()


FAMILY_OF: Final[dict[type[Op], Family]] = {
    **dict.fromkeys(get_args(FileOp), Family.FILE),
    **dict.fromkeys(get_args(PathOp), Family.PATH),
    **dict.fromkeys(get_args(AttributeOp), Family.ATTRIBUTE),
    **dict.fromkeys(get_args(SnapshotOp), Family.SNAPSHOT),
    **dict.fromkeys(get_args(AdminOp), Family.ADMIN),
}

"""The namespace as a state machine: edits go in, in order, and the tree changes; nothing else.

The same code replays a log at start-up, follows it on a standby and applies what the active just
logged, so that the three cannot differ.  Semantics are those of Hadoop's FSEditLogLoader
(docs/reference/namenode.md#replay).
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, assert_never, cast, get_args

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.namespace import admin, attributes, files, paths, state
from namenode_sim.namespace.admin import CacheOp, EcOp, SecretsOp
from namenode_sim.namespace.changes import BlockChange, BlockIdGiven, BlockWatch, StampGiven
from namenode_sim.namespace.errors import ApplyError, TxIdOutOfOrder
from namenode_sim.namespace.inode import QUOTA_DONT_SET, QUOTA_RESET, INodeDirectory
from namenode_sim.namespace.retry_cache import (
    DONE,
    CachedAnswer,
    DirectiveAdded,
    Opened,
    RetryCache,
    SnapshotTaken,
)
from namenode_sim.namespace.snapshots import snapshots
from namenode_sim.namespace.snapshots.snapshots import SnapshotOp
from namenode_sim.namespace.tree import Tree, new_root

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


DEFAULT_REPLICATION_LIMITS = (1, 512)
"""The defaults of dfs.namenode.replication.min and dfs.replication.max.  What a client may ask for
is checked before; a replay comes to the same result everywhere, also without a configuration."""


class Namespace:
    """A whole file system's metadata as of one transaction.  Pure: no I/O, no clock.

    The image reader makes one, fills ``tree``, ``counters`` and the rest, and sets
    ``last_applied``; ``apply`` takes it from there.
    """

    __slots__ = (
        "cache",
        "counters",
        "ec_policies",
        "follower",
        "last_applied",
        "replication_limits",
        "retry_cache",
        "rolling_upgrade_start",
        "secrets",
        "snapshots",
        "tree",
        "unknown_fields",
    )

    def __init__(
        self,
        root: INodeDirectory,
        *,
        replication_limits: tuple[int, int] = DEFAULT_REPLICATION_LIMITS,
    ) -> None:
        self.tree = Tree(root)
        self.counters = state.Counters()
        self.secrets = state.Secrets()
        self.cache = state.CacheState()
        self.ec_policies = state.system_ec_policies()
        self.snapshots = state.Snapshots()
        self.rolling_upgrade_start: int | None = None
        self.replication_limits = replication_limits
        self.retry_cache = RetryCache()
        self.unknown_fields: dict[tuple[str, int | str], bytes] = {}
        """Messages of the loaded image with fields of a newer Hadoop, for the next save."""
        self.last_applied = TxId(0)
        self.follower: Callable[[TxId, tuple[BlockChange, ...]], None] | None = None
        """Called with each edit's changes of blocks, in the turn that applies it."""

    @classmethod
    def empty(cls, user: str, group: str = "supergroup") -> "Namespace":
        """Return a newly formatted file system: a root that ``user`` owns, and no edit yet."""
        return cls(new_root(user, group))

    def watch_blocks(self) -> None:
        """Report from now on, for each edit, what it changes about blocks."""
        self.tree.watch = BlockWatch()

    def apply(self, txid: TxId, op: Op) -> tuple[BlockChange, ...]:
        """Apply the next edit; returns what it changes about blocks, if they are watched.

        Raises TxIdOutOfOrder unless ``txid`` is the one after ``last_applied``, and ApplyError if
        the edit contradicts the tree; after the latter the namespace is not to be used any more.
        """
        if txid != self.last_applied + 1:
            raise TxIdOutOfOrder(self.last_applied + 1, txid)
        try:
            self._apply(op)
        except ApplyError as error:
            raise type(error)(f"transaction {txid}, {type(op).__name__}: {error}") from error
        self.last_applied = txid
        self.tree.usage.settle(self.tree.inodes)
        watch = self.tree.watch
        if watch is None:
            return ()
        changes = watch.take(self.tree.inodes)
        if self.follower is not None:
            self.follower(txid, changes)
        return changes

    def _apply(self, op: Op) -> None:
        """Dispatch by the family of the edit; each family's method knows its members."""
        match FAMILY_OF[type(op)]:
            case Family.FILE:
                self._apply_file(cast(FileOp, op))
            case Family.PATH:
                self._apply_path(cast(PathOp, op))
            case Family.ATTRIBUTE:
                self._apply_attribute(cast(AttributeOp, op))
            case Family.SNAPSHOT:
                self._apply_snapshot(cast(SnapshotOp, op))
            case Family.ADMIN:
                self._apply_admin(cast(AdminOp, op))

    def _apply_snapshot(self, op: SnapshotOp) -> None:
        snapshots.apply_snapshot(self.tree, self.snapshots, op)
        match op:
            case ops.CreateSnapshot():
                taken = SnapshotTaken(op.snapshot_root, op.snapshot_name)
                self.retry_cache.remember(op.rpc, taken)
            case ops.DeleteSnapshot() | ops.RenameSnapshot():
                self.retry_cache.remember(op.rpc, DONE)
            case ops.AllowSnapshot() | ops.DisallowSnapshot():
                pass  # calls that may be repeated
            case _:
                assert_never(op)

    def _apply_file(self, op: FileOp) -> None:  # noqa: C901, PLR0912 - flat dispatch
        tree, counters = self.tree, self.counters
        match op:
            case ops.Add():
                file = files.add(
                    tree, self.snapshots, op, self._inode_id(op), self.replication_limits
                )
                self.retry_cache.remember(op.rpc, Opened(file))
            case ops.Append():
                self.retry_cache.remember(op.rpc, Opened(files.append(tree, op)))
            case ops.Close():
                files.close(tree, op)
            case ops.AddBlock():
                files.add_block(tree, op)
            case ops.UpdateBlocks():
                files.update_blocks(tree, tree.file(op.path), op)
                self.retry_cache.remember(op.rpc, DONE)
            case ops.Truncate():
                files.truncate(tree, op)
            case ops.ConcatDelete():
                files.concat(tree, op)
                self.retry_cache.remember(op.rpc, DONE)
            case ops.SetReplication():
                files.set_replication(tree, op, self.replication_limits)
            case ops.ReassignLease():
                files.reassign_lease(tree, op)
            case ops.SetGenstampV1():
                counters.generation_stamp_v1 = op.generation_stamp
            case ops.SetGenstampV2():
                counters.generation_stamp_v2 = op.generation_stamp
                if tree.watch is not None:
                    tree.watch.tell(StampGiven(op.generation_stamp))
            case ops.AllocateBlockId():
                counters.allocate_block_id(op.block_id)
                if tree.watch is not None:
                    tree.watch.tell(BlockIdGiven(op.block_id))
            case _:
                assert_never(op)

    def _apply_path(self, op: PathOp) -> None:
        match op:
            case ops.Mkdir():
                paths.mkdir(self.tree, op, self._inode_id(op))
                return
            case ops.Delete():
                paths.delete(self.tree, self.snapshots, op)
            case ops.RenameOld():
                paths.rename_old(self.tree, self.snapshots, op)
            case ops.Rename():
                paths.rename(self.tree, self.snapshots, op)
            case ops.Symlink():
                paths.symlink(self.tree, op, self._inode_id(op))
            case _:
                assert_never(op)
        self.retry_cache.remember(op.rpc, DONE)

    def _apply_attribute(self, op: AttributeOp) -> None:  # noqa: C901 - flat dispatch
        tree = self.tree
        match op:
            case ops.SetPermissions():
                attributes.set_permissions(tree, op)
            case ops.SetOwner():
                attributes.set_owner(tree, op)
            case ops.Times():
                attributes.times(tree, op, self.snapshots.rules)
            case ops.SetQuota():
                attributes.set_quota(tree, op.path, op.ns_quota, op.ds_quota)
            case ops.SetNsQuota():
                attributes.set_quota(tree, op.path, op.ns_quota, QUOTA_DONT_SET)
            case ops.ClearNsQuota():
                attributes.set_quota(tree, op.path, QUOTA_RESET, QUOTA_DONT_SET)
            case ops.SetQuotaByStorageType():
                attributes.set_quota_by_type(tree, op)
            case ops.SetAcl():
                attributes.set_acl(tree, op)
            case ops.SetXAttr():
                attributes.set_xattrs(tree, op.path, op.xattrs)
                self.retry_cache.remember(op.rpc, DONE)
            case ops.RemoveXAttr():
                attributes.remove_xattrs(tree, op.path, op.xattrs)
                self.retry_cache.remember(op.rpc, DONE)
            case ops.SetStoragePolicy():
                attributes.set_storage_policy(tree, op)
            case _:
                assert_never(op)

    def _apply_admin(self, op: AdminOp) -> None:
        if isinstance(op, SecretsOp):
            admin.apply_secrets(self.secrets, op)
        elif isinstance(op, CacheOp):
            admin.apply_cache(self.cache, op)
            answer: CachedAnswer | DirectiveAdded = DONE
            if isinstance(op, ops.AddCacheDirective):
                answer = DirectiveAdded(op.directive.id)
            self.retry_cache.remember(op.rpc, answer)
        elif isinstance(op, EcOp):
            admin.apply_erasure_coding(self.ec_policies, op)
            self.retry_cache.remember(op.rpc, DONE)
        elif isinstance(op, ops.RollingUpgradeStart):
            self.rolling_upgrade_start = op.start_time
        elif isinstance(op, ops.RollingUpgradeFinalize):
            self.rolling_upgrade_start = None
        elif not isinstance(op, ops.StartLogSegment | ops.EndLogSegment):
            assert_never(op)

    def _inode_id(self, op: ops.Add | ops.Mkdir | ops.Symlink) -> int:
        """Return the new inode's id; 0, from logs older than inode ids, takes the next one."""
        number = op.inode_id or self.counters.last_inode_id + 1
        self.counters.last_inode_id = max(self.counters.last_inode_id, number)
        return number

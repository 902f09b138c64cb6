"""Counting what is below a path: getContentSummary and getQuotaUsage."""

from collections.abc import Iterator

from ha.record import dataclass, field
from hadoop.longs import unsigned
from hadoop.proto.hdfs_types_pb2 import (
    ContentSummaryProto,
    QuotaUsageProto,
    StorageTypeProto,
    StorageTypeQuotaInfosProto,
)
from namenode_sim.client_protocol.words import quotas
from namenode_sim.client_protocol.words.model import Caller
from namenode_sim.client_protocol.words.permissions import EXECUTE, READ, check_directory
from namenode_sim.edits.values import StorageType
from namenode_sim.namespace import inode
from namenode_sim.namespace.snapshots.held import only_in_snapshots
from namenode_sim.namespace.snapshots.view import SnapshotView
from namenode_sim.namespace.usage import Use, effective_policy_id, use_of_file

STEP = 5000
"""Inodes to count before others get their turn (dfs.content-summary.limit)."""


@dataclass(slots=True)
class ContentCounts:
    """What was counted so far; a directory counts itself.

    What only snapshots have counts as well, and ``in_snapshots`` counts that alone.  ``use`` is
    what counts for quotas of space.
    """

    files: int = 0
    directories: int = 0
    length: int = 0
    use: Use = field(default_factory=Use)
    in_snapshots: "ContentCounts | None" = None

    def add(self, node: inode.INode, policy_id: int) -> None:
        if isinstance(node, inode.INodeDirectory):
            self.directories += 1
            return
        self.files += 1
        if isinstance(node, inode.INodeFile):
            self.length += node.length()
            self.use.add(use_of_file(node, policy_id))


def counting(
    caller: Caller, top: inode.INode | SnapshotView, counts: ContentCounts
) -> Iterator[None]:
    """Count a subtree into ``counts``; yield every STEP inodes, where the tree may change.

    Raises:
        FsError: if the caller may not list one of the directories.
    """
    nodes = (
        (sight.node for sight in top.subtree())
        if isinstance(top, SnapshotView)
        else inode.subtree(top)
    )
    parent, policy_id = None, 0
    for number, node in enumerate(nodes, start=1):
        if isinstance(node, inode.INodeDirectory) and not caller.exempt:
            check_directory(caller, node, READ | EXECUTE)
        if node.parent is not parent:
            parent, policy_id = node.parent, effective_policy_id(node.parent)
        counts.add(node, policy_id)
        for gone in only_in_snapshots(node):
            counts.in_snapshots = counts.in_snapshots or ContentCounts()
            for one in (counts, counts.in_snapshots):
                one.add(gone, effective_policy_id(gone.parent))
        if number % STEP == 0:
            yield
            parent, policy_id = None, 0


def content_summary(node: inode.INode, counts: ContentCounts) -> ContentSummaryProto:
    """Return the answer to getContentSummary; "no quota" travels as 2^64-1."""
    limits = quotas_of(node)
    replicated = isinstance(node, inode.INodeFile) and node.block_type != inode.STRIPED
    gone = counts.in_snapshots or ContentCounts()
    return ContentSummaryProto(
        typeQuotaInfos=_by_type(limits, counts.use),
        length=counts.length,
        fileCount=counts.files,
        directoryCount=counts.directories,
        quota=unsigned(limits.namespace),
        spaceConsumed=counts.use.space(),
        spaceQuota=unsigned(limits.space),
        snapshotLength=gone.length,
        snapshotFileCount=gone.files,
        snapshotDirectoryCount=gone.directories,
        snapshotSpaceConsumed=gone.use.space(),
        erasureCodingPolicy="Replicated" if replicated else "",
    )


def quota_usage(node: inode.INode, counts: ContentCounts) -> QuotaUsageProto:
    limits = quotas_of(node)
    return QuotaUsageProto(
        typeQuotaInfos=_by_type(limits, counts.use),
        fileAndDirectoryCount=counts.files + counts.directories,
        quota=unsigned(limits.namespace),
        spaceConsumed=counts.use.space(),
        spaceQuota=unsigned(limits.space),
    )


def _by_type(limits: inode.Quotas, use: Use) -> StorageTypeQuotaInfosProto | None:
    """Return each type of storage that has a quota or is used; None if there is none.

    RAM_DISK may have no quota, and is left out (PBHelperClient.getBuilder).
    """
    consumed, limited = quotas.by_type(use), dict(limits.by_type)
    infos = StorageTypeQuotaInfosProto()
    for kind in StorageType:
        if kind is not StorageType.RAM_DISK and (kind in limited or consumed[kind]):
            quota = limited.get(kind, inode.QUOTA_RESET)
            number = StorageTypeProto.Value(kind.name)
            infos.typeQuotaInfo.add(type=number, quota=unsigned(quota), consumed=consumed[kind])
    return infos if infos.typeQuotaInfo else None


def quotas_of(node: inode.INode) -> inode.Quotas:
    """Return a directory's quotas; none for anything else."""
    if isinstance(node, inode.INodeDirectory):
        return node.quotas
    return inode.Quotas(inode.QUOTA_RESET, inode.QUOTA_RESET)

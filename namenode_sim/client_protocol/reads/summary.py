"""Counting what is below a path: getContentSummary and getQuotaUsage."""

from collections.abc import Iterator
from dataclasses import dataclass

from hadoop.proto.hdfs_types_pb2 import (
    ContentSummaryProto,
    QuotaUsageProto,
    StorageTypeProto,
    StorageTypeQuotaInfosProto,
)
from namenode_sim.client_protocol.words.model import Caller
from namenode_sim.client_protocol.words.permissions import EXECUTE, READ, check_directory
from namenode_sim.edits.values import StorageType
from namenode_sim.namespace import inode
from namenode_sim.namespace.snapshots.held import only_in_snapshots
from namenode_sim.namespace.snapshots.view import SnapshotView

STEP = 5000
"""Inodes to count before others get their turn (dfs.content-summary.limit)."""

_U64 = 2**64


@dataclass(slots=True)
class ContentCounts:
    """What was counted so far; a directory counts itself.

    What only snapshots have counts as well, and ``in_snapshots`` counts that alone.
    """

    files: int = 0
    directories: int = 0
    length: int = 0
    space: int = 0
    in_snapshots: "ContentCounts | None" = None

    def add(self, node: inode.INode) -> None:
        if isinstance(node, inode.INodeDirectory):
            self.directories += 1
            return
        self.files += 1
        if isinstance(node, inode.INodeFile):
            length = node.length()
            self.length += length
            self.space += length * node.replication


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
    for number, node in enumerate(nodes, start=1):
        if isinstance(node, inode.INodeDirectory) and not caller.exempt:
            check_directory(caller, node, READ | EXECUTE)
        counts.add(node)
        for gone in only_in_snapshots(node):
            counts.add(gone)
            counts.in_snapshots = counts.in_snapshots or ContentCounts()
            counts.in_snapshots.add(gone)
        if number % STEP == 0:
            yield


def content_summary(node: inode.INode, counts: ContentCounts) -> ContentSummaryProto:
    """Return the answer to getContentSummary; "no quota" travels as 2^64-1."""
    quotas = quotas_of(node)
    replicated = isinstance(node, inode.INodeFile) and node.block_type != inode.STRIPED
    gone = counts.in_snapshots or ContentCounts()
    return ContentSummaryProto(
        typeQuotaInfos=_by_type(quotas),
        length=counts.length,
        fileCount=counts.files,
        directoryCount=counts.directories,
        quota=quotas.namespace % _U64,
        spaceConsumed=counts.space,
        spaceQuota=quotas.space % _U64,
        snapshotLength=gone.length,
        snapshotFileCount=gone.files,
        snapshotDirectoryCount=gone.directories,
        snapshotSpaceConsumed=gone.space,
        erasureCodingPolicy="Replicated" if replicated else "",
    )


def quota_usage(node: inode.INode, counts: ContentCounts) -> QuotaUsageProto:
    quotas = quotas_of(node)
    return QuotaUsageProto(
        typeQuotaInfos=_by_type(quotas),
        fileAndDirectoryCount=counts.files + counts.directories,
        quota=quotas.namespace % _U64,
        spaceConsumed=counts.space,
        spaceQuota=quotas.space % _U64,
    )


def _by_type(quotas: inode.Quotas) -> StorageTypeQuotaInfosProto | None:
    """Return the quotas by type of storage, without what is used of them; None if there is none."""
    if not quotas.by_type:
        return None
    infos = StorageTypeQuotaInfosProto()
    for kind, quota in quotas.by_type:
        number = StorageTypeProto.Value(StorageType(kind).name)
        infos.typeQuotaInfo.add(type=number, quota=quota, consumed=0)
    return infos


def quotas_of(node: inode.INode) -> inode.Quotas:
    """Return a directory's quotas; none for anything else."""
    if isinstance(node, inode.INodeDirectory):
        return node.quotas
    return inode.Quotas(inode.QUOTA_RESET, inode.QUOTA_RESET)

"""Counting what is below a path: getContentSummary and getQuotaUsage."""

from collections.abc import Iterator
from dataclasses import dataclass

from namenode_sim.client_protocol.model import Caller
from namenode_sim.client_protocol.permissions import EXECUTE, READ, check_directory
from namenode_sim.inode import QUOTA_RESET, INode, INodeDirectory, INodeFile, Quotas, subtree
from namenode_sim.proto.hdfs_types_pb2 import ContentSummaryProto, QuotaUsageProto

STEP = 5000
"""Inodes to count before others get their turn (dfs.content-summary.limit)."""

_U64 = 2**64


@dataclass(slots=True)
class Counts:
    """What was counted so far; a directory counts itself."""

    files: int = 0
    directories: int = 0
    length: int = 0
    space: int = 0


def counting(caller: Caller, top: INode, counts: Counts) -> Iterator[None]:
    """Count a subtree into ``counts``; yields every STEP inodes, where the tree may change.

    Raises:
        FsError: if the caller may not list one of the directories.
    """
    for number, node in enumerate(subtree(top), start=1):
        if isinstance(node, INodeDirectory):
            if not caller.is_super:
                check_directory(caller, node, READ | EXECUTE)
            counts.directories += 1
        else:
            counts.files += 1
            if isinstance(node, INodeFile):
                length = node.length()
                counts.length += length
                counts.space += length * node.replication
        if number % STEP == 0:
            yield


def content_summary(node: INode, counts: Counts) -> ContentSummaryProto:
    """The answer to getContentSummary; "no quota" travels as 2^64-1."""
    quotas = quotas_of(node)
    return ContentSummaryProto(
        length=counts.length,
        fileCount=counts.files,
        directoryCount=counts.directories,
        quota=quotas.namespace % _U64,
        spaceConsumed=counts.space,
        spaceQuota=quotas.space % _U64,
        snapshotLength=0,
        snapshotFileCount=0,
        snapshotDirectoryCount=0,
        snapshotSpaceConsumed=0,
        erasureCodingPolicy="",
    )


def quota_usage(node: INode, counts: Counts) -> QuotaUsageProto:
    """The answer to getQuotaUsage."""
    quotas = quotas_of(node)
    return QuotaUsageProto(
        fileAndDirectoryCount=counts.files + counts.directories,
        quota=quotas.namespace % _U64,
        spaceConsumed=counts.space,
        spaceQuota=quotas.space % _U64,
    )


def quotas_of(node: INode) -> Quotas:
    """A directory's quotas; none for anything else."""
    if isinstance(node, INodeDirectory):
        return node.quotas
    return Quotas(QUOTA_RESET, QUOTA_RESET)

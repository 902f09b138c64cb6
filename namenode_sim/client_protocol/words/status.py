"""Inodes as clients see them: HdfsFileStatus and what goes into it."""

from hadoop.proto import hdfs_types_pb2
from namenode_sim.edits.values import XAttrNamespace
from namenode_sim.namespace.file_numbers import PACKED_HEAD
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, INodeSymlink
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.view import view_root
from namenode_sim.namespace.state import ErasureCodingPolicy, Snapshot
from namenode_sim.namespace.usage import effective_policy_id

_HAS_ACL = hdfs_types_pb2.HdfsFileStatusProto.HAS_ACL
_HAS_EC = hdfs_types_pb2.HdfsFileStatusProto.HAS_EC
_SNAPSHOT_ENABLED = hdfs_types_pb2.HdfsFileStatusProto.SNAPSHOT_ENABLED
_EC_XATTR = "hdfs.erasurecoding.policy"
_NO_ID = 2**64 - 1  # Java's -1
_EC_NAME_OFFSET = 4  # the xattr's value is a Java text with a 4-byte length


def status_of(
    namespace: Namespace, node: INode, name: bytes = b""
) -> hdfs_types_pb2.HdfsFileStatusProto:
    """Return an inode's status.  ``name`` is empty where the client knows the path."""
    status = hdfs_types_pb2.HdfsFileStatusProto(
        path=name,
        length=0,
        permission=hdfs_types_pb2.FsPermissionProto(perm=node.mode),
        owner=node.user,
        group=node.group,
        modification_time=node.mtime,
        access_time=0,
        fileId=node.id,
        fileType=hdfs_types_pb2.HdfsFileStatusProto.IS_DIR,
        childrenNum=0,  # a client takes -1 for one that is not there
    )
    flags = 0
    match node:
        case INodeDirectory():
            status.access_time = node.atime
            status.childrenNum = len(node.children)
            if _is_snapshottable(namespace, node):
                flags |= _SNAPSHOT_ENABLED
        case INodeFile():
            status.fileType = hdfs_types_pb2.HdfsFileStatusProto.IS_FILE
            status.length = node.length()
            status.access_time = node.atime
            status.block_replication = node.replication
            status.blocksize = node.preferred_block_size
        case INodeSymlink():
            status.fileType = hdfs_types_pb2.HdfsFileStatusProto.IS_SYMLINK
            status.access_time = node.atime
            status.symlink = node.target
            return status
    status.storagePolicy = effective_policy_id(_live(namespace, node))
    if node.acl:
        flags |= _HAS_ACL
    policy = erasure_coding_of(namespace, node)
    if policy is not None:
        flags |= _HAS_EC
        status.ecPolicy.CopyFrom(ec_policy_proto(policy))
    if flags:
        status.flags = flags
    return status


def fill_in_numbers(
    status: hdfs_types_pb2.HdfsFileStatusProto, node: INodeFile, name: bytes
) -> None:
    """Make of a file's status that of another one, with the same traits and parent."""
    number, mtime, atime = PACKED_HEAD.unpack_from(node.numbers)
    status.path, status.fileId = name, number
    status.length, status.modification_time, status.access_time = node.length(), mtime, atime


def _is_snapshottable(namespace: Namespace, node: INodeDirectory) -> bool:
    """Return whether Hadoop calls a directory so: the root always, whose quota of them is 0."""
    if node is namespace.tree.root:
        return True
    return node.history is not None and node.history.snapshottable


def snapshot_root_status(
    namespace: Namespace, directory: INodeDirectory, snapshot: Snapshot
) -> hdfs_types_pb2.HdfsFileStatusProto:
    """Return the status of a snapshot as an entry of its directory's ``.snapshot``."""
    return status_of(namespace, view_root(directory, snapshot).node, snapshot.root.name)


def dot_snapshot_status() -> hdfs_types_pb2.HdfsFileStatusProto:
    """Return Hadoop's status of any ``.snapshot`` (FSDirectory.DOT_SNAPSHOT_DIR_STATUS)."""
    return _without_inode(0o777)


def reserved_status() -> hdfs_types_pb2.HdfsFileStatusProto:
    """Return Hadoop's status of ``/.reserved`` (FSDirectory.DOT_RESERVED_STATUS)."""
    return _without_inode(0o1770)


def reserved_entries(group: str) -> list[hdfs_types_pb2.HdfsFileStatusProto]:
    """Return what ``/.reserved`` lists; what the first of them has can only be named."""
    return [_without_inode(0o770, name, group) for name in (b".inodes", b"raw")]


def _without_inode(
    mode: int, name: bytes = b"", group: str = ""
) -> hdfs_types_pb2.HdfsFileStatusProto:
    return hdfs_types_pb2.HdfsFileStatusProto(
        path=name,
        length=0,
        permission=hdfs_types_pb2.FsPermissionProto(perm=mode),
        owner="",
        group=group,
        modification_time=0,
        access_time=0,
        fileId=_NO_ID,
        fileType=hdfs_types_pb2.HdfsFileStatusProto.IS_DIR,
        childrenNum=0,
    )


def erasure_coding_of(namespace: Namespace, node: INode) -> ErasureCodingPolicy | None:
    """Return the erasure coding policy of a file, or that of new files in a directory."""
    if isinstance(node, INodeFile):
        return namespace.ec_policies.get(node.ec_policy_id)  # no policy has a replicated file's 0
    step: INode | None = node
    while isinstance(step, INodeDirectory):
        for xattr in step.xattrs or ():
            if xattr.namespace == XAttrNamespace.SYSTEM and xattr.name == _EC_XATTR:
                name = (xattr.value or b"")[_EC_NAME_OFFSET:].decode("utf-8", "replace")
                return _by_name(namespace, name)
        step = _live(namespace, step).parent
    return None


def _live(namespace: Namespace, node: INode) -> INode:
    """Return the inode behind a copy that a look into a snapshot gave; any other one itself.

    The copy is linked to nothing, but what is set on directories above counts for it as for the
    inode as it is now (INode.getStoragePolicyID).  An inode with a parent needs no look-up; one
    that a repeated call made, and that is gone since, has none.
    """
    return node if node.parent is not None else namespace.tree.inodes.get(node.id) or node


def _by_name(namespace: Namespace, name: str) -> ErasureCodingPolicy | None:
    return next((p for p in namespace.ec_policies.values() if p.name == name), None)


def ec_policy_proto(known: ErasureCodingPolicy) -> hdfs_types_pb2.ErasureCodingPolicyProto:
    policy = known.policy
    options = [
        hdfs_types_pb2.ECSchemaOptionEntryProto(key=key, value=value)
        for key, value in policy.options
    ]
    return hdfs_types_pb2.ErasureCodingPolicyProto(
        id=known.id,
        name=known.name,
        schema=hdfs_types_pb2.ECSchemaProto(
            codecName=policy.codec,
            dataUnits=policy.data_units,
            parityUnits=policy.parity_units,
            options=options,
        ),
        cellSize=policy.cell_size,
        state=hdfs_types_pb2.ErasureCodingPolicyState.ValueType(int(known.state)),
    )

"""An image as the document that Hadoop 2's viewer prints, where it differs from Hadoop 3's.

It knows fewer fields.  Extended attributes, ACLs and type quotas, which only the last releases of
Hadoop 2 print, are printed here where an inode has some: to leave them out would hide them.
"""

from collections.abc import Callable, Iterator
from typing import Final

from namenode_sim.client_protocol.words.permissions import symbolic
from namenode_sim.image.container import next_message
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.oiv import hadoop3
from namenode_sim.oiv.elements import Element, SectionView
from namenode_sim.oiv.hadoop3 import directive_fields, pool_fields
from namenode_sim.oiv.inode_elements import Reading, inode_fields

Elements = Iterator[Element]
Messages = Iterator[bytes]


def _inode(inode: pb.INode, reading: Reading) -> Elements:
    for tag, content in inode_fields(inode, reading):
        if tag == "permission":
            user, group, mode = reading.strings.owner(_permission_of(inode))
            yield tag, f"{user}:{group}:{symbolic(mode)}"
        elif tag not in _NEW_FIELDS:
            yield _OLD_NAMES.get(tag, tag), content


_NEW_FIELDS: Final = frozenset(("storagePolicyId", "blockType", "erasureCodingPolicyId"))
_OLD_NAMES: Final = {"preferredBlockSize": "perferredBlockSize"}
"""The misspelling is Hadoop's."""


def _permission_of(inode: pb.INode) -> int:
    if inode.HasField("file"):
        return inode.file.permission
    if inode.HasField("directory"):
        return inode.directory.permission
    return inode.symlink.permission


def view(name: str, found: Messages, reading: Reading) -> SectionView | None:
    """Return a section of the image for the document; None if that viewer does not show it."""
    if name == "ERASURE_CODING":
        return None
    newer = hadoop3.view(name, found, reading)
    if newer is None or name not in _SECTIONS:
        return newer
    opening = "\n" if name == "NS_INFO" else ""
    return SectionView(newer.name, _SECTIONS[name](found, reading), opening, newer.closing)


def _name_section(found: Messages, _reading: Reading) -> Elements:
    message = pb.NameSystemSection.FromString(next_message(found))
    yield "genstampV1", message.genstampV1
    yield "genstampV2", message.genstampV2
    yield "genstampV1Limit", message.genstampV1Limit
    yield "lastAllocatedBlockId", message.lastAllocatedBlockId
    yield "txid", message.transactionId


def _inodes(found: Messages, reading: Reading) -> Elements:
    header = pb.INodeSection.FromString(next_message(found))
    yield "lastInodeId", header.lastInodeId
    for _ in range(header.numInodes):
        yield "inode", list(_inode(pb.INode.FromString(next_message(found)), reading))


def _directories(found: Messages, _reading: Reading) -> Elements:
    for raw in found:
        entry = pb.DirEntry.FromString(raw)
        content: list[Element] = [("parent", entry.parent)]
        content += [("inode", number) for number in entry.children]
        content += [("inodereference-index", index) for index in entry.refChildren]
        yield "directory", content


def _snapshots(found: Messages, _reading: Reading) -> Elements:
    header = pb.SnapshotSection.FromString(next_message(found))
    yield "snapshotCounter", header.snapshotCounter
    if header.snapshottableDir:
        yield "snapshottableDir", [("dir", number) for number in header.snapshottableDir]
    for _ in range(header.numSnapshots):
        yield "snapshot", pb.Snapshot.FromString(next_message(found)).snapshotId


def _diffs(found: Messages, reading: Reading) -> Elements:
    for raw in found:
        entry = pb.DiffEntry.FromString(raw)
        content: list[Element] = [("inodeid", entry.inodeId)]
        for _ in range(entry.numOfDiff):
            if entry.type == pb.DiffEntry.FILEDIFF:
                content.append(("filediff", list(_file_diff(found, reading))))
            else:
                content.append(("dirdiff", list(_directory_diff(found, reading))))
        yield "diff", content


def _file_diff(found: Messages, reading: Reading) -> Elements:
    diff = pb.FileDiff.FromString(next_message(found))
    yield "snapshotId", diff.snapshotId
    yield "size", diff.fileSize
    yield "name", reading.text(diff.name)


def _directory_diff(found: Messages, reading: Reading) -> Elements:
    diff = pb.DirectoryDiff.FromString(next_message(found))
    yield "snapshotId", diff.snapshotId
    yield "isSnapshotroot", str(diff.isSnapshotRoot).lower()
    yield "childrenSize", diff.childrenSize
    yield "name", reading.text(diff.name)
    for _ in range(diff.createdListSize):
        created = pb.CreatedListEntry.FromString(next_message(found))
        yield "created", [("name", reading.text(created.name))]
    for number in diff.deletedINode:
        yield "deleted", [("inode", number)]
    for index in diff.deletedINodeRef:
        yield "deleted", [("inodereference-index", index)]


def _secrets(found: Messages, _reading: Reading) -> Elements:
    header = pb.SecretManagerSection.FromString(next_message(found))
    yield "currentId", header.currentId
    yield "tokenSequenceNumber", header.tokenSequenceNumber
    for _ in range(header.numKeys + header.numTokens):
        next_message(found)


def _cache(found: Messages, _reading: Reading) -> Elements:
    header = pb.CacheManagerSection.FromString(next_message(found))
    yield "nextDirectiveId", header.nextDirectiveId
    for _ in range(header.numPools):
        yield "pool", list(pool_fields(pb.CachePoolInfo.FromString(next_message(found))))
    for _ in range(header.numDirectives):
        directive = pb.CacheDirectiveInfo.FromString(next_message(found))
        yield "directive", list(directive_fields(directive, "relatilve"))


_SECTIONS: Final[dict[str, Callable[[Messages, Reading], Elements]]] = {
    "NS_INFO": _name_section,
    "INODE": _inodes,
    "INODE_DIR": _directories,
    "SNAPSHOT": _snapshots,
    "SNAPSHOT_DIFF": _diffs,
    "SECRET_MANAGER": _secrets,
    "CACHE_MANAGER": _cache,
}

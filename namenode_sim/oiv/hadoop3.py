"""An image as the document that Hadoop 3's viewer prints (PBImageXmlWriter)."""

from collections.abc import Callable, Iterator
from typing import Final

from hadoop.longs import signed
from namenode_sim.image.admin_sections import ec_policy
from namenode_sim.image.container import next_message
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.oiv import inode_elements
from namenode_sim.oiv.elements import Element, SectionView
from namenode_sim.oiv.values import utc_date

Elements = Iterator[Element]
Messages = Iterator[bytes]


def version_view(layout: int, on_disk: int, revision: str) -> SectionView:
    """Return what stands before the sections."""
    elements: list[Element] = [
        ("layoutVersion", layout),
        ("onDiskVersion", on_disk),
        ("oivRevision", revision),
    ]
    return SectionView("version", elements)


def view(name: str, found: Messages, reading: inode_elements.Reading) -> SectionView | None:
    """Return a section of the image for the document; None if the viewer does not show it."""
    if name not in _SECTIONS:
        return None
    title, elements, closing = _SECTIONS[name]
    if name == "ERASURE_CODING":
        return SectionView(title, elements(found, reading), "\n", closing, optional=True)
    return SectionView(title, elements(found, reading), closing=closing)


def _name_section(found: Messages, _reading: inode_elements.Reading) -> Elements:
    message = pb.NameSystemSection.FromString(next_message(found))
    yield "namespaceId", message.namespaceId
    yield "genstampV1", message.genstampV1
    yield "genstampV2", message.genstampV2
    yield "genstampV1Limit", message.genstampV1Limit
    yield "lastAllocatedBlockId", message.lastAllocatedBlockId
    yield "txid", message.transactionId


def _erasure_coding(found: Messages, _reading: inode_elements.Reading) -> Elements:
    for policy in pb.ErasureCodingSection.FromString(next_message(found)).policies:
        known = ec_policy(policy)
        schema: list[Element] = [
            ("codecName", known.policy.codec),
            ("dataUnits", known.policy.data_units),
            ("parityUnits", known.policy.parity_units),
        ]
        if known.policy.options:
            schema.append((
                "extraOptions",
                [("option", [("key", k), ("value", v)]) for k, v in known.policy.options],
            ))  # fmt: skip
        yield (
            "erasureCodingPolicy",
            [
                ("policyId", known.id),
                ("policyName", known.name),
                ("cellSize", known.policy.cell_size),
                ("policyState", known.state.name),
                ("ecSchema", schema),
            ],
        )


def _inodes(found: Messages, reading: inode_elements.Reading) -> Elements:
    header = pb.INodeSection.FromString(next_message(found))
    yield "lastInodeId", header.lastInodeId
    yield "numInodes", header.numInodes
    for _ in range(header.numInodes):
        inode = pb.INode.FromString(next_message(found))
        yield "inode", list(inode_elements.inode_fields(inode, reading))


def _references(found: Messages, reading: inode_elements.Reading) -> Elements:
    for raw in found:
        reference = pb.INodeReference.FromString(raw)
        yield (
            "ref",
            [
                ("referredId", reference.referredId),
                ("name", reading.text(reference.name)),
                ("dstSnapshotId", _signed32(reference.dstSnapshotId)),
                ("lastSnapshotId", _signed32(reference.lastSnapshotId)),
            ],
        )


def _signed32(number: int) -> int:
    """Return a snapshot id as Java prints it: "none" is -1."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _snapshots(found: Messages, reading: inode_elements.Reading) -> Elements:
    header = pb.SnapshotSection.FromString(next_message(found))
    yield "snapshotCounter", header.snapshotCounter
    yield "numSnapshots", header.numSnapshots
    if header.snapshottableDir:
        yield "snapshottableDir", [("dir", number) for number in header.snapshottableDir]
    for _ in range(header.numSnapshots):
        snapshot = pb.Snapshot.FromString(next_message(found))
        root = list(inode_elements.inode_fields(snapshot.root, reading))
        yield "snapshot", [("id", snapshot.snapshotId), ("root", root)]


def _directories(found: Messages, _reading: inode_elements.Reading) -> Elements:
    for raw in found:
        entry = pb.DirEntry.FromString(raw)
        content: list[Element] = [("parent", entry.parent)]
        content += [("child", number) for number in entry.children]
        content += [("refChild", index) for index in entry.refChildren]
        yield "directory", content


def _under_construction(found: Messages, _reading: inode_elements.Reading) -> Elements:
    for raw in found:
        entry = pb.FileUnderConstructionEntry.FromString(raw)
        yield "inode", [("id", entry.inodeId), ("path", entry.fullPath)]


def _diffs(found: Messages, reading: inode_elements.Reading) -> Elements:
    for raw in found:
        entry = pb.DiffEntry.FromString(raw)
        content: list[Element] = [("inodeId", entry.inodeId), ("count", entry.numOfDiff)]
        if entry.type == pb.DiffEntry.FILEDIFF:
            for _ in range(entry.numOfDiff):
                content.append(("fileDiff", list(_file_diff(found, reading))))
            yield "fileDiffEntry", content
        else:
            for _ in range(entry.numOfDiff):
                content.append(("dirDiff", list(_directory_diff(found, reading))))
            yield "dirDiffEntry", content


def _file_diff(found: Messages, reading: inode_elements.Reading) -> Elements:
    diff = pb.FileDiff.FromString(next_message(found))
    yield "snapshotId", diff.snapshotId
    yield "size", diff.fileSize
    yield "name", reading.text(diff.name)
    if diff.HasField("snapshotCopy"):
        yield "snapshotCopy", list(inode_elements.file_fields(diff.snapshotCopy, reading))
    if diff.blocks:
        yield (
            "blocks",
            [("block", list(inode_elements.block_fields(block))) for block in diff.blocks],
        )


def _directory_diff(found: Messages, reading: inode_elements.Reading) -> Elements:
    diff = pb.DirectoryDiff.FromString(next_message(found))
    yield "snapshotId", diff.snapshotId
    yield "childrenSize", diff.childrenSize
    yield "isSnapshotRoot", diff.isSnapshotRoot
    yield "name", reading.text(diff.name)
    if diff.HasField("snapshotCopy"):
        yield "snapshotCopy", list(inode_elements.directory_fields(diff.snapshotCopy, reading))
    yield "createdListSize", diff.createdListSize
    for number in diff.deletedINode:
        yield "deletedInode", number
    for index in diff.deletedINodeRef:
        yield "deletedInoderef", index
    for _ in range(diff.createdListSize):
        created = pb.CreatedListEntry.FromString(next_message(found))
        yield "created", [("name", reading.text(created.name))]


def _secrets(found: Messages, _reading: inode_elements.Reading) -> Elements:
    header = pb.SecretManagerSection.FromString(next_message(found))
    yield "currentId", header.currentId
    yield "tokenSequenceNumber", header.tokenSequenceNumber
    yield "numDelegationKeys", header.numKeys
    yield "numTokens", header.numTokens
    for _ in range(header.numKeys):
        key = pb.DelegationKey.FromString(next_message(found))
        content: list[Element] = [("id", key.id), ("key", key.key.hex())]
        if key.HasField("expiryDate"):
            content.append(("expiry", utc_date(signed(key.expiryDate))))
        yield "delegationKey", content
    for _ in range(header.numTokens):
        yield "token", list(_token(pb.PersistToken.FromString(next_message(found))))


_TOKEN_DATES: Final = frozenset(("issueDate", "maxDate", "expiryDate"))


def _token(token: pb.PersistToken) -> Elements:
    for field, value in token.ListFields():
        yield field.name, utc_date(signed(value)) if field.name in _TOKEN_DATES else value


def _cache(found: Messages, _reading: inode_elements.Reading) -> Elements:
    header = pb.CacheManagerSection.FromString(next_message(found))
    yield "nextDirectiveId", header.nextDirectiveId
    yield "numDirectives", header.numDirectives
    yield "numPools", header.numPools
    for _ in range(header.numPools):
        yield "pool", list(pool_fields(pb.CachePoolInfo.FromString(next_message(found))))
    for _ in range(header.numDirectives):
        directive = pb.CacheDirectiveInfo.FromString(next_message(found))
        yield "directive", list(directive_fields(directive, "relative"))


def pool_fields(pool: pb.CachePoolInfo) -> Elements:
    yield "poolName", pool.poolName
    yield "ownerName", pool.ownerName
    yield "groupName", pool.groupName
    yield "mode", pool.mode
    yield "limit", pool.limit
    yield "maxRelativeExpiry", pool.maxRelativeExpiry


def directive_fields(directive: pb.CacheDirectiveInfo, relative: str) -> Elements:
    """Yield a cache directive's fields; ``relative`` is the tag for a relative expiry."""
    yield "id", directive.id
    yield "path", directive.path
    yield "replication", directive.replication
    yield "pool", directive.pool
    expiration = directive.expiration
    yield "expiration", [("millis", expiration.millis), (relative, expiration.isRelative)]


_View = tuple[str, Callable[[Messages, inode_elements.Reading], Elements], str]

_SECTIONS: Final[dict[str, _View]] = {
    "NS_INFO": ("NameSection", _name_section, "\n"),
    "ERASURE_CODING": ("ErasureCodingSection", _erasure_coding, "\n\n"),
    "INODE": ("INodeSection", _inodes, "\n"),
    "INODE_REFERENCE": ("INodeReferenceSection", _references, ""),
    "SNAPSHOT": ("SnapshotSection", _snapshots, "\n"),
    "INODE_DIR": ("INodeDirectorySection", _directories, "\n"),
    "FILES_UNDERCONSTRUCTION": ("FileUnderConstructionSection", _under_construction, "\n"),
    "SNAPSHOT_DIFF": ("SnapshotDiffSection", _diffs, "\n"),
    "SECRET_MANAGER": ("SecretManagerSection", _secrets, ""),
    "CACHE_MANAGER": ("CacheManagerSection", _cache, "\n"),
}

LOAD_ORDER: Final = tuple(_SECTIONS)
"""The sections as the loader takes them, which is the order of the document."""

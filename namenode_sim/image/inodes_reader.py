"""Sections INODE and INODE_DIR to the tree (hadoop-formats 3.2)."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from namenode_sim.edits.values import AclEntry, StorageType, XAttr
from namenode_sim.image.container import next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import Strings
from namenode_sim.inode import (
    NO_QUOTAS,
    ROOT_QUOTAS,
    INode,
    INodeDirectory,
    INodeFile,
    INodeSymlink,
    Quotas,
    UnderConstruction,
)

STORAGE_TYPES: Final = {
    1: StorageType.DISK,
    2: StorageType.SSD,
    3: StorageType.ARCHIVE,
    4: StorageType.RAM_DISK,
    5: StorageType.PROVIDED,
    6: StorageType.NVDIMM,
}
"""The image's numbers for storage types; the edit log has others."""

_FILE, _DIRECTORY, _SYMLINK = pb.INode.FILE, pb.INode.DIRECTORY, pb.INode.SYMLINK
_PACK_BLOCK: Final = Struct(">Qqq").pack
"""As ``INodeFile.packed_blocks``; a negative id comes without its sign here."""
_SIGN: Final = 1 << 63
_TWO_64: Final = 1 << 64


def signed(number: int) -> int:
    """A 64-bit number that protobuf stored without its sign."""
    return number - _TWO_64 if number >= _SIGN else number


def read_inodes(section: Iterator[bytes], strings: Strings) -> tuple[int, dict[int, INode]]:
    """The last inode id given out, and all inodes by id, not linked yet.

    Raises:
        ImageError: if the section holds another number of inodes than it says, or one twice.
    """
    header = pb.INodeSection.FromString(next_message(section))
    inodes: dict[int, INode] = {}
    parse, count = pb.INode.FromString, 0
    sizes: dict[int, int] = {}
    for raw in section:
        message = parse(raw)
        inode_id = message.id
        if message.type == _FILE:
            inode: INode = read_file(inode_id, message.name, message.file, strings, sizes)
        elif message.type == _DIRECTORY:
            inode = read_directory(inode_id, message.name, message.directory, strings)
        else:
            inode = _read_symlink(message, strings)
        inodes[inode_id] = inode
        count += 1
    if count != header.numInodes or count != len(inodes):
        raise ImageError(
            f"its INODE section announces {header.numInodes} inodes and holds {count}, "
            f"{len(inodes)} of them different"
        )
    return header.lastInodeId, inodes


def read_file(
    inode_id: int, name: bytes, message: pb.INodeFile, strings: Strings, sizes: dict[int, int]
) -> INodeFile:
    """A file, linked to nothing yet.

    ``sizes`` holds one object for each block size seen: a file system has a few of them.
    """
    mtime = message.modificationTime
    atime = message.accessTime
    size = message.preferredBlockSize or 1  # as Hadoop's loader: its field begins at 1
    found = message.blocks
    if len(found) == 1:
        block = found[0]
        blocks = _PACK_BLOCK(block.blockId, block.numBytes, block.genStamp)
    else:
        blocks = b"".join([_PACK_BLOCK(b.blockId, b.numBytes, b.genStamp) for b in found])
    inode = INodeFile(
        inode_id,
        name,
        *strings.owner(message.permission),
        mtime,
        mtime if atime == mtime else atime,
        message.replication,
        sizes.setdefault(size, size),
        blocks,
    )
    if message.HasField("fileUC"):
        holder = message.fileUC
        inode.under_construction = UnderConstruction(holder.clientName, holder.clientMachine)
    if message.HasField("acl"):
        inode.acl = read_acl(message.acl, strings)
    if message.HasField("xAttrs"):
        inode.xattrs = read_xattrs(message.xAttrs, strings)
    if message.storagePolicyID:
        inode.storage_policy_id = message.storagePolicyID
    if message.blockType:
        inode.block_type = message.blockType
        inode.ec_policy_id = message.erasureCodingPolicyID
    return inode


def read_directory(
    inode_id: int, name: bytes, message: pb.INodeDirectory, strings: Strings
) -> INodeDirectory:
    """A directory without its children."""
    user, group, mode = strings.owner(message.permission)
    inode = INodeDirectory(inode_id, name, user, group, mode, message.modificationTime)
    if message.HasField("acl"):
        inode.acl = read_acl(message.acl, strings)
    if message.HasField("xAttrs"):
        inode.xattrs = read_xattrs(message.xAttrs, strings)
    inode.quotas = _read_quotas(message)
    return inode


def _read_quotas(message: pb.INodeDirectory) -> Quotas:
    namespace, space = signed(message.nsQuota), signed(message.dsQuota)
    by_type = tuple((int(STORAGE_TYPES[q.storageType]), signed(q.quota))
                    for q in message.typeQuotas.quotas)  # fmt: skip
    quotas = Quotas(namespace, space, by_type)
    for usual in (NO_QUOTAS, ROOT_QUOTAS):
        if quotas == usual:
            return usual
    return quotas


def _read_symlink(message: pb.INode, strings: Strings) -> INodeSymlink:
    link = message.symlink
    user, group, mode = strings.owner(link.permission)
    return INodeSymlink(
        message.id,
        message.name,
        user,
        group,
        mode,
        link.modificationTime,
        link.accessTime,
        link.target,
    )


def read_acl(message: pb.AclFeatureProto, strings: Strings) -> tuple[AclEntry, ...]:
    """The entries of an ACL that the mode does not hold."""
    return tuple(map(strings.acl_entry, message.entries))


def read_xattrs(message: pb.XAttrFeatureProto, strings: Strings) -> tuple[XAttr, ...]:
    """Extended attributes in their order."""
    return tuple(strings.xattr(x.name, x.value or None) for x in message.xAttrs)


def link_children(
    section: Iterator[bytes], inodes: dict[int, INode], referred: list[int]
) -> dict[int, tuple[int, ...]]:
    """Put the inodes into their directories; returns the reference indices by directory id.

    Args:
        section: the messages of INODE_DIR.
        inodes: all inodes by id.
        referred: which inode each entry of INODE_REFERENCE stands for.

    Raises:
        ImageError: if an entry names an unknown inode, a file as parent, or a name twice.
    """
    references = {}
    parse = pb.DirEntry.FromString
    for raw in section:
        entry = parse(raw)
        parent = inodes.get(entry.parent)
        if not isinstance(parent, INodeDirectory):
            raise ImageError(f"its INODE_DIR section has children of {entry.parent}, no directory")
        ids = list(entry.children)
        if entry.refChildren:
            references[parent.id] = tuple(entry.refChildren)
            ids += [referred[index] for index in entry.refChildren]
        children = parent.children
        for number in ids:
            child = inodes[number]
            if child.parent is not None:
                raise ImageError(f"inode {number} is a child of both {child.parent.id} and "
                                 f"{parent.id}")  # fmt: skip
            children[child.name] = child
            child.parent = parent
        if len(children) != len(ids):
            raise ImageError(f"directory {parent.id} has two children of one name")
    return references

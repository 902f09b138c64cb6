"""The tree to sections INODE, INODE_DIR and FILES_UNDERCONSTRUCTION (hadoop-formats 3.2)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import AclEntry, XAttr
from namenode_sim.image.errors import ImageError
from namenode_sim.image.inodes_reader import STORAGE_TYPES
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import StringNumbers
from namenode_sim.inode import (
    STRIPED,
    INode,
    INodeDirectory,
    INodeFile,
    INodeSymlink,
    full_path,
    signed_order,
)

ERASURE_CODING_LAYOUT: Final = -64
STORAGE_TYPE_NUMBERS: Final = {ordinal: number for number, ordinal in STORAGE_TYPES.items()}

_BATCH: Final = 4096
_MASK_64: Final = (1 << 64) - 1
_PREFIXES: Final = tuple(delimited(bytes(size))[: -size or None] for size in range(1024))

Write = Callable[[bytes], None]


def write_inodes(
    write: Write,
    inodes: Mapping[int, INode],
    last_inode_id: int,
    numbers: StringNumbers,
    layout: int,
) -> None:
    """INODE: a header and every inode."""
    header = pb.INodeSection(lastInodeId=last_inode_id, numInodes=len(inodes))
    write(delimited(header.SerializeToString()))
    rest = iter(inodes.values())
    while batch := list(islice(rest, _BATCH)):
        write(b"".join(_inode_batch(batch, numbers, layout)))


def _inode_batch(batch: Iterable[INode], numbers: StringNumbers, layout: int) -> Iterator[bytes]:
    """Delimited INode messages.

    Filling one message again and again is twice as fast as making a new one for each inode; its
    memory grows with every use, so it lives for one batch.
    """
    message = pb.INode(type=pb.INode.FILE)
    file = message.file
    for inode in batch:
        if (
            type(inode) is INodeFile
            and inode.under_construction is None
            and not (inode.acl or inode.xattrs or inode.block_type)
        ):
            message.id, message.name = inode.id, inode.name
            _fill_plain(file, inode, numbers, layout)
            raw = message.SerializeToString()
        else:
            raw = inode_message(inode, numbers, layout).SerializeToString()
        size = len(raw)
        yield _PREFIXES[size] + raw if size < 1024 else delimited(raw)


def _fill_plain(file: pb.INodeFile, inode: INodeFile, numbers: StringNumbers, layout: int) -> None:
    """What every file has; the message may hold another file's fields."""
    file.replication = inode.replication
    file.modificationTime = inode.mtime
    file.accessTime = inode.atime
    file.preferredBlockSize = inode.preferred_block_size
    file.permission = numbers.permission((inode.user, inode.group, inode.mode))
    found = inode.blocks
    if len(file.blocks) != len(found):
        del file.blocks[:]
        for _ in found:
            file.blocks.add()
    for target, block in zip(file.blocks, found, strict=True):
        target.blockId = block.block_id & _MASK_64
        target.genStamp = block.generation_stamp
        target.numBytes = block.num_bytes
    file.storagePolicyID = inode.storage_policy_id
    if layout <= ERASURE_CODING_LAYOUT:
        file.blockType = inode.block_type


def inode_message(inode: INode, numbers: StringNumbers, layout: int) -> pb.INode:
    """Any inode as a message."""
    message = pb.INode(id=inode.id, name=inode.name)
    match inode:
        case INodeFile():
            message.type = pb.INode.FILE
            _fill_plain(message.file, inode, numbers, layout)
            _fill_features(message.file, inode, numbers, layout)
        case INodeDirectory():
            message.type = pb.INode.DIRECTORY
            _fill_directory(message.directory, inode, numbers)
        case INodeSymlink():
            message.type = pb.INode.SYMLINK
            link = message.symlink
            link.permission = numbers.permission((inode.user, inode.group, inode.mode))
            link.target = inode.target
            link.modificationTime = inode.mtime
            link.accessTime = inode.atime
    return message


def _fill_features(
    message: pb.INodeFile, inode: INodeFile, numbers: StringNumbers, layout: int
) -> None:
    if inode.under_construction is not None:
        message.fileUC.clientName = inode.under_construction.client_name
        message.fileUC.clientMachine = inode.under_construction.client_machine
    if inode.acl:
        _fill_acl(message.acl, inode.acl, numbers)
    if inode.xattrs:
        _fill_xattrs(message.xAttrs, inode.xattrs, numbers)
    if inode.block_type == STRIPED:
        if layout > ERASURE_CODING_LAYOUT:
            raise ImageError(f"{full_path(inode)} is erasure coded, which layout {layout} cannot "
                             "hold")  # fmt: skip
        message.ClearField("replication")
        message.erasureCodingPolicyID = inode.ec_policy_id


def _fill_directory(
    message: pb.INodeDirectory, inode: INodeDirectory, numbers: StringNumbers
) -> None:
    message.modificationTime = inode.mtime
    message.nsQuota = inode.quotas.namespace & _MASK_64
    message.dsQuota = inode.quotas.space & _MASK_64
    message.permission = numbers.permission((inode.user, inode.group, inode.mode))
    if inode.acl:
        _fill_acl(message.acl, inode.acl, numbers)
    if inode.xattrs:
        _fill_xattrs(message.xAttrs, inode.xattrs, numbers)
    for ordinal, quota in inode.quotas.by_type:
        number = STORAGE_TYPE_NUMBERS[STORAGE_TYPES_BY_ORDINAL[ordinal]]
        message.typeQuotas.quotas.add(storageType=number, quota=quota & _MASK_64)


STORAGE_TYPES_BY_ORDINAL: Final = {int(kind): kind for kind in STORAGE_TYPES.values()}


def _fill_acl(
    message: pb.AclFeatureProto, entries: tuple[AclEntry, ...], numbers: StringNumbers
) -> None:
    message.entries.extend(map(numbers.acl_entry, entries))


def _fill_xattrs(
    message: pb.XAttrFeatureProto, found: tuple[XAttr, ...], numbers: StringNumbers
) -> None:
    for xattr in found:
        message.xAttrs.add(name=numbers.xattr(xattr), value=xattr.value)


def write_directories(
    write: Write,
    inodes: Mapping[int, INode],
    ref_children: Mapping[int, tuple[int, ...]],
    referred: list[int],
) -> None:
    """INODE_DIR: each directory's children in Hadoop's order; a directory without has no entry.

    Raises:
        ImageError: if a child is not among the inodes; Hadoop's loader would fail on that image.
    """
    for inode in inodes.values():
        if type(inode) is not INodeDirectory or not inode.children:
            continue
        children = inode.children
        names = list(children)
        # Names in ASCII sort the same with and without sign.
        names.sort(key=None if all(map(bytes.isascii, names)) else signed_order)
        ids = [children[name].id for name in names]
        indices = ref_children.get(inode.id, ())
        if indices:
            moved_in = {referred[index] for index in indices}
            ids = [number for number in ids if number not in moved_in]
        for number in ids:
            if number not in inodes:
                raise ImageError(f"{full_path(inode)} has a child {number} that is no inode")
        entry = pb.DirEntry(parent=inode.id, children=ids, refChildren=indices)
        write(delimited(entry.SerializeToString()))


def write_files_under_construction(write: Write, open_files: Iterable[INodeFile]) -> None:
    """FILES_UNDERCONSTRUCTION: open files and paths, by id (2.7 takes leases from it)."""
    for file in sorted(open_files, key=lambda inode: inode.id):
        entry = pb.FileUnderConstructionEntry(inodeId=file.id, fullPath=full_path(file))
        write(delimited(entry.SerializeToString()))

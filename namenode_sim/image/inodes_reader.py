"""Sections INODE and INODE_DIR to the tree (docs/reference/formats.md#image-messages)."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from struct import Struct
from typing import Final, cast

from google.protobuf.message import DecodeError, EncodeError

from hadoop.longs import signed
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.values import AclEntry, StorageType, XAttr
from namenode_sim.image.container import MessagePosition, next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import Strings
from namenode_sim.image.unknown import Kept, check_texts, keep_unknown
from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.inode_map import InodeMap

STORAGE_TYPES: Final = {
    1: StorageType.DISK,
    2: StorageType.SSD,
    3: StorageType.ARCHIVE,
    4: StorageType.RAM_DISK,
    5: StorageType.PROVIDED,
    6: StorageType.NVDIMM,
}
"""The image's numbers for storage types; the edit log has others."""

_FILE, _DIRECTORY = pb.INode.FILE, pb.INode.DIRECTORY
_BATCH: Final = 250
_PACK_HEAD: Final = Struct(">qQQ").pack
_PACK_BLOCK: Final = Struct(">Qqq").pack
_PACK_ONE: Final = Struct(">qQQQqq").pack
"""As ``INodeFile.numbers``; times and ids of blocks come without their signs here."""

TraitsKey = tuple[int, int, int, int]
"""Permission, replication, preferred block size and storage policy, as the image has them."""

SeenTraits = dict[TraitsKey, namespace_inode.FileTraits]


def read_inodes(
    section: Iterator[bytes], strings: Strings, kept: Kept, place: MessagePosition | None = None
) -> tuple[int, InodeMap]:
    """Return the last inode id given out, and all inodes by id, not linked yet.

    Args:
        section: the messages of INODE.
        strings: the image's string table.
        kept: takes the messages that hold unknown fields.
        place: where ``section`` is; put right when an inode is malformed, as they are taken many
            at a time.

    Raises:
        ImageError: if the section holds another number of inodes than it says, or one twice.
    """
    raw = next_message(section)
    header = pb.INodeSection.FromString(raw)
    keep_unknown(kept, ("INODE", ""), raw, header)
    inodes = InodeMap()
    count = 0
    seen: SeenTraits = {}
    while raws := list(islice(section, _BATCH)):
        count += len(raws)
        try:
            inodes.extend(list(inodes_of(raws, strings, kept, seen)))
        except Exception:
            if place is not None:
                place.offset -= _size_from_failure(raws, strings)
            raise
    if count != header.numInodes or count != len(inodes):
        raise ImageError(
            f"it announces {header.numInodes} inodes and holds {count}, {len(inodes)} of them "
            "different"
        )
    return header.lastInodeId, inodes


def inodes_of(
    raws: list[bytes], strings: Strings, kept: Kept, seen: SeenTraits
) -> Iterator[namespace_inode.INode]:
    """Yield the inodes of a batch, linked to nothing yet; see ``read_file`` for ``seen``."""
    messages, plain = _parse(raws, kept)
    for message in messages:
        if message.type == _FILE:
            file = read_plain_file(message.id, message.name, message.file, strings, seen)
            if not plain:
                read_features(file, message.file, strings)
            yield file
        else:
            yield _read_other(message.id, message, strings)


def _size_from_failure(raws: list[bytes], strings: Strings) -> int:
    """Return the bytes between the beginnings of the first malformed inode and of the last."""
    done = 0
    with suppress(Exception):
        for raw in raws:
            message = pb.INode.FromString(raw)
            message.ByteSize()  # misses what the parser lets pass: required fields further inside
            if message.type == _FILE:
                read_file(message.id, message.name, message.file, strings, {})
            else:
                _read_other(message.id, message, strings)
            done += 1
    return sum(len(_tag(len(raw))) - 1 + len(raw) for raw in raws[done:-1])


def _parse(raws: list[bytes], kept: Kept) -> tuple[Iterable[pb.INode], bool]:
    """Return inodes, and whether none of the files among them has a feature that is rare.

    They are parsed together, which takes less time and shows unknown fields by one look; first as a
    message that has no fields for the rare features, as to look for them in each file takes a tenth
    of the time of loading.
    """
    parts: list[bytes] = []
    for raw in raws:
        size = len(raw)
        parts += (_TAGS[size] if size < _TAGGED else _tag(size), raw)
    joined = b"".join(parts)
    for kind in (pb.PlainBatch, pb.INodeBatch):
        with suppress(DecodeError, EncodeError):
            batch = kind.FromString(joined)
            batch.DiscardUnknownFields()
            if batch.ByteSize() == len(joined):
                return cast(pb.INodeBatch, batch).inodes, kind is pb.PlainBatch
    return _parse_singly(raws, kept), False


def _parse_singly(raws: list[bytes], kept: Kept) -> Iterator[pb.INode]:
    for raw in raws:
        message = pb.INode.FromString(raw)
        keep_unknown(kept, ("INODE", message.id), raw, message)
        yield message


_FIELD = b"\x0a"
"""The key of INodeBatch.inodes."""
_TAGS: Final = tuple(_FIELD + delimited(bytes(size))[: -size or None] for size in range(1024))
_TAGGED: Final = len(_TAGS)


def _tag(size: int) -> bytes:
    """Return what stands before an inode of ``size`` bytes in an INodeBatch."""
    return _TAGS[size] if size < _TAGGED else _FIELD + delimited(bytes(size))[:-size]


def read_file(
    inode_id: int, name: bytes, message: pb.INodeFile, strings: Strings, seen: SeenTraits
) -> namespace_inode.INodeFile:
    """Read a file, linked to nothing yet.

    ``seen`` holds the traits of the files of one image that were read before.
    """
    inode = read_plain_file(inode_id, name, message, strings, seen)
    read_features(inode, message, strings)
    return inode


def read_plain_file(
    inode_id: int, name: bytes, message: pb.INodeFile, strings: Strings, seen: SeenTraits
) -> namespace_inode.INodeFile:
    """Read a file without the features that are rare (``read_features``)."""
    mtime, atime = message.modificationTime, message.accessTime
    found = message.blocks
    if len(found) == 1:
        block = found[0]
        numbers = _PACK_ONE(inode_id, mtime, atime, block.blockId, block.numBytes, block.genStamp)
    else:
        numbers = _PACK_HEAD(inode_id, mtime, atime) + pack_protos(found)
    key = (
        message.permission,
        message.replication,
        message.preferredBlockSize,
        message.storagePolicyID,
    )
    traits = seen.get(key)
    if traits is None:
        traits = seen[key] = _plain_traits(key, strings)
    inode = namespace_inode.INodeFile(name, numbers, traits)
    if message.blockType:
        inode.block_type = message.blockType
        inode.ec_policy_id = message.erasureCodingPolicyID
    return inode


def _plain_traits(key: TraitsKey, strings: Strings) -> namespace_inode.FileTraits:
    permission, replication, size, policy = key
    size = size or 1  # as Hadoop's loader: its field begins at 1
    return namespace_inode.shared(
        namespace_inode.FileTraits(*strings.owner(permission), replication, size, policy)
    )


def read_features(
    inode: namespace_inode.INodeFile, message: pb.INodeFile, strings: Strings
) -> None:
    """Read the writer of a file, its ACL and its extended attributes."""
    if message.HasField("fileUC"):
        holder = message.fileUC
        check_texts(holder)
        inode.under_construction = namespace_inode.UnderConstruction(
            holder.clientName, holder.clientMachine
        )
    if message.HasField("acl"):
        inode.acl = read_acl(message.acl, strings)
    if message.HasField("xAttrs"):
        inode.xattrs = read_xattrs(message.xAttrs, strings)


def pack_protos(blocks: Iterable[pb.BlockProto]) -> bytes:
    return b"".join([_PACK_BLOCK(b.blockId, b.numBytes, b.genStamp) for b in blocks])


def read_directory(
    inode_id: int, name: bytes, message: pb.INodeDirectory, strings: Strings
) -> namespace_inode.INodeDirectory:
    user, group, mode = strings.owner(message.permission)
    inode = namespace_inode.INodeDirectory(
        inode_id, name, user, group, mode, message.modificationTime
    )
    if message.HasField("acl"):
        inode.acl = read_acl(message.acl, strings)
    if message.HasField("xAttrs"):
        inode.xattrs = read_xattrs(message.xAttrs, strings)
    inode.quotas = _read_quotas(message)
    return inode


def _read_quotas(message: pb.INodeDirectory) -> namespace_inode.Quotas:
    namespace, space = signed(message.nsQuota), signed(message.dsQuota)
    by_type = tuple((int(STORAGE_TYPES[q.storageType]), signed(q.quota))
                    for q in message.typeQuotas.quotas)  # fmt: skip
    quotas = namespace_inode.Quotas(namespace, space, by_type)
    for usual in (namespace_inode.NO_QUOTAS, namespace_inode.ROOT_QUOTAS):
        if quotas == usual:
            return usual
    return quotas


def _read_other(inode_id: int, message: pb.INode, strings: Strings) -> namespace_inode.INode:
    if message.type == _DIRECTORY:
        return read_directory(inode_id, message.name, message.directory, strings)
    link = message.symlink
    user, group, mode = strings.owner(link.permission)
    return namespace_inode.INodeSymlink(
        inode_id,
        message.name,
        user,
        group,
        mode,
        link.modificationTime,
        link.accessTime,
        link.target,
    )


def read_acl(message: pb.AclFeatureProto, strings: Strings) -> tuple[AclEntry, ...] | None:
    """Return the entries of an ACL that the mode does not hold; None if there are none."""
    return tuple(map(strings.acl_entry, message.entries)) or None


def read_xattrs(message: pb.XAttrFeatureProto, strings: Strings) -> tuple[XAttr, ...] | None:
    """Return extended attributes in their order; None if there are none."""
    return tuple(strings.xattr(x.name, x.value or None) for x in message.xAttrs) or None


def link_children(
    section: Iterator[bytes],
    inodes: InodeMap,
    places: Sequence[namespace_inode.OldName | namespace_inode.NewPlace],
    kept: Kept,
) -> None:
    """Put the inodes into their directories.

    Args:
        section: the messages of INODE_DIR.
        inodes: all inodes by id.
        places: the entries of INODE_REFERENCE.
        kept: takes the messages that hold unknown fields.

    Raises:
        ImageError: if an entry names an unknown inode, a file as parent, or a name twice, or if a
            directory is below itself.
    """
    parse = pb.DirEntry.FromString
    parents: list[namespace_inode.INodeDirectory] = []
    for raw in section:
        entry = parse(raw)
        keep_unknown(kept, ("INODE_DIR", entry.parent), raw, entry)
        parent = inodes.get(entry.parent)
        if not isinstance(parent, namespace_inode.INodeDirectory):
            raise ImageError(f"it has children of {entry.parent}, which is no directory")
        ids = list(entry.children)
        if entry.refChildren:
            moved_here = [places[index] for index in entry.refChildren]
            for place in moved_here:
                place.parent = parent
            ids += [place.reference.inode.id for place in moved_here]
        parents.append(parent)
        children = parent.children
        for child in inodes.several(ids):
            if child.parent is not None:
                raise ImageError(f"inode {child.id} is a child of both {child.parent.id} and "
                                 f"{parent.id}")  # fmt: skip
            children[child.name] = child
            child.parent = parent
        if len(children) != len(ids):
            raise ImageError(f"directory {parent.id} has two children of one name")
    _check_no_loop(parents)


def _check_no_loop(directories: Iterable[namespace_inode.INodeDirectory]) -> None:
    """Refuse a directory below itself: a walk along its parents would never end."""
    sound: set[int] = set()
    for directory in directories:
        trail: set[int] = set()
        node: namespace_inode.INodeDirectory | None = directory
        while node is not None and node.id not in sound:
            if node.id in trail:
                raise ImageError(f"directory {node.id} is below itself")
            trail.add(node.id)
            node = node.parent
        sound |= trail

"""Inodes as elements, in the form of Hadoop 3's viewer (PBImageXmlWriter)."""

from collections.abc import Callable, Iterator

from ha.record import dataclass
from hadoop.longs import signed
from namenode_sim.image.inodes_reader import STORAGE_TYPES
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import Strings
from namenode_sim.oiv.elements import Element
from namenode_sim.oiv.values import acl_text

_STRIPED_REPLICATION = 1
_BLOCK_TYPES = ("CONTIGUOUS", "STRIPED")


@dataclass(frozen=True, slots=True)
class Reading:
    """How the bytes of an image become text."""

    strings: Strings
    text: Callable[[bytes], str]
    """Names are bytes; XML shows what is not UTF-8 as U+FFFD, JSON keeps it."""

    def permission(self, packed: int) -> str:
        """Return a permission as ``user:group:0755``."""
        user, group, mode = self.strings.owner(packed)
        return f"{user}:{group}:{mode:04o}"


def inode_fields(inode: pb.INode, reading: Reading) -> Iterator[Element]:
    """Yield all that the image holds of one inode."""
    yield "id", inode.id
    yield "type", pb.INode.Type.Name(inode.type)
    yield "name", reading.text(inode.name)
    if inode.HasField("file"):
        yield from file_fields(inode.file, reading)
    elif inode.HasField("directory"):
        yield from directory_fields(inode.directory, reading)
    elif inode.HasField("symlink"):
        link = inode.symlink
        yield "permission", reading.permission(link.permission)
        yield "target", reading.text(link.target)
        yield "mtime", link.modificationTime
        yield "atime", link.accessTime


def file_fields(file: pb.INodeFile, reading: Reading) -> Iterator[Element]:
    striped = file.HasField("erasureCodingPolicyID")
    yield "replication", _STRIPED_REPLICATION if striped else file.replication
    yield "mtime", file.modificationTime
    yield "atime", file.accessTime
    yield "preferredBlockSize", file.preferredBlockSize
    yield "permission", reading.permission(file.permission)
    yield from xattr_fields(file, reading)
    yield from acl_fields(file, reading)
    if file.blocks:
        yield "blocks", [("block", list(block_fields(block))) for block in file.blocks]
    if file.HasField("storagePolicyID"):
        yield "storagePolicyId", file.storagePolicyID
    if striped:
        yield "blockType", _BLOCK_TYPES[file.blockType]
        yield "erasureCodingPolicyId", file.erasureCodingPolicyID
    yield from construction_fields(file)


def block_fields(block: pb.BlockProto) -> Iterator[Element]:
    yield "id", signed(block.blockId)
    yield "genstamp", block.genStamp
    yield "numBytes", block.numBytes


def construction_fields(file: pb.INodeFile) -> Iterator[Element]:
    if file.HasField("fileUC"):
        holder = file.fileUC
        yield (
            "file-under-construction",
            [("clientName", holder.clientName), ("clientMachine", holder.clientMachine)],
        )


def directory_fields(directory: pb.INodeDirectory, reading: Reading) -> Iterator[Element]:
    yield "mtime", directory.modificationTime
    yield "permission", reading.permission(directory.permission)
    yield from xattr_fields(directory, reading)
    yield from acl_fields(directory, reading)
    if directory.HasField("dsQuota") and directory.HasField("nsQuota"):
        yield "nsquota", signed(directory.nsQuota)
        yield "dsquota", signed(directory.dsQuota)
    for quota in directory.typeQuotas.quotas:
        kind = STORAGE_TYPES[quota.storageType].name
        yield "typeQuota", [("type", kind), ("quota", signed(quota.quota))]


def xattr_fields(holder: pb.INodeFile | pb.INodeDirectory, reading: Reading) -> Iterator[Element]:
    """Yield the extended attributes, if any; a value is text, or hexadecimal where it is not."""
    if holder.HasField("xAttrs"):
        yield "xattrs", [("xattr", list(_xattr(one, reading))) for one in holder.xAttrs.xAttrs]


def _xattr(one: pb.XAttrCompactProto, reading: Reading) -> Iterator[Element]:
    found = reading.strings.xattr(one.name, one.value)
    yield "ns", found.namespace.name
    yield "name", found.name
    try:
        yield "val", one.value.decode()
    except UnicodeDecodeError:
        yield "valHex", one.value.hex()


def acl_fields(holder: pb.INodeFile | pb.INodeDirectory, reading: Reading) -> Iterator[Element]:
    """Yield the ACL entries that the mode does not hold, if there are any."""
    if holder.acl.entries:
        entries = map(reading.strings.acl_entry, holder.acl.entries)
        yield "acls", [("acl", acl_text(entry)) for entry in entries]

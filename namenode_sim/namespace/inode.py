"""What the namespace is made of: files, directories and symlinks, as compact as Python allows.

Every field that the fsimage holds for an inode has a place here
(docs/reference/formats.md#image-messages); rare features are ``None`` or an empty tuple, shared by
all inodes without them, so that an ordinary file costs under 500 bytes with its name and its two
dictionary entries.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import starmap
from struct import Struct

from namenode_sim.edits.values import AclEntry, Block, XAttr

ROOT_ID = 16385
"""INodeId.ROOT_INODE_ID; the first inode after it is 16386."""

QUOTA_RESET = -1
"""No quota (HdfsConstants.QUOTA_RESET)."""

QUOTA_DONT_SET = 2**63 - 1
"""Leave the quota as it is; also the root's namespace quota, "as good as none"."""

CONTIGUOUS, STRIPED = 0, 1

_SIGNED = bytes(b ^ 0x80 for b in range(256))


def signed_order(name: bytes) -> bytes:
    """The sort key that orders names as Hadoop does: as signed bytes.

    See docs/reference/formats.md#order-of-children.
    """
    return name.translate(_SIGNED)


@dataclass(frozen=True, slots=True)
class UnderConstruction:
    """Who writes a file: the lease holder and the machine it writes from."""

    client_name: str
    client_machine: str


@dataclass(frozen=True, slots=True)
class Quotas:
    """A directory's limits; -1 means none.  ``by_type``: (edit-log storage type, bytes) pairs."""

    namespace: int = QUOTA_RESET
    space: int = QUOTA_RESET
    by_type: tuple[tuple[int, int], ...] = ()


NO_QUOTAS = Quotas()
ROOT_QUOTAS = Quotas(namespace=QUOTA_DONT_SET)


PACKED_BLOCK = Struct(">qqq")
"""Id, length and generation stamp of one block."""


def pack_blocks(blocks: tuple[Block, ...]) -> bytes:
    """Blocks as ``INodeFile.packed_blocks`` keeps them."""
    pack = PACKED_BLOCK.pack
    return b"".join([pack(b.block_id, b.num_bytes, b.generation_stamp) for b in blocks])


@dataclass(slots=True, eq=False)
class INodeFile:
    """A file.  Times are milliseconds since 1970, sizes bytes.

    ``blocks`` is an immutable tuple replaced as a whole; the last one is under construction when
    ``under_construction`` is set.  It is kept packed: one block as objects takes 200 bytes, packed
    64, and blocks are the largest part of a namespace.  ``acl`` holds the feature's entries, not
    those folded into ``mode``.  ``ec_policy_id`` is 0 for contiguous files.
    """

    id: int
    name: bytes
    user: str
    group: str
    mode: int
    mtime: int
    atime: int
    replication: int
    preferred_block_size: int
    packed_blocks: bytes = b""
    under_construction: UnderConstruction | None = None
    acl: tuple[AclEntry, ...] | None = None
    xattrs: tuple[XAttr, ...] | None = None
    storage_policy_id: int = 0
    block_type: int = CONTIGUOUS
    ec_policy_id: int = 0
    parent: "INodeDirectory | None" = None
    history: "FileHistory | None" = None
    reference: "Reference | None" = None

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(starmap(Block, PACKED_BLOCK.iter_unpack(self.packed_blocks)))

    @blocks.setter
    def blocks(self, blocks: tuple[Block, ...]) -> None:
        self.packed_blocks = pack_blocks(blocks)

    def length(self) -> int:
        """The file's length in bytes, a last block under construction included."""
        return sum(block.num_bytes for block in self.blocks)


@dataclass(slots=True, eq=False)
class INodeSymlink:
    """A symbolic link."""

    id: int
    name: bytes
    user: str
    group: str
    mode: int
    mtime: int
    atime: int
    target: bytes
    parent: "INodeDirectory | None" = None
    reference: "Reference | None" = None


@dataclass(slots=True, eq=False)
class INodeDirectory:
    """A directory.  Its storage policy and EC policy are xattrs, as in Hadoop."""

    id: int
    name: bytes
    user: str
    group: str
    mode: int
    mtime: int
    acl: tuple[AclEntry, ...] | None = None
    xattrs: tuple[XAttr, ...] | None = None
    quotas: Quotas = NO_QUOTAS
    parent: "INodeDirectory | None" = None
    children: "dict[bytes, INode]" = field(default_factory=dict)
    sorted_names: list[bytes] | None = None
    history: "DirectoryHistory | None" = None
    reference: "Reference | None" = None

    def ordered_names(self) -> list[bytes]:
        """The children's names in Hadoop's order; kept up to date once asked for.  Do not alter."""
        if self.sorted_names is None:
            self.sorted_names = sorted(self.children, key=signed_order)
        return self.sorted_names

    def ordered_children(self) -> "Iterator[INode]":
        """The children in Hadoop's order, as a DirEntry must list them."""
        return (self.children[name] for name in self.ordered_names())


INode = INodeFile | INodeDirectory | INodeSymlink


@dataclass(slots=True, eq=False)
class FileDiff:
    """What differs between a file as of a snapshot and as of the next diff, or now.

    ``size`` is the length in that snapshot.  ``copy`` holds the attributes as of then, without
    blocks; ``packed_blocks`` the blocks, once they might leave the file (a truncation, a rename).
    """

    snapshot_id: int
    size: int
    copy: INodeFile | None = None
    packed_blocks: bytes | None = None


@dataclass(slots=True, eq=False)
class FileHistory:
    """A file's diffs, oldest first.  ``deleted``: the file lives on in snapshots only."""

    diffs: list[FileDiff] = field(default_factory=list)
    deleted: bool = False


@dataclass(slots=True, eq=False)
class DirectoryDiff:
    """What differs between a directory as of a snapshot and as of the next diff, or now.

    ``created`` and ``deleted`` are the entries that came and went, by name.  ``copy`` holds the
    attributes as of the snapshot; with ``is_root`` it is the root of that snapshot.
    """

    snapshot_id: int
    children_size: int
    is_root: bool = False
    copy: INodeDirectory | None = None
    created: "dict[bytes, Entry]" = field(default_factory=dict)
    deleted: "dict[bytes, Entry]" = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class DirectoryHistory:
    """A directory's diffs, oldest first.  ``snapshottable``: kept even while it is empty."""

    diffs: list[DirectoryDiff] = field(default_factory=list)
    snapshottable: bool = False


@dataclass(slots=True, eq=False)
class OldName:
    """Where a moved inode is in snapshots up to ``last_snapshot_id`` (INodeReference.WithName)."""

    parent: INodeDirectory | None
    reference: "Reference"
    name: bytes
    last_snapshot_id: int


@dataclass(slots=True, eq=False)
class NewPlace:
    """Where a moved inode went (INodeReference.DstReference).

    ``snapshot_id`` is the latest snapshot that the destination had then; changes up to it are the
    business of the place that the inode came from.
    """

    parent: INodeDirectory | None
    reference: "Reference"
    snapshot_id: int

    @property
    def name(self) -> bytes:
        """The inode's name, which is that of its newest place."""
        return self.reference.inode.name


@dataclass(slots=True, eq=False)
class Reference:
    """All places of an inode that was moved while a snapshot held it (INodeReference.WithCount).

    ``old_names`` are in the order of their snapshot ids.  As long as ``place`` is linked in the
    current tree, the children of its directory have the inode itself.
    """

    inode: INode
    old_names: list[OldName] = field(default_factory=list)
    place: NewPlace | None = None

    def count(self) -> int:
        """How many places there are; without any the inode goes."""
        return len(self.old_names) + (self.place is not None)


Entry = INode | OldName | NewPlace
"""What a list of a directory diff holds."""


def full_path(inode: INode) -> str:
    """The absolute path of an inode that is linked into the tree."""
    parts: list[bytes] = []
    node: INode | None = inode
    while node is not None:
        parts.append(node.name)
        node = node.parent
    return b"/".join(reversed(parts)).decode("utf-8", "replace") or "/"


def subtree(inode: INode) -> Iterator[INode]:
    """The inode and all below it, parents first, without recursion."""
    waiting: list[INode] = [inode]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, INodeDirectory):
            waiting.extend(node.children.values())

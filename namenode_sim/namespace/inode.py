"""What the namespace is made of: files, directories and symlinks, as compact as Python allows.

Every field that the fsimage holds for an inode has a place here
(docs/reference/formats.md#image-messages).  Files are nearly all of a namespace: an ordinary one
has its name, its parent, a bytes object of its numbers, and a record that it shares with others.
"""

from collections.abc import Iterator
from functools import partial
from itertools import starmap
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from ha.record import dataclass, field
from namenode_sim.edits.values import AclEntry, Block, XAttr
from namenode_sim.namespace import file_numbers

T = TypeVar("T")

ROOT_ID = 16385
"""INodeId.ROOT_INODE_ID; the first inode after it is 16386."""

QUOTA_RESET = -1
"""No quota (HdfsConstants.QUOTA_RESET)."""

QUOTA_DONT_SET = 2**63 - 1
"""Leave the quota as it is; also the root's namespace quota, "as good as none"."""

CONTIGUOUS, STRIPED = 0, 1

_SIGNED = bytes(b ^ 0x80 for b in range(256))


def signed_order(name: bytes) -> bytes:
    """Return the sort key that orders names as Hadoop does: as signed bytes.

    See docs/reference/formats.md#order-of-children.
    """
    return name.translate(_SIGNED)


@dataclass(frozen=True, slots=True)
class UnderConstruction:
    """The writer of a file: the lease holder and the machine it writes from."""

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


class FileTraits(NamedTuple):
    """What a file is, its name, its numbers and its place left out.

    Files that agree in all of it share one record (``shared``).  The fields from
    ``under_construction`` on are rare; a file that has one of them has a record of its own.
    ``acl`` holds the feature's entries, not those folded into ``mode``.  ``ec_policy_id`` is 0 for
    contiguous files.  ``preferred_block_size`` is in bytes.
    """

    user: str
    group: str
    mode: int
    replication: int
    preferred_block_size: int
    storage_policy_id: int = 0
    block_type: int = CONTIGUOUS
    ec_policy_id: int = 0
    under_construction: UnderConstruction | None = None
    acl: tuple[AclEntry, ...] | None = None
    xattrs: tuple[XAttr, ...] | None = None
    history: "FileHistory | None" = None
    reference: "Reference | None" = None


SHARED_AT_MOST: Final = 65_536
"""The most records that are shared at a time; each takes about 300 bytes."""

_shared: Final[dict[FileTraits, FileTraits]] = {}


def shared(traits: FileTraits) -> FileTraits:
    """Return the one record of all files with these traits; one with a rare trait is not shared.

    To share saves memory and nothing depends on it, so the table begins anew when it is full.
    """
    rare = (
        traits.under_construction or traits.acl or traits.xattrs or traits.history
        or traits.reference
    )  # fmt: skip
    if rare:
        return traits
    if len(_shared) >= SHARED_AT_MOST:
        _shared.clear()
    return _shared.setdefault(traits, traits)


class _Trait(Protocol[T]):
    def __get__(self, file: "INodeFile", owner: object = None) -> T: ...

    def __set__(self, file: "INodeFile", value: T) -> None: ...


def _change(place: int, file: "INodeFile", value: object) -> None:
    """Set one of a file's traits, which takes another record."""
    fields: list[Any] = list(file.traits)
    fields[place] = value
    file.traits = shared(tuple.__new__(FileTraits, fields))  # twice as fast as _replace


def _trait(name: str) -> _Trait[Any]:
    change = partial(_change, FileTraits._fields.index(name))
    return cast(_Trait[Any], property(attrgetter(f"traits.{name}"), change))


class INodeFile:
    """A file.  Times are milliseconds since 1970, sizes bytes.

    ``numbers`` are those of ``pack_numbers``; to read them at once is faster than by their names.
    ``blocks`` is an immutable tuple replaced as a whole; the last one is under construction when
    ``under_construction`` is set.
    """

    __slots__ = ("name", "numbers", "parent", "traits")

    user: _Trait[str] = _trait("user")
    group: _Trait[str] = _trait("group")
    mode: _Trait[int] = _trait("mode")
    replication: _Trait[int] = _trait("replication")
    preferred_block_size: _Trait[int] = _trait("preferred_block_size")
    storage_policy_id: _Trait[int] = _trait("storage_policy_id")
    block_type: _Trait[int] = _trait("block_type")
    ec_policy_id: _Trait[int] = _trait("ec_policy_id")
    under_construction: _Trait[UnderConstruction | None] = _trait("under_construction")
    acl: _Trait[tuple[AclEntry, ...] | None] = _trait("acl")
    xattrs: _Trait[tuple[XAttr, ...] | None] = _trait("xattrs")
    history: "_Trait[FileHistory | None]" = _trait("history")
    reference: "_Trait[Reference | None]" = _trait("reference")

    def __init__(self, name: bytes, numbers: bytes, traits: FileTraits) -> None:
        self.name = name
        self.numbers = numbers
        self.traits = traits
        self.parent: INodeDirectory | None = None

    @property
    def id(self) -> int:
        return file_numbers.id_in(self.numbers)[0]  # type: ignore[no-any-return]

    @property
    def mtime(self) -> int:
        return file_numbers.mtime_in(self.numbers)[0]  # type: ignore[no-any-return]

    @mtime.setter
    def mtime(self, mtime: int) -> None:
        numbers = self.numbers
        self.numbers = numbers[:8] + file_numbers.pack_time(mtime) + numbers[16:]

    @property
    def atime(self) -> int:
        return file_numbers.atime_in(self.numbers)[0]  # type: ignore[no-any-return]

    @atime.setter
    def atime(self, atime: int) -> None:
        numbers = self.numbers
        self.numbers = (
            numbers[:16] + file_numbers.pack_time(atime) + numbers[file_numbers.HEAD_SIZE :]
        )

    def set_times(self, mtime: int, atime: int) -> None:
        """Set both times at once, in milliseconds."""
        numbers = self.numbers
        self.numbers = (
            numbers[:8] + file_numbers.pack_times(mtime, atime) + numbers[file_numbers.HEAD_SIZE :]
        )

    @property
    def packed_blocks(self) -> bytes:
        return self.numbers[file_numbers.HEAD_SIZE :]

    @packed_blocks.setter
    def packed_blocks(self, packed: bytes) -> None:
        self.numbers = self.numbers[: file_numbers.HEAD_SIZE] + packed

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(starmap(Block, file_numbers.PACKED_BLOCK.iter_unpack(self.packed_blocks)))

    @blocks.setter
    def blocks(self, blocks: tuple[Block, ...]) -> None:
        self.packed_blocks = file_numbers.pack_blocks(blocks)

    def length(self) -> int:
        """Return the file's length in bytes, a last block under construction included."""
        total = 0
        for _, length, _ in file_numbers.PACKED_BLOCK.iter_unpack(self.packed_blocks):
            total += length
        return total

    def changed(self, packed_blocks: bytes, traits: FileTraits) -> "INodeFile":
        """Return what the file would be with other blocks and traits; it is linked to nothing."""
        numbers = self.numbers[: file_numbers.HEAD_SIZE] + packed_blocks
        return INodeFile(self.name, numbers, traits)

    def kept_copy(self, name: bytes, packed_blocks: bytes) -> "INodeFile":
        """Return the copy for a snapshot: without writer, past and parent directory."""
        traits = self.traits._replace(under_construction=None, history=None, reference=None)
        return INodeFile(
            name, self.numbers[: file_numbers.HEAD_SIZE] + packed_blocks, shared(traits)
        )


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
    """A directory.  Its storage policy and EC policy are xattrs, as in Hadoop.

    ``atime`` is what a client set, 0 if none did; no image holds it.
    """

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
    atime: int = 0

    def ordered_names(self) -> list[bytes]:
        """Return the children's names in Hadoop's order, kept up to date from now on.

        Do not alter the list.
        """
        if self.sorted_names is None:
            self.sorted_names = sorted(self.children, key=signed_order)
        return self.sorted_names

    def ordered_children(self) -> "Iterator[INode]":
        """Return the children in Hadoop's order, as a DirEntry must list them."""
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
        """Return the number of places; without any the inode goes."""
        return len(self.old_names) + (self.place is not None)


Entry = INode | OldName | NewPlace
"""What a list of a directory diff holds."""


def full_path(inode: INode) -> str:
    """Return the absolute path of an inode that is linked into the tree."""
    parts: list[bytes] = []
    node: INode | None = inode
    while node is not None:
        parts.append(node.name)
        node = node.parent
    return b"/".join(reversed(parts)).decode("utf-8", "replace") or "/"


def subtree(inode: INode) -> Iterator[INode]:
    """Yield the inode and all below it, parents first, without recursion."""
    waiting: list[INode] = [inode]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, INodeDirectory):
            waiting.extend(node.children.values())

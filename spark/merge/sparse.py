"""The sparse tree: a real namespace that holds only what was looked up.

`Namespace.apply` works on it as on a whole one.  A directory of the image knows which names were
asked about; asking for another one raises a `Miss` instead of giving a wrong answer.
"""

from collections.abc import Collection, Container, Iterator, Mapping, ValuesView
from itertools import islice
from typing import Final, TypeVar, cast

import numpy as np

from ha.record import dataclass, field
from namenode_sim.image.inodes_reader import SeenTraits, inodes_of
from namenode_sim.image.strings import Strings
from namenode_sim.image.unknown import Kept
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.tree import components
from spark.merge.base import Base
from spark.merge.errors import EditsDoNotBelong, Miss, NeedsWholeNamespace
from spark.merge.garbage_collection import no_collection
from spark.merge.model import BaseFacts, Ids, Looked, MergePlan
from spark.merge.trie import NEED, ROOT, BaseTrie

_BATCH: Final = 250
_NOTHING: Final[Mapping[bytes, int]] = {}
_NO_NAMES: Final[Container[bytes]] = ()

T = TypeVar("T")


class SparseChildren:
    """Stands for the ``children`` of a directory of the image, as far as they are known.

    Iteration is over what is known: `Tree.forget` drops that, and the rest goes when the tombstone
    is expanded.  Emptiness cannot be known; an edit that needs it is trusted, and that is noted.
    """

    __slots__ = ("_held", "_inode_id", "_trusted", "asked", "changed", "taken_for_empty")

    def __init__(
        self, inode_id: int, asked: Mapping[bytes, int], trusted: Container[bytes]
    ) -> None:
        self._inode_id = inode_id
        self._held: dict[bytes, INode] = {}
        self._trusted = trusted
        self.asked = asked
        """The trie nodes by name."""
        self.changed = False
        self.taken_for_empty = False

    def put(self, name: bytes, child: INode) -> None:
        self._held[name] = child

    def get(self, name: bytes, default: T | None = None) -> INode | T | None:
        """Return the child of that name; ``default`` if it is known that there is none."""
        found = self._held.get(name)
        if found is not None:
            return found
        if name in self.asked or name in self._trusted:
            return default
        raise Miss(self._inode_id, name)

    def __contains__(self, name: bytes) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: bytes) -> INode:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: bytes, child: INode) -> None:
        self.changed = True
        self._held[name] = child

    def __delitem__(self, name: bytes) -> None:
        self.changed = True
        del self._held[name]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._held)

    def __len__(self) -> int:
        if not self._held:
            self.taken_for_empty = True
        return len(self._held)

    def values(self) -> ValuesView[INode]:
        return self._held.values()

    def ids_by_name(self) -> dict[bytes, int]:
        """Return the ids of the known children."""
        return {name: child.id for name, child in self._held.items()}


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse namespace and what it was made from.

    Attributes:
        namespace: for the replay; its tree holds every looked-up inode.
        base: the image's small parts.
        plan, looked: the questions and the answers.
        strings: the image's string table.
        directories: the directories of the image by trie node, as (node, directory).
        unread: those of them that are only walked through, whose message was not fetched.
        materialised: the ids of the image's inodes in the tree, sorted.
    """

    namespace: Namespace
    base: Base
    plan: MergePlan
    looked: Looked
    strings: Strings
    directories: list[tuple[int, INodeDirectory]] = field(repr=False)
    unread: list[tuple[int, INodeDirectory]] = field(repr=False)
    materialised: Ids = field(repr=False)


def sparse_namespace(base: Base, plan: MergePlan, looked: Looked) -> Sparse:
    """Build the namespace that the edits are replayed on.

    Raises:
        NeedsWholeNamespace: if a place is in a snapshottable tree, or an open file is not where
            the image says.
        EditsDoNotBelong: if the answers contradict each other.
    """
    trie, ids = plan.trie, looked.ids.tolist()
    if ids[ROOT] < 0 or len(ids) != len(trie):
        raise EditsDoNotBelong(f"{len(ids)} of {len(trie)} places of the image were looked up")
    materialised = np.sort(looked.ids[looked.ids >= 0])
    if (materialised[1:] == materialised[:-1]).any():
        raise EditsDoNotBelong("the image has one inode at two of the places looked up")
    _check_snapshots(base.facts, trie, ids[: plan.reached])
    _check_open_files(base.facts, trie, ids)
    root = INodeDirectory(ids[ROOT], b"", "", "", 0, 0)
    namespace, strings = base.open(root)
    sparse = Sparse(namespace, base, plan, looked, strings, [], [], materialised)
    with no_collection():
        nodes = _parse(looked.messages, strings, namespace.unknown_fields)
        _link(sparse, trie, ids, nodes)
    return sparse


def _check_snapshots(facts: BaseFacts, trie: BaseTrie, ids: list[int]) -> None:
    if not facts.snapshottable:
        return
    for node, inode_id in enumerate(ids):
        if inode_id in facts.snapshottable:
            path = trie.path(node).decode("utf-8", "replace")
            raise NeedsWholeNamespace(
                f"the edits touch {path}, which may have snapshots, or something below it"
            )


def _check_open_files(facts: BaseFacts, trie: BaseTrie, ids: list[int]) -> None:
    for file in facts.open_files:
        node: int | None = ROOT
        for name in components(file.path):
            children = None if node is None else trie.children[node]
            node = None if children is None else children.get(name)
        if node is None or ids[node] != file.inode_id:
            raise NeedsWholeNamespace(
                f"the image lists inode {file.inode_id} as open for writing at {file.path}, where "
                "it is not"
            )


def _parse(messages: Mapping[int, bytes], strings: Strings, kept: Kept) -> dict[int, INode]:
    nodes: dict[int, INode] = {}
    seen: SeenTraits = {}
    rest = iter(messages.values())
    while raws := list(islice(rest, _BATCH)):
        for inode in inodes_of(raws, strings, kept, seen):
            nodes[inode.id] = inode
    return nodes


def _link(sparse: Sparse, trie: BaseTrie, ids: list[int], nodes: dict[int, INode]) -> None:
    """Put what was looked up into one tree; a parent has a lower trie node than its children."""
    tree = sparse.namespace.tree
    trusted = sparse.plan.trusted
    inodes = tree.inodes
    for node, inode_id in enumerate(ids):
        if inode_id < 0:
            continue
        inode = nodes.get(inode_id)
        if inode is None:
            if trie.flags[node] & NEED:
                path = trie.path(node).decode("utf-8", "replace")
                raise EditsDoNotBelong(f"inode {inode_id} at {path} was not fetched")
            inode = INodeDirectory(inode_id, trie.names[node], "", "", 0, 0)
            sparse.unread.append((node, inode))
        if isinstance(inode, INodeDirectory):
            asked = trie.children[node]
            children = SparseChildren(
                inode_id, _NOTHING if asked is None else asked, trusted.get(node, _NO_NAMES)
            )
            inode.children = cast(dict[bytes, INode], children)
            sparse.directories.append((node, inode))
        elif isinstance(inode, INodeFile) and inode.under_construction is not None:
            tree.add_lease(inode)
        inodes[inode_id] = inode
        if node == ROOT:
            if not isinstance(inode, INodeDirectory):
                raise EditsDoNotBelong("the image's root is not a directory")
            tree.root = inode
            continue
        parent = inodes.get(ids[trie.parents[node]])
        if not isinstance(parent, INodeDirectory) or inode.name != trie.names[node]:
            path = trie.path(node).decode("utf-8", "replace")
            raise EditsDoNotBelong(f"inode {inode_id} is not at {path}, where it was found")
        inode.parent = parent
        cast(SparseChildren, parent.children).put(inode.name, inode)


def known_ids(found: Collection[int]) -> Ids:
    return np.sort(np.fromiter(found, dtype=np.int64, count=len(found)))

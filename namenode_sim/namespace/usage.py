"""How much of their quotas directories use: names, and bytes by storage policy.  Pure.

See docs/reference/namenode.md#quotas.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ha.record import dataclass, field
from namenode_sim.edits.values import XAttrNamespace
from namenode_sim.namespace import inode
from namenode_sim.namespace.changes import blocks_held, expected_replication
from namenode_sim.namespace.inode_map import InodeMap

STORAGE_POLICY: Final = "hsm.block.storage.policy.id"


class Kind(NamedTuple):
    """What decides on which types of storage the replicas of a block are; policy 0 is none."""

    policy_id: int
    replication: int


@dataclass(slots=True)
class Use:
    """What is used, or a difference of that.  ``sizes`` are bytes without their replicas."""

    names: int = 0
    sizes: dict[Kind, int] = field(default_factory=dict)

    def add(self, other: "Use", sign: int = 1) -> None:
        """Add another use, or take it away with the sign -1."""
        self.names += sign * other.names
        for kind, size in other.sizes.items():
            total = self.sizes.pop(kind, 0) + sign * size
            if total:
                self.sizes[kind] = total

    def space(self) -> int:
        """Return the bytes with all replicas."""
        return sum(kind.replication * size for kind, size in self.sizes.items())


def storage_policy_of(node: inode.INode) -> int:
    """Return the storage policy set on this very node; 0 if none."""
    if isinstance(node, inode.INodeFile):
        return node.storage_policy_id
    if isinstance(node, inode.INodeDirectory):
        for xattr in node.xattrs or ():
            if (xattr.namespace, xattr.name) == (XAttrNamespace.SYSTEM, STORAGE_POLICY):
                return xattr.value[0] if xattr.value else 0
    return 0


def effective_policy_id(
    node: inode.INode | None, *, top: inode.INode | None = None, above_top: int = 0
) -> int:
    """Return the policy set on the inode or on the nearest directory above it; 0 if none is.

    ``above_top`` takes the place of what is set above the directory ``top``.
    """
    while node is not None:
        policy_id = storage_policy_of(node)
        if policy_id:
            return policy_id
        if node is top:
            return above_top
        node = node.parent
    return 0


def charged_bytes(file: inode.INodeFile) -> int:
    """Return the bytes of a file's blocks, each once, with those that only snapshots have.

    The last block of an open file counts as a whole one: it may become one without another check
    (INodeFile.storagespaceConsumedContiguous).
    """
    whole = file.preferred_block_size
    if file.history is None and file.under_construction is None:
        return file.length()
    return sum(held.length if held.complete else whole for _, held in blocks_held(file))


def use_of_file(file: inode.INodeFile, policy_id: int) -> Use:
    """Return what a file uses; ``policy_id`` is that of the directory, if it has none."""
    size = charged_bytes(file)
    kind = Kind(file.storage_policy_id or policy_id, expected_replication(file))
    return Use(1, {kind: size} if size else {})


def above(directory: inode.INodeDirectory | None) -> Iterator[inode.INodeDirectory]:
    """Yield a directory and all above it."""
    while directory is not None:
        yield directory
        directory = directory.parent


class Usage:
    """The use of directories that have quotas: counted when it is first asked for, then kept.

    ``live`` is that of the tree, ``held`` that of snapshots alone, both by the directory's id.
    Whatever changes a file calls ``touch`` first, and ``settle`` comes at the end of each edit:
    between the two the file's bytes count nowhere.
    """

    __slots__ = ("_changing", "_leaving", "_left", "held", "live")

    def __init__(self) -> None:
        self.live: dict[int, Use] = {}
        self.held: dict[int, Use] = {}
        self._changing: dict[int, inode.INodeFile] = {}
        self._leaving: list[tuple[inode.INode, inode.INodeDirectory]] = []
        self._left: dict[int, int] = {}
        """The storage policies of the places that directories were taken out of, by their ids."""

    def of(self, directory: inode.INodeDirectory) -> Use:
        """Return what is used in a directory, itself included and snapshots left out.

        The first question costs a walk; then a quota does not make every call in it slow.
        """
        if directory.id not in self.live:
            self.live[directory.id] = self.of_tree(directory, effective_policy_id(directory.parent))
        return self.live[directory.id]

    def of_tree(self, top: inode.INode, policy_id: int) -> Use:
        """Return the use of a node and all below it; ``policy_id`` is that of its directory.

        Millions of files are counted while nothing else is served: no object is made for each.
        """
        names, changing, sizes = 1, self._changing, dict[tuple[int, int], int]()
        waiting: list[tuple[Iterable[inode.INode], int]] = [((top,), policy_id)]
        while waiting:
            nodes, policy_id = waiting.pop()
            for node in nodes:
                if isinstance(node, inode.INodeFile):
                    if (not changing or node.id not in changing) and (size := charged_bytes(node)):
                        kind = node.storage_policy_id or policy_id, expected_replication(node)
                        sizes[kind] = sizes.get(kind, 0) + size
                elif isinstance(node, inode.INodeDirectory) and node.children:
                    names += len(node.children)
                    below = storage_policy_of(node) or policy_id
                    waiting.append((node.children.values(), below))
        return Use(names, {Kind(*kind): size for kind, size in sizes.items()})

    def move(self, directory: inode.INodeDirectory, child: inode.INode, sign: int) -> None:
        """Count a child that came to a directory; with the sign -1 one that left it."""
        policy_id = effective_policy_id(directory)
        if isinstance(child, inode.INodeDirectory):
            if sign < 0:
                self._left[child.id] = policy_id
            elif self._left.get(child.id, policy_id) != policy_id:
                self.clear()  # directories in it are kept with the policy of the old place
        counted = [step.id for step in above(directory) if step.id in self.live]
        if counted:
            use = self.of_tree(child, policy_id)
            for number in counted:
                self.live[number].add(use, sign)

    def hold(self, child: inode.INode, parent: inode.INodeDirectory, *, kept: bool) -> None:
        """Note that a child came to a directory, or has left it where snapshots may have kept it.

        What a moved inode has may be seen by its old names as well, and what is below one that
        leaves may be held no longer: then all is counted anew.
        """
        if not self.held:
            return
        full = isinstance(child, inode.INodeDirectory) and (child.children or child.history)
        if full or _has_moved(child, parent):
            self.held.clear()
        elif kept:
            self._leaving.append((child, parent))

    def touch(self, file: inode.INodeFile) -> None:
        """Stop counting the bytes of a file of the tree that is about to change.

        A moved one is seen by its old names in snapshots, too, by the lengths that it has now.
        """
        if self.held and _has_moved(file, file.parent):
            self.held.clear()
        if self.live and _is_linked(file) and file.id not in self._changing:
            self._charge(file, -1)
            self._changing[file.id] = file

    def settle(self, inodes: InodeMap) -> None:
        """Count again what an edit has changed; ``inodes`` are those that there are now."""
        if self._changing:
            changed = list(self._changing.values())
            self._changing.clear()
            for file in changed:
                if _is_linked(file) and inodes.get(file.id) is file:
                    self._charge(file, 1)
        for child, parent in self._leaving:
            use = self.of_tree(child, effective_policy_id(parent))
            for step in above(parent):
                if step.id in self.held:
                    self.held[step.id].add(use)
        self._leaving.clear()
        self._left.clear()

    def _charge(self, file: inode.INodeFile, sign: int) -> None:
        counted = [step.id for step in above(file.parent) if step.id in self.live]
        if counted:
            use = use_of_file(file, effective_policy_id(file.parent))
            use.names = 0
            for number in counted:
                self.live[number].add(use, sign)

    def forget(self, number: int) -> None:
        """Drop what is kept of a directory that goes."""
        self.live.pop(number, None)
        self.held.pop(number, None)

    def clear(self) -> None:
        """Drop all that is kept, after a change that concerns what is below a directory."""
        self.live.clear()
        self.held.clear()


def _has_moved(node: inode.INode, parent: inode.INodeDirectory | None) -> bool:
    """Return whether a node, or a directory above it, has old names in snapshots."""
    return node.reference is not None or any(step.reference for step in above(parent))


def _is_linked(file: inode.INodeFile) -> bool:
    return file.parent is not None and file.parent.children.get(file.name) is file

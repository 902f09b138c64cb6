"""The tree of inodes: finding a path, linking and unlinking a node, and who writes which file."""

from bisect import bisect_left, insort
from collections.abc import Sequence

from namenode_sim.namespace import inode
from namenode_sim.namespace.changes import BlockWatch
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import signed_order
from namenode_sim.namespace.inode_map import InodeMap
from namenode_sim.namespace.usage import Usage


def components(path: str) -> list[bytes]:
    """Return the names along an absolute path.  A lone surrogate becomes ``?``, as in Java."""
    return [name for name in path.encode("utf-8", "replace").split(b"/") if name]


def new_root(user: str, group: str, mode: int = 0o755) -> inode.INodeDirectory:
    """Return the root of an empty file system (FSDirectory.createRoot)."""
    return inode.INodeDirectory(
        inode.ROOT_ID, b"", user, group, mode, mtime=0, quotas=inode.ROOT_QUOTAS
    )


class Tree:
    """All inodes.  Every inode reachable from ``root`` is in ``inodes``, by its id.

    So is what only snapshots have.  Unless ``has_snapshots``, no inode has a history.  ``watch``
    notes what edits change about blocks, if somebody wants to know.
    """

    __slots__ = (
        "_interned",
        "has_snapshots",
        "inodes",
        "leases",
        "root",
        "usage",
        "watch",
    )

    def __init__(self, root: inode.INodeDirectory) -> None:
        self.root = root
        self.inodes = InodeMap([root])
        self.leases: dict[str, set[int]] = {}
        self.has_snapshots = False
        self.watch: BlockWatch | None = None
        self._interned: dict[str, str] = {}
        self.usage = Usage()

    def intern(self, text: str) -> str:
        return self._interned.setdefault(text, text)

    def along(self, names: Sequence[bytes]) -> list[inode.INode | None]:
        """Return the inodes at these names from the root on; the last is None if missing."""
        node: inode.INode | None = self.root
        nodes = [node]
        for name in names:
            node = node.children.get(name) if isinstance(node, inode.INodeDirectory) else None
            nodes.append(node)
            if node is None:
                break
        return nodes

    def find(self, path: str) -> inode.INode | None:
        """Return the inode at a path, or None.  Symlinks are not followed."""
        node: inode.INode | None = self.root
        for name in components(path):
            if not isinstance(node, inode.INodeDirectory):
                return None
            node = node.children.get(name)
        return node

    def resolved(self, path: str) -> str:
        """Return the path that a logged one means: by ``/.reserved/raw`` or ``.inodes``, or itself.

        Hadoop logs the paths of snapshots' calls and of setQuota as its clients write them.
        """
        if not path.startswith("/.reserved/"):
            return path
        above = ""
        match components(path)[1:]:
            case [b".inodes", number, *rest]:
                node = self.inodes.get(int(number)) if number.isdigit() else None
                if node is None:
                    raise ApplyError(f"{path} does not exist")
                if rest[:1] == [b".."]:  # nothing behind it counts
                    node, rest = node.parent or node, []
                above = inode.full_path(node).rstrip("/")
            case [b"raw", *rest]:
                pass
            case _:
                return path
        return above + "".join(f"/{name.decode('utf-8', 'replace')}" for name in rest) or "/"

    def parent_of(self, path: str) -> tuple[inode.INodeDirectory | None, bytes]:
        """Return the directory that holds (or would hold) a path, and the last name on it."""
        *above, name = components(path) or [b""]
        node: inode.INode | None = self.root
        for part in above:
            if not isinstance(node, inode.INodeDirectory):
                return None, name
            node = node.children.get(part)
        return (node if isinstance(node, inode.INodeDirectory) else None), name

    def file(self, path: str) -> inode.INodeFile:
        node = self.find(path)
        if not isinstance(node, inode.INodeFile):
            raise ApplyError(f"{path} is not a file of the namespace")
        return node

    def node(self, path: str) -> inode.INode:
        node = self.find(path)
        if node is None:
            raise ApplyError(f"{path} does not exist")
        return node

    def link(self, parent: inode.INodeDirectory, child: inode.INode) -> None:
        """Put a node (with all below it already known, or new) into a directory."""
        if child.name in parent.children:
            raise ApplyError(f"{inode.full_path(parent)} already has an entry {child.name!r}")
        parent.children[child.name] = child
        if parent.sorted_names is not None:
            insort(parent.sorted_names, child.name, key=signed_order)
        child.parent = parent
        self.inodes[child.id] = child
        if self.usage.live:
            self.usage.move(parent, child, 1)

    def unlink(self, child: inode.INode) -> inode.INodeDirectory:
        """Take a node out of its directory (which is returned); it stays in ``inodes``."""
        parent = child.parent
        if parent is None:
            raise ApplyError("the root cannot be unlinked")
        del parent.children[child.name]
        names = parent.sorted_names
        if names is not None:
            del names[bisect_left(names, signed_order(child.name), key=signed_order)]
        if self.usage.live:
            self.usage.move(parent, child, -1)
        child.parent = None
        return parent

    def forget(self, top: inode.INode) -> None:
        """Drop an unlinked node and all below it from the inode map and the leases."""
        for node in inode.subtree(top):
            self.drop(node)

    def drop(self, node: inode.INode) -> None:
        if self.watch is not None and isinstance(node, inode.INodeFile):
            self.watch.drop(node)
        self.inodes.discard(node.id)
        self.usage.forget(node.id)
        node.parent = None  # no cycles are left for the garbage collector to find
        if isinstance(node, inode.INodeFile):
            self.drop_lease(node)

    def touch(self, file: inode.INodeFile) -> None:
        """Note that the blocks of a file, or what is known of them, are about to change."""
        self.usage.touch(file)
        if self.watch is not None:
            self.watch.touch(file)

    def add_lease(self, file: inode.INodeFile) -> None:
        """Note that the holder in ``file.under_construction`` writes this file."""
        if file.under_construction is not None:
            holder = file.under_construction.client_name
            self.leases.setdefault(holder, set()).add(file.id)

    def drop_lease(self, file: inode.INodeFile) -> None:
        """Undo ``add_lease``; nothing if the file is closed."""
        if file.under_construction is None:
            return
        holder = file.under_construction.client_name
        files = self.leases.get(holder, set())
        files.discard(file.id)
        if not files:
            self.leases.pop(holder, None)

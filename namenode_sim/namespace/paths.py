"""Edits about names: directories, renames, deletes and symlinks.

See docs/reference/namenode.md#effects-of-edits.
"""

from namenode_sim.edits import ops
from namenode_sim.edits.values import RenameOption
from namenode_sim.namespace.acl import set_acl
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeSymlink
from namenode_sim.namespace.snapshots.diffs import add_child, latest_snapshot
from namenode_sim.namespace.snapshots.renames import delete as delete_below_snapshots
from namenode_sim.namespace.snapshots.renames import move as move_below_snapshots
from namenode_sim.namespace.snapshots.snapshots import forget_snapshottable, snapshottable_below
from namenode_sim.namespace.state import Snapshots
from namenode_sim.namespace.tree import Tree, components


def insert(tree: Tree, parent: INodeDirectory, node: INode, path: str) -> None:
    """Add a new child at a path; the parent's mtime becomes the later of its and the child's."""
    if tree.has_snapshots:
        add_child(tree, parent, node, latest_snapshot(tree, path))
        return
    tree.link(parent, node)
    parent.mtime = max(parent.mtime, node.mtime)


def delete_node(tree: Tree, snapshots: Snapshots, node: INode, path: str, time: int) -> None:
    """Remove a node and all below it, but for what snapshots hold.

    Raises:
        ApplyError: if a directory below has snapshots of its own.
    """
    leaving = snapshottable_below(tree, snapshots, node)
    if tree.has_snapshots:
        delete_below_snapshots(tree, node, time, latest_snapshot(tree, path))
    else:
        parent = tree.unlink(node)
        parent.mtime = max(parent.mtime, time)
        tree.forget(node)
    forget_snapshottable(snapshots, leaving)


def mkdir(tree: Tree, op: ops.Mkdir, inode_id: int) -> None:
    """Create a directory; an existing entry is left alone, and logged xattrs are not applied."""
    parent, name = tree.parent_of(op.path)
    if parent is None:
        raise ApplyError(f"{op.path} has no directory to be created in")
    if not name or name in parent.children:
        return
    directory = INodeDirectory(
        id=inode_id,
        name=name,
        user=tree.intern(op.permission.user),
        group=tree.intern(op.permission.group) or parent.group,
        mode=op.permission.mode,
        mtime=op.time,
    )
    if op.acl:
        set_acl(directory, op.acl)
    insert(tree, parent, directory, op.path)


def delete(tree: Tree, snapshots: Snapshots, op: ops.Delete) -> None:
    node = tree.find(op.path)
    if node is not None and node.parent is not None:
        delete_node(tree, snapshots, node, op.path, op.time)


def symlink(tree: Tree, op: ops.Symlink, inode_id: int) -> None:
    parent, name = tree.parent_of(op.path)
    if parent is None or not name:
        raise ApplyError(f"{op.path} has no directory to be created in")
    link = INodeSymlink(
        id=inode_id,
        name=name,
        user=tree.intern(op.permission.user),
        group=tree.intern(op.permission.group) or parent.group,
        mode=op.permission.mode,
        mtime=op.mtime,
        atime=op.atime,
        target=op.target.encode("utf-8", "replace"),
    )
    insert(tree, parent, link, op.path)


def rename_old(tree: Tree, snapshots: Snapshots, op: ops.RenameOld) -> None:
    """Move a path with the first semantics: into an existing directory, and failing silently."""
    destination = old_rename_target(tree, op.src, op.dst)
    if destination is not None and components(destination) != components(op.src):
        snapshottable_below(tree, snapshots, tree.node(op.src))
        _move(tree, op.src, destination, op.time)


def old_rename_target(tree: Tree, src: str, dst: str) -> str | None:
    """Return where the boolean rename would put ``src``; None if it would answer false.

    The path of ``src`` itself means: true, and nothing to do.
    """
    source = tree.find(src)
    if source is None or source.parent is None:
        return None
    if isinstance(tree.find(dst), INodeDirectory):
        dst = f"{dst.rstrip('/')}/{source.name.decode('utf-8', 'replace')}"
    names, source_names = components(dst), components(src)
    if names == source_names:
        return dst
    if names[: len(source_names)] == source_names or tree.find(dst) is not None:
        return None
    parent, _ = tree.parent_of(dst)
    return dst if parent is not None else None


def rename(tree: Tree, snapshots: Snapshots, op: ops.Rename) -> None:
    """Move a path; with OVERWRITE a file or an empty directory at the destination goes first."""
    source, existing = tree.node(op.src), tree.find(op.dst)
    names, source_names = components(op.dst), components(op.src)
    if names[: len(source_names)] == source_names:
        raise ApplyError(f"{op.src} cannot be renamed to {op.dst}, which is at or below it")
    if existing is not None:
        if RenameOption.OVERWRITE not in op.options:
            raise ApplyError(f"{op.dst} exists and {op.src} may not replace it")
        if isinstance(existing, INodeDirectory) != isinstance(source, INodeDirectory):
            raise ApplyError(f"{op.src} and {op.dst} must both be directories, or neither")
        if isinstance(existing, INodeDirectory) and existing.children:
            raise ApplyError(f"{op.dst} is not empty")
    snapshottable_below(tree, snapshots, source)
    leaving = [] if existing is None else snapshottable_below(tree, snapshots, existing)
    _move(tree, op.src, op.dst, op.time)
    forget_snapshottable(snapshots, leaving)


def _move(tree: Tree, src: str, destination: str, time: int) -> None:
    node = tree.node(src)
    parent, name = tree.parent_of(destination)
    if parent is None:
        raise ApplyError(f"{destination} has no directory to be moved into")
    if tree.has_snapshots:
        latest = latest_snapshot(tree, src), latest_snapshot(tree, destination)
        move_below_snapshots(tree, node, parent, name, time, latest)
        return
    left = tree.unlink(node)
    if name in parent.children:
        replaced = parent.children[name]
        tree.unlink(replaced)
        tree.forget(replaced)
    node.name = name
    tree.link(parent, node)
    parent.mtime = max(parent.mtime, node.mtime, time)
    left.mtime = max(left.mtime, time)

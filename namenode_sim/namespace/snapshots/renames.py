"""Deleting and moving nodes below snapshots (FSDirDeleteOp, FSDirRenameOp.RenameOperation)."""

from collections.abc import Callable
from functools import partial

from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.snapshots import diffs
from namenode_sim.namespace.snapshots.deletion import clean, destroy, run
from namenode_sim.namespace.snapshots.files import Reclaim, leave_file
from namenode_sim.namespace.snapshots.references import add_old_name, remove_place
from namenode_sim.namespace.tree import Tree


def delete(tree: Tree, node: namespace_inode.INode, time: int, latest: int) -> None:
    """Take a node out of the current tree; ``latest`` is that of its path."""
    entry = diffs.entry_of(node)
    diffs.record(node, latest)
    parent = _take_out(tree, entry, latest)[0]
    diffs.update_mtime(parent, time, latest)
    _let_go(tree, entry, latest)


def _take_out(
    tree: Tree, entry: namespace_inode.Entry, latest: int
) -> tuple[namespace_inode.INodeDirectory, bool]:
    """Unlink an entry (FSDirectory.removeLastINode); return its parent, and if it may go."""
    parent = diffs.remove_child(tree, entry, latest)
    elsewhere = not diffs.in_latest(entry, latest) and remove_place(entry) > 0
    return parent, not elsewhere


def _let_go(tree: Tree, entry: namespace_inode.Entry, latest: int) -> None:
    context = Reclaim(tree.watch)
    if diffs.in_latest(entry, latest):
        run(clean(context, entry, diffs.CURRENT, latest))
    else:
        run(destroy(context, entry))
    context.finish(tree)


def move(
    tree: Tree,
    node: namespace_inode.INode,
    parent: namespace_inode.INodeDirectory,
    name: bytes,
    time: int,
    latest: tuple[int, int],
) -> None:
    """Move a node to a name in a directory; what has that name there goes.

    ``latest`` are the latest snapshots of the path that the node leaves and of its new one.
    """
    of_source, of_target = latest
    reference, source = _leave(tree, node, of_source)
    replaced = parent.children.get(name)
    settle = None if replaced is None else _make_way(tree, diffs.entry_of(replaced), of_target)
    node.name = name
    if reference is not None:
        reference.place = namespace_inode.NewPlace(parent, reference, of_target)
    diffs.add_child(tree, parent, node, of_target)
    diffs.update_mtime(source, time, of_source)
    diffs.update_mtime(parent, time, of_target)
    if settle is not None:
        settle()


def _make_way(tree: Tree, gone: namespace_inode.Entry, latest: int) -> Callable[[], None]:
    """Take out what another comes in the place of; what is to do once that has come."""
    if _take_out(tree, gone, latest)[1]:
        return partial(_let_go, tree, gone, latest)
    return partial(_leave_to_old_names, tree, gone)


def _leave_to_old_names(tree: Tree, gone: namespace_inode.Entry) -> None:
    """Leave an overwritten node that had moved there as it is, unlike when it is deleted."""
    context, inode = Reclaim(tree.watch), diffs.inode_of(gone)
    if isinstance(inode, namespace_inode.INodeFile):
        leave_file(context, inode)
    context.finish(tree)


def _leave(
    tree: Tree, node: namespace_inode.INode, latest: int
) -> tuple[namespace_inode.Reference | None, namespace_inode.INodeDirectory]:
    """Take a node out of its place; what will hold its places together, and its old directory."""
    entry = diffs.entry_of(node)
    if diffs.in_latest(entry, latest):
        # From now on, until a snapshot is taken there, changes belong to the snapshots here.
        diffs.record(node, latest, with_blocks=isinstance(node, namespace_inode.INodeFile))
        assert isinstance(entry.parent, namespace_inode.INodeDirectory)
        entry = add_old_name(entry.parent, entry, latest)
    source, _ = _take_out(tree, entry, latest)
    return node.reference, source

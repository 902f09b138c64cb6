"""Deleting and moving nodes below snapshots (FSDirDeleteOp, FSDirRenameOp.RenameOperation)."""

from collections.abc import Callable
from functools import partial

from namenode_sim.namespace.inode import (
    Entry,
    INode,
    INodeDirectory,
    INodeFile,
    NewPlace,
    Reference,
)
from namenode_sim.namespace.snapshots.deletion import clean, destroy, run
from namenode_sim.namespace.snapshots.diffs import (
    CURRENT,
    add_child,
    entry_of,
    in_latest,
    inode_of,
    record,
    remove_child,
    update_mtime,
)
from namenode_sim.namespace.snapshots.files import Reclaim, leave_file
from namenode_sim.namespace.snapshots.references import add_old_name, remove_place
from namenode_sim.namespace.tree import Tree


def delete(tree: Tree, node: INode, time: int, latest: int) -> None:
    """Take a node out of the current tree; ``latest`` is that of its path."""
    entry = entry_of(node)
    record(node, latest)
    parent = _take_out(tree, entry, latest)[0]
    update_mtime(parent, time, latest)
    _let_go(tree, entry, latest)


def _take_out(tree: Tree, entry: Entry, latest: int) -> tuple[INodeDirectory, bool]:
    """Unlink an entry (FSDirectory.removeLastINode); return its parent, and if it may go."""
    parent = remove_child(tree, entry, latest)
    elsewhere = not in_latest(entry, latest) and remove_place(entry) > 0
    return parent, not elsewhere


def _let_go(tree: Tree, entry: Entry, latest: int) -> None:
    context = Reclaim(tree.watch)
    if in_latest(entry, latest):
        run(clean(context, entry, CURRENT, latest))
    else:
        run(destroy(context, entry))
    context.finish(tree)


def move(
    tree: Tree,
    node: INode,
    parent: INodeDirectory,
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
    settle = None if replaced is None else _make_way(tree, entry_of(replaced), of_target)
    node.name = name
    if reference is not None:
        reference.place = NewPlace(parent, reference, of_target)
    add_child(tree, parent, node, of_target)
    update_mtime(source, time, of_source)
    update_mtime(parent, time, of_target)
    if settle is not None:
        settle()


def _make_way(tree: Tree, gone: Entry, latest: int) -> Callable[[], None]:
    """Take out what another comes in the place of; what is to do once that has come."""
    if _take_out(tree, gone, latest)[1]:
        return partial(_let_go, tree, gone, latest)
    return partial(_leave_to_old_names, tree, gone)


def _leave_to_old_names(tree: Tree, gone: Entry) -> None:
    """Leave an overwritten node that had moved there as it is, unlike when it is deleted."""
    context, inode = Reclaim(tree.watch), inode_of(gone)
    if isinstance(inode, INodeFile):
        leave_file(context, inode)
    context.finish(tree)


def _leave(tree: Tree, node: INode, latest: int) -> tuple[Reference | None, INodeDirectory]:
    """Take a node out of its place; what will hold its places together, and its old directory."""
    entry = entry_of(node)
    if in_latest(entry, latest):
        # From now on, until a snapshot is taken there, changes belong to the snapshots here.
        record(node, latest, with_blocks=isinstance(node, INodeFile))
        assert isinstance(entry.parent, INodeDirectory)
        entry = add_old_name(entry.parent, entry, latest)
    source, _ = _take_out(tree, entry, latest)
    return node.reference, source

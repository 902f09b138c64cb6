"""What snapshots alone hold: it counts for quotas, although no path leads to it.  Pure."""

from collections.abc import Iterator

from namenode_sim.namespace import inode
from namenode_sim.namespace.snapshots.diffs import inode_of
from namenode_sim.namespace.snapshots.view import look
from namenode_sim.namespace.tree import Tree
from namenode_sim.namespace.usage import Use, effective_policy_id, use_of_file


def only_in_snapshots(node: inode.INode) -> Iterator[inode.INode]:
    """Yield what was below a directory and only snapshots have (computeContentSummary4Snapshot)."""
    if not isinstance(node, inode.INodeDirectory) or node.history is None:
        return
    for diff in node.history.diffs:
        for name, entry in diff.deleted.items():
            if isinstance(entry, inode.OldName):
                for sight in look(entry, name, entry.last_snapshot_id).subtree():
                    yield sight.node
                continue
            for gone in inode.subtree(inode_of(entry)):
                yield gone
                yield from only_in_snapshots(gone)


def use_below(tree: Tree, top: inode.INode, policy_id: int) -> Use:
    """Return what a node and all below it use, and what snapshots alone hold there.

    ``policy_id`` is the storage policy of the directory that it is in, or is to come to.
    """
    total = tree.usage.of_tree(top, policy_id)
    if tree.has_snapshots:
        total.add(_held_below(top, policy_id))
    return total


def use_of(tree: Tree, directory: inode.INodeDirectory) -> Use:
    """Return what a directory uses, itself and what snapshots alone hold included.

    The part of snapshots is kept, as that of the tree is, until a directory goes or moves, or a
    snapshot is deleted.
    """
    total = Use()
    total.add(tree.usage.of(directory))
    if tree.has_snapshots:
        if directory.id not in tree.usage.held:
            policy_id = effective_policy_id(directory.parent)
            tree.usage.held[directory.id] = _held_below(directory, policy_id)
        total.add(tree.usage.held[directory.id])
    return total


def _held_below(top: inode.INode, above_top: int) -> Use:
    total = Use()
    for node in inode.subtree(top):
        for gone in only_in_snapshots(node):
            if isinstance(gone, inode.INodeFile):
                policy_id = effective_policy_id(gone.parent, top=top, above_top=above_top)
                total.add(use_of_file(gone, policy_id))
            else:
                total.names += 1
    return total

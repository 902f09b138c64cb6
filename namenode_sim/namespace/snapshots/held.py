"""What snapshots alone hold: it counts for name quotas, although no path leads to it.  Pure."""

from collections.abc import Iterator

from namenode_sim.namespace import inode
from namenode_sim.namespace.snapshots.diffs import inode_of
from namenode_sim.namespace.snapshots.view import look
from namenode_sim.namespace.tree import Tree


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


def count(tree: Tree, directory: inode.INodeDirectory) -> int:
    """Return how many inodes a directory holds, itself and those of snapshots alone included.

    The part of snapshots is kept, as that of the tree is, until a directory goes or moves, or a
    snapshot is deleted.
    """
    if not tree.has_snapshots:
        return tree.count(directory)
    if directory.id not in tree.held:
        tree.held[directory.id] = sum(
            sum(1 for _ in only_in_snapshots(node)) for node in inode.subtree(directory)
        )
    return tree.count(directory) + tree.held[directory.id]

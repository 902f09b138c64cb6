"""The places of an inode that was moved while a snapshot held it (Hadoop's INodeReference).

Its old directory keeps an ``OldName`` in a deleted list, its new one stands for a ``NewPlace``;
both share one ``Reference``.  The inode goes when the last place does.
"""

from bisect import bisect_left, insort

from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.snapshots.diffs import CURRENT, NONE, diffs_of, last_id, prior_id


def _snapshot_of(old_name: namespace_inode.OldName) -> int:
    return old_name.last_snapshot_id


def add_old_name(
    parent: namespace_inode.INodeDirectory, child: namespace_inode.Entry, latest: int
) -> namespace_inode.OldName:
    """Put an old name in the place of a child that is about to move away from its directory.

    The lists of the directory's diffs follow (INodeDirectory.replaceChild4ReferenceWithName).
    """
    assert not isinstance(child, namespace_inode.OldName)
    name = child.name
    if isinstance(child, namespace_inode.NewPlace):
        reference = child.reference
        reference.place = None
    else:
        reference = child.reference = namespace_inode.Reference(child)
    old_name = namespace_inode.OldName(parent, reference, name, latest)
    add_to(reference, old_name)
    for diff in reversed(parent.history.diffs if parent.history is not None else []):
        if diff.created.get(name) is child:
            diff.created[name] = old_name
            break
    return old_name


def add_to(reference: namespace_inode.Reference, old_name: namespace_inode.OldName) -> None:
    """Note an old name; raise ApplyError if there is one of the same snapshot."""
    if old_name.last_snapshot_id in map(_snapshot_of, reference.old_names):
        raise ApplyError(
            f"inode {reference.inode.id} has two names in snapshot {old_name.last_snapshot_id}"
        )
    insort(reference.old_names, old_name, key=_snapshot_of)


def remove_place(entry: namespace_inode.Entry) -> int:
    """Forget a place; return how many are left, -1 for an inode that was never moved."""
    if not isinstance(entry, namespace_inode.OldName | namespace_inode.NewPlace):
        return -1
    reference = entry.reference
    if isinstance(entry, namespace_inode.OldName):
        reference.old_names = [
            name for name in reference.old_names if name.last_snapshot_id != entry.last_snapshot_id
        ]
    elif reference.place is entry:
        reference.place = None
        reference.inode.parent = None
    return reference.count()


def prior_place_snapshot(entry: namespace_inode.OldName | namespace_inode.NewPlace) -> int:
    """Return the newest diff that belongs to the place before this one (getPriorSnapshot)."""
    names = entry.reference.old_names
    if isinstance(entry, namespace_inode.OldName):
        names = names[: bisect_left(names, entry.last_snapshot_id, key=_snapshot_of)]
    return _newest(entry.reference.inode, names[-1].last_snapshot_id) if names else NONE


def own_snapshot(entry: namespace_inode.OldName) -> int:
    """Return the newest diff up to the snapshot that an old name belongs to (getSelfSnapshot)."""
    return _newest(entry.reference.inode, entry.last_snapshot_id)


def _newest(inode: namespace_inode.INode, anchor: int) -> int:
    if isinstance(inode, namespace_inode.INodeSymlink) or inode.history is None:
        return NONE
    return prior_id(inode.history.diffs, anchor)


def snapshot_since(entry: namespace_inode.NewPlace, prior: int) -> int:
    """Return the newest diff made at this place, CURRENT if none was."""
    last = last_id(diffs_of(entry.reference.inode) or ())
    return CURRENT if last == prior else last


def is_last_place(node: namespace_inode.INode) -> bool:
    """Return whether a node was moved, and only one place of it is left."""
    return node.reference is not None and node.reference.count() == 1

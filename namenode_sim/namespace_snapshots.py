"""Edits about snapshots, and the guard that keeps what snapshots hold from being changed.

Taking, renaming and dropping snapshots is exact as long as nothing below them changes; an edit
that would have to save an old state first is refused (SnapshotsNotSupported), because to apply it
without saving would quietly alter the snapshot.
"""

from dataclasses import replace

from namenode_sim.edits import ops
from namenode_sim.inode import INode, INodeDirectory
from namenode_sim.namespace_errors import ApplyError, SnapshotsNotSupported
from namenode_sim.namespace_state import Snapshot, Snapshots
from namenode_sim.namespace_tree import Tree

SnapshotOp = (
    ops.AllowSnapshot
    | ops.DisallowSnapshot
    | ops.CreateSnapshot
    | ops.DeleteSnapshot
    | ops.RenameSnapshot
)


def guard(tree: Tree, snapshots: Snapshots, path: str) -> None:
    """Refuse a change at a path that lies in a snapshot."""
    for node in tree.walk(path):
        if node is None:
            return
        if snapshots.snapshottable.get(node.id):
            raise SnapshotsNotSupported(f"{path} is in a snapshot; changing it is not built yet")
        if snapshots.carried is not None and node.id in snapshots.carried.referred:
            raise SnapshotsNotSupported(f"{path} was moved out of a snapshot")


def guard_removal(tree: Tree, snapshots: Snapshots, path: str) -> None:
    """Refuse to remove a tree that holds snapshots."""
    gone = tree.find(path)
    for number, taken in snapshots.snapshottable.items():
        step: INode | None = tree.inodes.get(number)
        while taken and step is not None:
            if step is gone:
                raise SnapshotsNotSupported(f"{path} holds snapshots and cannot be removed")
            step = step.parent


def forget_removed(tree: Tree, snapshots: Snapshots) -> None:
    """Drop snapshottable directories that went away with the tree they were in."""
    gone = [number for number in snapshots.snapshottable if number not in tree.inodes]
    for number in gone:
        del snapshots.snapshottable[number]


def apply_snapshot(  # noqa: C901 - flat dispatch
    tree: Tree, snapshots: Snapshots, op: SnapshotOp
) -> None:
    """Allow, disallow, take, drop or rename snapshots of a directory."""
    directory = tree.node(op.snapshot_root)
    if not isinstance(directory, INodeDirectory):
        raise ApplyError(f"{op.snapshot_root} is not a directory")
    if isinstance(op, ops.AllowSnapshot):
        snapshots.snapshottable.setdefault(directory.id, [])
        return
    taken = snapshots.snapshottable.get(directory.id)
    if taken is None:
        if isinstance(op, ops.DisallowSnapshot):
            return
        raise ApplyError(f"{op.snapshot_root} is not snapshottable")
    match op:
        case ops.DisallowSnapshot():
            if taken:
                raise ApplyError(f"{op.snapshot_root} still has {len(taken)} snapshots")
            del snapshots.snapshottable[directory.id]
        case ops.CreateSnapshot():
            _create(snapshots, directory, taken, op)
        case ops.DeleteSnapshot():
            if snapshots.carried is not None:
                raise SnapshotsNotSupported(f"dropping {op.snapshot_name} is not built yet")
            del taken[_index(taken, op.snapshot_name)]
            directory.mtime = max(directory.mtime, op.mtime or 0)
        case ops.RenameSnapshot():
            index = _index(taken, op.old_name)
            taken[index] = replace(taken[index], name=op.new_name)
            directory.mtime = max(directory.mtime, op.mtime or 0)


def _create(
    snapshots: Snapshots,
    directory: INodeDirectory,
    taken: list[Snapshot],
    op: ops.CreateSnapshot,
) -> None:
    if any(snapshot.name == op.snapshot_name for snapshot in taken):
        raise ApplyError(f"{op.snapshot_root} already has a snapshot {op.snapshot_name!r}")
    # A log before layout -66 tells no time; Hadoop's trunk then reads 0 (hadoop-formats 4.2).
    directory.mtime = max(directory.mtime, op.mtime or 0)
    root = replace(directory, mtime=op.mtime or 0, parent=None, children={}, sorted_names=None)
    taken.append(Snapshot(snapshots.counter, op.snapshot_name, root))
    snapshots.counter += 1


def _index(taken: list[Snapshot], name: str) -> int:
    for index, snapshot in enumerate(taken):
        if snapshot.name == name:
            return index
    raise ApplyError(f"there is no snapshot {name!r}")

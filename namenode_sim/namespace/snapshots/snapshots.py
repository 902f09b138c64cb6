"""Edits about snapshots themselves: allow, disallow, take, drop, rename (SnapshotManager)."""

from namenode_sim.edits import ops
from namenode_sim.edits.values import XAttr, XAttrNamespace
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import (
    DirectoryDiff,
    DirectoryHistory,
    INode,
    INodeDirectory,
    full_path,
)
from namenode_sim.namespace.snapshots.deletion import clean, run
from namenode_sim.namespace.snapshots.diffs import (
    NONE,
    copy_of_directory,
    later_prior,
    latest_snapshot,
    record,
)
from namenode_sim.namespace.snapshots.files import Reclaim
from namenode_sim.namespace.state import Snapshot, Snapshots
from namenode_sim.namespace.tree import Tree
from namenode_sim.namespace.usage import above

SnapshotOp = (
    ops.AllowSnapshot
    | ops.DisallowSnapshot
    | ops.CreateSnapshot
    | ops.DeleteSnapshot
    | ops.RenameSnapshot
)

DELETED_MARK = XAttr(XAttrNamespace.SYSTEM, "hdfs.snapshot.deleted", None)
"""On the root of a snapshot that is to be deleted once it is the oldest."""


def snapshottable_below(tree: Tree, snapshots: Snapshots, node: INode) -> list[INodeDirectory]:
    """Return the snapshottable directories at or below a node.

    Raises:
        ApplyError: if one of them has snapshots, so that the node may be neither moved nor removed.
    """
    found = []
    for number, taken in snapshots.snapshottable.items():
        directory = tree.inodes[number]
        assert isinstance(directory, INodeDirectory)
        if not is_at_or_below(directory, node):
            continue
        if taken:
            raise ApplyError(
                f"{full_path(directory)} is snapshottable and has {len(taken)} snapshots, it stays"
            )
        found.append(directory)
    return found


def is_at_or_below(node: INode, top: INode) -> bool:
    return node is top or any(step is top for step in above(node.parent))


def forget_snapshottable(snapshots: Snapshots, directories: list[INodeDirectory]) -> None:
    """Note that snapshottable directories left the tree; snapshots above may still have them."""
    for directory in directories:
        del snapshots.snapshottable[directory.id]
        assert directory.history is not None
        directory.history.snapshottable = False


def apply_snapshot(tree: Tree, snapshots: Snapshots, op: SnapshotOp) -> None:
    """Allow, disallow, take, drop or rename snapshots of a directory."""
    directory = tree.node(tree.resolved(op.snapshot_root))
    if not isinstance(directory, INodeDirectory):
        raise ApplyError(f"{op.snapshot_root} is not a directory")
    if isinstance(op, ops.AllowSnapshot):
        _allow(snapshots, directory)
        return
    taken = snapshots.snapshottable.get(directory.id)
    if taken is None:
        if isinstance(op, ops.DisallowSnapshot):
            return
        raise ApplyError(f"{op.snapshot_root} is not snapshottable")
    match op:
        case ops.DisallowSnapshot():
            _disallow(snapshots, directory, taken)
        case ops.CreateSnapshot():
            _create(tree, snapshots, directory, taken, op)
        case ops.DeleteSnapshot():
            _delete(tree, snapshots, directory, taken, op)
        case ops.RenameSnapshot():
            _rename(taken, op.old_name, op.new_name, op.mtime or 0)


def _allow(snapshots: Snapshots, directory: INodeDirectory) -> None:
    snapshots.snapshottable.setdefault(directory.id, [])
    if directory.history is None:
        directory.history = DirectoryHistory()
    directory.history.snapshottable = True


def _disallow(snapshots: Snapshots, directory: INodeDirectory, taken: list[Snapshot]) -> None:
    if taken:
        raise ApplyError(f"{full_path(directory)} still has {len(taken)} snapshots")
    forget_snapshottable(snapshots, [directory])
    assert directory.history is not None
    if not directory.history.diffs:
        directory.history = None


def _create(
    tree: Tree,
    snapshots: Snapshots,
    directory: INodeDirectory,
    taken: list[Snapshot],
    op: ops.CreateSnapshot,
) -> None:
    if any(snapshot.name == op.snapshot_name for snapshot in taken):
        raise ApplyError(f"{op.snapshot_root} already has a snapshot {op.snapshot_name!r}")
    # A log before layout -66 contains no time; Hadoop's trunk then reads 0.
    time = op.mtime or 0
    root = copy_of_directory(directory)
    root.name = op.snapshot_name.encode("utf-8", "replace")
    root.mtime = time
    directory.mtime = max(directory.mtime, time)
    number = snapshots.counter
    assert directory.history is not None
    directory.history.diffs.append(
        DirectoryDiff(number, len(directory.children), is_root=True, copy=root)
    )
    taken.append(Snapshot(number, op.snapshot_name, root))
    snapshots.counter += 1
    tree.has_snapshots = True
    if snapshots.rules.capture_open_files:
        _capture_open_files(tree, directory)


def _capture_open_files(tree: Tree, directory: INodeDirectory) -> None:
    """Save the length that open files have now; without, they go on growing in the snapshot."""
    for number in sorted(number for files in tree.leases.values() for number in files):
        file = tree.inodes[number]
        if is_at_or_below(file, directory):
            record(file, latest_snapshot(tree, full_path(file)))


def _delete(
    tree: Tree,
    snapshots: Snapshots,
    directory: INodeDirectory,
    taken: list[Snapshot],
    op: ops.DeleteSnapshot,
) -> None:
    ordered = snapshots.rules.deletion_ordered
    marked = "#" in op.snapshot_name
    if marked and not ordered and all(one.name != op.snapshot_name for one in taken):
        return  # a log under the other rule drops it twice, then by its new name (HDFS-15590)
    snapshot = _find(taken, op.snapshot_name)
    history = directory.history
    assert history is not None
    if ordered and history.diffs[0].snapshot_id != snapshot.id:
        mark = (DELETED_MARK.namespace, DELETED_MARK.name)
        others = (x for x in snapshot.root.xattrs or () if (x.namespace, x.name) != mark)
        snapshot.root.xattrs = (DELETED_MARK, *others)
        # Hadoop takes the clock of the process here, so that no two processes agree.
        _rename(taken, snapshot.name, f"{snapshot.name}#{snapshot.id}", op.mtime or 0)
        return
    prior = NONE
    for step in above(directory):
        if step.history is not None:
            prior = later_prior(step.history.diffs, snapshot.id, prior)
    context = Reclaim(tree.watch, dropping=snapshot.id, usage=tree.usage)
    run(clean(context, directory, snapshot.id, prior))
    context.finish(tree)
    tree.usage.held.clear()
    taken.remove(snapshot)
    directory.mtime = max(directory.mtime, op.mtime or 0)


def _rename(taken: list[Snapshot], old_name: str, new_name: str, time: int) -> None:
    """Rename a snapshot; the time is that of its root, the directory's stays."""
    snapshot = _find(taken, old_name)
    if new_name == old_name:
        return
    if any(other.name == new_name for other in taken):
        raise ApplyError(f"there already is a snapshot {new_name!r}")
    snapshot.name = new_name
    snapshot.root.name = new_name.encode("utf-8", "replace")
    snapshot.root.mtime = time


def _find(taken: list[Snapshot], name: str) -> Snapshot:
    for snapshot in taken:
        if snapshot.name == name:
            return snapshot
    raise ApplyError(f"there is no snapshot {name!r}")

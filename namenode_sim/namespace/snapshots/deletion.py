"""Letting go: what a deletion, or the deletion of a snapshot, leaves to the snapshots before it.

Two walks.  ``clean`` removes one state (the current one, or a snapshot) from an entry and all
below it and hands what earlier snapshots need to the diff of the prior one; ``destroy`` removes an
entry for good.  Both are Hadoop's, case by case (cleanSubtree, destroyAndCollectBlocks and
DirectoryWithSnapshotFeature), because which diff holds what shows in the next image.

A walk is a generator that yields the walks below it, so that a deep tree needs no deep stack.
"""

from collections import deque
from collections.abc import Generator
from typing import assert_never

from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.snapshots import diffs as snapshots_diffs
from namenode_sim.namespace.snapshots import files, references
from namenode_sim.namespace.snapshots.diffs import in_order

Walk = Generator["Walk", None, None]


def run(walk: Walk) -> None:
    """Do a walk; finish each one that it yields before its next step."""
    stack = [walk]
    while stack:
        below = next(stack[-1], None)
        if below is None:
            stack.pop()
        else:
            stack.append(below)


def clean(context: files.Reclaim, entry: namespace_inode.Entry, snapshot: int, prior: int) -> Walk:
    """Remove the state ``snapshot``; ``prior`` is the last snapshot before it, or NONE.

    CURRENT has one before it: what no snapshot has is destroyed.
    """
    match entry:
        case namespace_inode.INodeFile():
            files.clean_file(context, entry, snapshot, prior)
        case namespace_inode.INodeDirectory():
            yield _clean_directory(context, entry, snapshot, prior)
        case namespace_inode.INodeSymlink():
            pass  # it is the same in all its snapshots
        case namespace_inode.OldName() | namespace_inode.NewPlace():
            yield _clean_place(context, entry, snapshot, prior)
        case _:
            assert_never(entry)


def _clean_place(
    context: files.Reclaim,
    entry: namespace_inode.OldName | namespace_inode.NewPlace,
    snapshot: int,
    prior: int,
) -> Walk:
    if prior == snapshots_diffs.NONE:
        prior = references.prior_place_snapshot(entry)
    # A snapshot not later than ``prior`` is the business of the place that the inode came from.
    if snapshot > prior:
        yield clean(context, entry.reference.inode, snapshot, prior)


def _clean_directory(
    context: files.Reclaim, directory: namespace_inode.INodeDirectory, snapshot: int, prior: int
) -> Walk:
    history = directory.history
    if history is None:
        yield _clean_children(context, directory, snapshot, prior, frozenset())
        return
    if snapshot == snapshots_diffs.CURRENT:
        snapshots_diffs.record(directory, prior)
        if history.diffs:
            yield _destroy_created(context, directory, history.diffs[-1])
        yield _clean_children(context, directory, snapshot, prior, frozenset())
    else:
        yield _clean_history(context, directory, history, snapshot, prior)
    if not history.diffs and not history.snapshottable:
        directory.history = None


def _ids(entries: dict[bytes, namespace_inode.Entry]) -> frozenset[int]:
    return frozenset(snapshots_diffs.inode_of(entry).id for entry in entries.values())


def _clean_history(
    context: files.Reclaim,
    directory: namespace_inode.INodeDirectory,
    history: namespace_inode.DirectoryHistory,
    snapshot: int,
    prior: int,
) -> Walk:
    """Give the diff of a deleted snapshot to the prior one, and settle what was between the two."""
    prior = snapshots_diffs.later_prior(history.diffs, snapshot, prior)
    before = snapshots_diffs.diff_of(history.diffs, prior)
    created = _ids(before.created) if before is not None else frozenset()
    deleted = _ids(before.deleted) if before is not None else frozenset()
    yield _delete_diff(context, history, snapshot, prior)
    yield _clean_children(context, directory, snapshot, prior, deleted)
    combined = snapshots_diffs.diff_of(history.diffs, prior)
    if combined is None:
        return
    # What came after the prior snapshot cannot be seen, once the directory is in no other.
    unseen = (
        references.is_last_place(directory)
        and snapshots_diffs.last_id(history.diffs) == prior
        and not snapshots_diffs.is_current(directory)
    )
    for entry in in_order(dict(combined.created)):
        if snapshots_diffs.inode_of(entry).id not in created:
            continue
        if unseen:
            name = entry.name
            yield destroy(context, entry)
            _detach(directory, name, entry)
            del combined.created[name]
        else:
            yield clean(context, entry, snapshot, snapshots_diffs.NONE)
    for entry in in_order(dict(combined.deleted)):
        if snapshots_diffs.inode_of(entry).id not in deleted:
            yield _clean_deleted(context, entry, snapshot, prior)


def _detach(
    directory: namespace_inode.INodeDirectory, name: bytes, entry: namespace_inode.Entry
) -> None:
    """Take a destroyed child out of a directory that only snapshots have."""
    if directory.children.get(name) is snapshots_diffs.inode_of(entry):
        del directory.children[name]
        directory.sorted_names = None


def _clean_children(
    context: files.Reclaim,
    directory: namespace_inode.INodeDirectory,
    snapshot: int,
    prior: int,
    excluded: frozenset[int],
) -> Walk:
    seen = snapshots_diffs.CURRENT if snapshot == snapshots_diffs.CURRENT else prior
    for entry in in_order(snapshots_diffs.children_at(directory, seen)):
        if isinstance(entry, namespace_inode.INodeFile) and entry.history is None:
            if snapshot == snapshots_diffs.CURRENT:
                files.clean_file(context, entry, snapshot, prior)
        elif snapshots_diffs.inode_of(entry).id not in excluded:
            yield clean(context, entry, snapshot, prior)


def _delete_diff(
    context: files.Reclaim, history: namespace_inode.DirectoryHistory, snapshot: int, prior: int
) -> Walk:
    """Drop, re-label or combine a directory's diff (AbstractINodeDiffList.deleteSnapshotDiff)."""
    diffs = history.diffs
    found = snapshots_diffs.diff_of(diffs, snapshot)
    if found is None:
        return
    index = snapshots_diffs.position(diffs, snapshot)
    previous = diffs[index - 1] if index > 0 else None
    if prior == snapshots_diffs.NONE:  # no diff is before it
        del diffs[index]
        yield _destroy_deleted(context, found)
    elif previous is None or previous.snapshot_id != prior:
        found.snapshot_id = prior
        found.is_root = False  # an image's reader would take the other snapshot's root for it
    else:
        del diffs[index]
        previous.copy = previous.copy or found.copy
        yield _combine(context, previous, found)


def _combine(
    context: files.Reclaim,
    previous: namespace_inode.DirectoryDiff,
    removed: namespace_inode.DirectoryDiff,
) -> Walk:
    """Add a later diff's lists to an earlier one's (Diff.combinePosterior)."""
    created, deleted = previous.created, previous.deleted
    for name in snapshots_diffs.names_in_order({*removed.created, *removed.deleted}):
        came, went = removed.created.get(name), removed.deleted.get(name)
        if went is None:
            assert came is not None
            created[name] = came
        elif name in created:
            if came is not None:
                created[name] = came
                yield destroy(context, went)
            else:
                yield destroy(context, created.pop(name))
        elif came is None:
            deleted[name] = went
        else:
            created[name], deleted[name] = came, went


def _destroy_deleted(context: files.Reclaim, diff: namespace_inode.DirectoryDiff) -> Walk:
    for entry in in_order(dict(diff.deleted)):
        yield destroy(context, entry)


def _destroy_created(
    context: files.Reclaim,
    directory: namespace_inode.INodeDirectory,
    diff: namespace_inode.DirectoryDiff,
) -> Walk:
    for entry in in_order(dict(diff.created)):
        name = entry.name
        yield destroy(context, entry)
        _detach(directory, name, entry)
    diff.created.clear()


def destroy(context: files.Reclaim, entry: namespace_inode.Entry) -> Walk:
    """Remove an entry for good; what other places of a moved inode need stays."""
    match entry:
        case namespace_inode.INodeFile():
            files.destroy_file(context, entry)
        case namespace_inode.INodeSymlink():
            context.removed.append(entry)
        case namespace_inode.INodeDirectory():
            yield _destroy_directory(context, entry)
        case namespace_inode.OldName():
            snapshot = references.own_snapshot(entry)
            if references.remove_place(entry) <= 0:
                yield destroy(context, entry.reference.inode)
                return
            prior = references.prior_place_snapshot(entry)
            if snapshot > prior:
                yield clean(context, entry.reference.inode, snapshot, prior)
        case namespace_inode.NewPlace():
            if references.remove_place(entry) <= 0:
                yield destroy(context, entry.reference.inode)
            else:
                yield _leave_place(context, entry)
        case _:
            assert_never(entry)


def _destroy_directory(context: files.Reclaim, directory: namespace_inode.INodeDirectory) -> Walk:
    if directory.history is not None:
        for diff in directory.history.diffs:
            yield _destroy_deleted(context, diff)
        directory.history.diffs.clear()
    for entry in in_order(snapshots_diffs.children_at(directory, snapshots_diffs.CURRENT)):
        if isinstance(entry, namespace_inode.INodeFile):
            files.destroy_file(context, entry)
        else:
            yield destroy(context, entry)
    directory.children = {}
    directory.sorted_names = None
    context.removed.append(directory)


def _leave_place(context: files.Reclaim, entry: namespace_inode.NewPlace) -> Walk:
    """Keep of a moved inode only what the snapshots of its old names have."""
    inode = entry.reference.inode
    if isinstance(inode, namespace_inode.INodeSymlink):
        return
    prior = references.prior_place_snapshot(entry)
    assert prior != snapshots_diffs.NONE
    snapshot = references.snapshot_since(entry, prior)
    if isinstance(inode, namespace_inode.INodeFile):
        assert inode.history is not None
        context.touch(inode)
        inode.history.deleted = True
        yield clean(context, inode, snapshot, prior)
    else:
        yield _leave_below(context, inode, snapshot, prior)


def _leave_below(
    context: files.Reclaim, entry: namespace_inode.Entry, snapshot: int, prior: int
) -> Walk:
    """Drop what came to a moved directory after its move (destroyDstSubtree)."""
    if isinstance(entry, namespace_inode.OldName):
        yield clean(context, entry, snapshot, prior)  # it had moved on before
        return
    node: namespace_inode.INode = snapshots_diffs.inode_of(entry)
    if isinstance(node, namespace_inode.INodeFile):
        yield clean(context, node, snapshot, prior)
        files.leave_file(context, node)
    if not isinstance(node, namespace_inode.INodeDirectory):
        return
    excluded: frozenset[int] = frozenset()
    if node.history is not None:
        diffs = node.history.diffs
        before = snapshots_diffs.diff_of(diffs, prior)
        excluded = _ids(before.deleted) if before is not None else excluded
        yield _delete_diff(context, node.history, snapshot, prior)
        before = snapshots_diffs.diff_of(diffs, prior)
        if before is not None:
            yield _destroy_created(context, node, before)
    for child in in_order(snapshots_diffs.children_at(node, prior)):
        if snapshots_diffs.inode_of(child).id not in excluded:
            yield _leave_below(context, child, snapshot, prior)


def _clean_deleted(
    context: files.Reclaim, top: namespace_inode.Entry, snapshot: int, prior: int
) -> Walk:
    """Clean what came below it after the prior snapshot: no snapshot has it (cleanDeletedINode).

    What left it before ``snapshot`` was taken is the business of where it went.  Bad schedule: it
    moved on behind ``snapshot``; cleaned from here it still has two places, and keeps what came.
    """
    waiting = deque((top,))
    while waiting:
        entry = waiting.popleft()
        node = snapshots_diffs.inode_of(entry)
        if isinstance(entry, namespace_inode.OldName):
            reference = entry.reference
            if entry.last_snapshot_id < snapshot:
                continue
            if reference.old_names[-1:] == [entry] and reference.place is None:
                waiting.append(node)
            else:
                yield clean(context, entry, snapshot, prior)
        elif isinstance(node, namespace_inode.INodeDirectory):
            diffs = node.history.diffs if node.history is not None else []
            before = snapshots_diffs.diff_of(diffs, prior)
            if before is not None:
                yield _destroy_created(context, node, before)
            waiting.extend(in_order(snapshots_diffs.children_at(node, prior)))

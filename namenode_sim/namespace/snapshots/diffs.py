"""What inodes were in snapshots: diffs are looked up here, and made before something changes.

A snapshot costs nothing when it is taken.  The first change of an inode after it saves what the
inode was, as a diff that belongs to the latest snapshot.  Everything that changes a node must first
call ``record`` with the latest snapshot of the path that the edit names, and children come and go
through ``add_child`` and ``remove_child`` (Hadoop's DirectoryWithSnapshotFeature,
AbstractINodeDiffList, INode.isInLatestSnapshot).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import (
    DirectoryDiff,
    DirectoryHistory,
    Entry,
    FileDiff,
    FileHistory,
    INode,
    INodeDirectory,
    INodeFile,
    INodeSymlink,
    NewPlace,
    OldName,
    signed_order,
)
from namenode_sim.namespace.tree import Tree, components

CURRENT: Final = 2**31 - 2
"""Snapshot.CURRENT_STATE_ID: no snapshot, the tree as it is now.  No snapshot has a higher id."""

NONE: Final = -1
"""Snapshot.NO_SNAPSHOT_ID: before all snapshots."""

D = TypeVar("D", FileDiff, DirectoryDiff)
Diffs = Sequence[FileDiff | DirectoryDiff]


def entry_of(child: INode) -> Entry:
    """Return the entry that stands in lists of diffs for a child of a current directory."""
    place = _place_of(child)
    return child if place is None else place


def _place_of(node: INode) -> NewPlace | None:
    """Return the present place of a node that was moved while a snapshot held it, or None."""
    return None if node.reference is None else node.reference.place


def inode_of(entry: Entry) -> INode:
    if isinstance(entry, OldName | NewPlace):
        return entry.reference.inode
    return entry


def names_in_order(names: Iterable[bytes]) -> list[bytes]:
    """Return names in Hadoop's order; that of ASCII names is the same with and without sign."""
    found = list(names)
    found.sort(key=None if all(map(bytes.isascii, found)) else signed_order)
    return found


def in_order(entries: Mapping[bytes, Entry]) -> Iterator[Entry]:
    """Return entries by name, as Hadoop's lists are."""
    return (entries[name] for name in names_in_order(entries))


def position(diffs: Diffs, snapshot_id: int) -> int:
    """Return the index of the diff for a snapshot: the first not older than it."""
    return bisect_left(diffs, snapshot_id, key=_snapshot_of)


def _snapshot_of(diff: FileDiff | DirectoryDiff) -> int:
    return diff.snapshot_id


def diff_of(diffs: list[D], snapshot_id: int) -> D | None:
    index = position(diffs, snapshot_id)
    found = diffs[index] if index < len(diffs) else None
    return found if found is not None and found.snapshot_id == snapshot_id else None


def last_id(diffs: Diffs) -> int:
    """Return the newest diff's snapshot; CURRENT if there is none."""
    return diffs[-1].snapshot_id if diffs else CURRENT


def prior_id(diffs: Diffs, anchor: int, *, exclusive: bool = False) -> int:
    """Return the newest diff's snapshot up to (or, exclusive, before) another; NONE without one."""
    find = bisect_left if exclusive else bisect_right
    index = find(diffs, anchor, key=_snapshot_of)
    return diffs[index - 1].snapshot_id if index > 0 else NONE


def later_prior(diffs: Diffs, snapshot_id: int, prior: int) -> int:
    """Return the later one of ``prior`` and the newest diff's snapshot before another."""
    return max(prior, prior_id(diffs, snapshot_id, exclusive=True))


def diffs_of(node: INode) -> Diffs | None:
    if isinstance(node, INodeSymlink) or node.history is None:
        return None
    return node.history.diffs


def children_at(directory: INodeDirectory, snapshot_id: int) -> dict[bytes, Entry]:
    children = {name: entry_of(child) for name, child in directory.children.items()}
    if directory.history is None:
        return children
    diffs = directory.history.diffs
    for diff in reversed(diffs[position(diffs, snapshot_id) :]):
        for name in diff.created:
            children.pop(name, None)
        children.update(diff.deleted)
    return children


def child_at(directory: INodeDirectory, name: bytes, snapshot_id: int) -> Entry | None:
    if directory.history is not None:
        diffs = directory.history.diffs
        for diff in diffs[position(diffs, snapshot_id) :]:
            if name in diff.deleted:
                return diff.deleted[name]
            if name in diff.created:
                return None
    child = directory.children.get(name)
    return None if child is None else entry_of(child)


def attributes_at(node: INode, snapshot_id: int) -> INode:
    """Return the attributes of a node as of a snapshot: a saved copy, or the node itself."""
    diffs = diffs_of(node)
    if diffs is None:
        return node
    later = diffs[position(diffs, snapshot_id) :]
    return next((diff.copy for diff in later if diff.copy is not None), node)


def blocks_at(file: INodeFile, snapshot_id: int) -> tuple[bytes, int]:
    diffs = file.history.diffs if file.history is not None else []
    later = diffs[position(diffs, snapshot_id) :]
    if not later:
        return file.packed_blocks, file.length()
    kept = (diff.packed_blocks for diff in later if diff.packed_blocks is not None)
    return up_to(next(kept, file.packed_blocks), later[0].size), later[0].size


def up_to(packed: bytes, size: int) -> bytes:
    """Return as many blocks from the front as it takes to hold ``size`` bytes."""
    total = count = 0
    for _, length, _ in PACKED_BLOCK.iter_unpack(packed):
        if total >= size:
            break
        total += length
        count += 1
    return packed[: count * PACKED_BLOCK.size]


def latest_snapshot(tree: Tree, path: str) -> int:
    """Return the snapshot that a change at a path belongs to; CURRENT if there is none.

    INodesInPath.resolve: the newest among the directories on the path.  A directory that was moved
    here brings its own, unless snapshots were taken here since.
    """
    latest = CURRENT
    if not tree.has_snapshots:
        return latest
    names = components(path)
    for index, node in enumerate(tree.along(names)):
        if not isinstance(node, INodeDirectory):
            break
        own = last_id(node.history.diffs) if node.history is not None else CURRENT
        place = _place_of(node)
        if place is not None:
            if index < len(names) and (latest == CURRENT or CURRENT > place.snapshot_id >= latest):
                latest = own
        elif own != CURRENT:
            latest = own if latest == CURRENT else max(latest, own)
    return latest


def in_latest(entry: Entry, latest: int) -> bool:
    """Return whether a snapshot has this entry, seen from the place where it is now."""
    if latest in {CURRENT, NONE}:
        return False
    while True:
        moved = not isinstance(entry, OldName | NewPlace) and entry.reference is not None
        if moved:
            return True  # the move has checked it
        parent = entry.parent
        if parent is None:
            return True
        if child_at(parent, entry.name, latest) is not entry:
            return False
        entry = parent


def is_current(node: INode) -> bool:
    """Return whether a node is in the current tree, and not in snapshots only."""
    while node.parent is not None:
        if node.parent.children.get(node.name) is not node:
            return False
        node = node.parent
    return not node.name


def _recorded_at_source(node: INode, latest: int) -> bool:
    """Return whether a moved node has no newer snapshot here than when it came."""
    place = _place_of(node)
    return place is not None and CURRENT > place.snapshot_id >= latest


def record(node: INode, latest: int, *, with_blocks: bool = False) -> None:
    """Save what a node is, if the latest snapshot has it and it has not changed since.

    A symlink has no history, as nothing but its name can change: Hadoop saves a second inode of
    the same id, and cannot load the image then.
    """
    if not in_latest(node, latest) or _recorded_at_source(node, latest):
        return
    match node:
        case INodeFile():
            _record_file(node, latest, with_blocks=with_blocks)
        case INodeDirectory():
            diff = latest_diff(node, latest)
            if diff.copy is None:
                diff.copy = copy_of_directory(node)
        case INodeSymlink():
            pass


def about_to_change(tree: Tree, path: str, node: INode, *, with_blocks: bool = False) -> None:
    """Record a node that an edit names by its path."""
    record(node, latest_snapshot(tree, path), with_blocks=with_blocks)


def _record_file(file: INodeFile, latest: int, *, with_blocks: bool) -> None:
    if file.history is None:
        file.history = FileHistory()
    diffs = file.history.diffs
    if not diffs or diffs[-1].snapshot_id < latest:
        diffs.append(FileDiff(latest, file.length()))
    diff = diffs[-1]
    if diff.copy is None:
        diff.copy = file.kept_copy(file.name, b"")
    if with_blocks:
        keep_blocks(diff, file.packed_blocks)


def keep_blocks(diff: FileDiff, packed: bytes) -> None:
    """Give a diff its own list of blocks, if it has none yet.

    An empty list is kept as no list: an image does not distinguish the two.
    """
    if diff.packed_blocks is None:
        diff.packed_blocks = up_to(packed, diff.size) or None


def keeps_block(tree: Tree, path: str, file: INodeFile, block_id: int) -> bool:
    """Return whether a snapshot still holds a block that a truncation takes from the file."""
    diffs = file.history.diffs if file.history is not None else []
    if any(_lists(diff.packed_blocks, block_id) for diff in diffs):
        return True
    latest = latest_snapshot(tree, path)
    if not in_latest(file, latest) or _recorded_at_source(file, latest):
        return False
    if not diffs or diffs[-1].snapshot_id < latest:
        return _lists(file.packed_blocks, block_id)
    kept = diffs[-1].packed_blocks is None
    return kept and _lists(up_to(file.packed_blocks, diffs[-1].size), block_id)


def has_more_behind(file: INodeFile, block_id: int) -> bool:
    """Return whether a snapshot has this block of a file, and others behind it."""
    diffs = file.history.diffs if file.history is not None else []
    size = PACKED_BLOCK.size
    return any(_lists((diff.packed_blocks or b"")[:-size], block_id) for diff in diffs)


def _lists(packed: bytes | None, block_id: int) -> bool:
    return any(number == block_id for number, _, _ in PACKED_BLOCK.iter_unpack(packed or b""))


def follow_blocks(file: INodeFile) -> None:
    """Take over the lengths and stamps of a file's blocks into its diffs, which share them."""
    if file.history is None:
        return
    now = {block[0]: block for block in PACKED_BLOCK.iter_unpack(file.packed_blocks)}
    for diff in file.history.diffs:
        if diff.packed_blocks is not None:
            kept = PACKED_BLOCK.iter_unpack(diff.packed_blocks)
            diff.packed_blocks = b"".join(PACKED_BLOCK.pack(*now.get(b[0], b)) for b in kept)


def copy_of_directory(directory: INodeDirectory) -> INodeDirectory:
    return replace(
        directory, parent=None, children={}, sorted_names=None, history=None, reference=None
    )


def latest_diff(directory: INodeDirectory, latest: int) -> DirectoryDiff:
    """Return the diff for the latest snapshot, made now if this is the first change since."""
    if directory.history is None:
        directory.history = DirectoryHistory()
    diffs = directory.history.diffs
    if not diffs or diffs[-1].snapshot_id < latest:
        diffs.append(DirectoryDiff(latest, len(directory.children)))
    return diffs[-1]


def add_child(tree: Tree, parent: INodeDirectory, child: INode, latest: int) -> None:
    """Link a child; the parent's mtime becomes the later of its own and the child's.

    That mtime is not saved first: Hadoop does not either, so that in a snapshot a directory
    below the root of the snapshot shows the time of the first children that came after it.
    """
    if in_latest(parent, latest):
        latest_diff(parent, latest).created[child.name] = entry_of(child)
    tree.link(parent, child)
    tree.usage.hold(child, parent, kept=False)
    parent.mtime = max(parent.mtime, child.mtime)


def remove_child(tree: Tree, entry: Entry, latest: int) -> INodeDirectory:
    """Unlink a child from its directory, which is returned and which it still points to."""
    parent, inode = entry.parent, inode_of(entry)
    assert parent is not None
    kept = False
    if in_latest(parent, latest):
        diff = latest_diff(parent, latest)
        kept = diff.created.pop(entry.name, None) is None
        if kept:
            diff.deleted[entry.name] = entry
    tree.unlink(inode)
    tree.usage.hold(inode, parent, kept=kept)
    inode.parent = parent
    return parent


def update_mtime(directory: INodeDirectory, time: int, latest: int) -> None:
    """Raise a directory's mtime, which is saved first."""
    if time > directory.mtime:
        record(directory, latest)
        directory.mtime = time

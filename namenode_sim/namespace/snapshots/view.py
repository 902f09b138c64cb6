"""Looking into a snapshot: copies of inodes as they were, made as somebody asks for them."""

from collections.abc import Iterator

from ha.record import dataclass, replace
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import Entry, INode, INodeDirectory, INodeFile, INodeSymlink
from namenode_sim.namespace.snapshots import diffs
from namenode_sim.namespace.state import Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """An inode as of a snapshot.

    ``node`` is a copy that is linked to nothing; a directory's ``children`` in it are there to be
    counted, as they are now and not as they were.  ``live`` is the inode behind it.
    """

    node: INode
    live: INode
    snapshot_id: int

    def child(self, name: bytes) -> "SnapshotView | None":
        if not isinstance(self.live, INodeDirectory):
            return None
        entry = diffs.child_at(self.live, name, self.snapshot_id)
        return None if entry is None else look(entry, name, self.snapshot_id)

    def subtree(self) -> "Iterator[SnapshotView]":
        """Yield this inode and all that was below it, parents first."""
        waiting = [self]
        while waiting:
            sight = waiting.pop()
            yield sight
            if isinstance(sight.live, INodeDirectory):
                entries = diffs.children_at(sight.live, self.snapshot_id)
                waiting += [look(entries[name], name, self.snapshot_id) for name in entries]


def look(entry: Entry, name: bytes, snapshot_id: int) -> SnapshotView:
    """Return the view of a directory's entry as of a snapshot, where it had this name."""
    live = diffs.inode_of(entry)
    was = diffs.attributes_at(live, snapshot_id)
    if isinstance(live, INodeFile):
        assert isinstance(was, INodeFile)
        copy: INode = was.kept_copy(name, _cut(*diffs.blocks_at(live, snapshot_id)))
    elif isinstance(live, INodeDirectory):
        assert isinstance(was, INodeDirectory)
        copy = _seen_directory(live, was, name, snapshot_id)
    else:
        assert isinstance(was, INodeSymlink)
        copy = replace(was, name=name, parent=None, reference=None)
    return SnapshotView(copy, live, snapshot_id)


def view_root(directory: INodeDirectory, snapshot: Snapshot) -> SnapshotView:
    """Return the view of a snapshot's root; its name is the snapshot's."""
    copy = _seen_directory(directory, snapshot.root, snapshot.root.name, snapshot.id)
    return SnapshotView(copy, directory, snapshot.id)


def _seen_directory(
    live: INodeDirectory, was: INodeDirectory, name: bytes, snapshot_id: int
) -> INodeDirectory:
    entries = diffs.children_at(live, snapshot_id)
    return replace(
        was,
        name=name,
        children={name: diffs.inode_of(entry) for name, entry in entries.items()},
        parent=None,
        sorted_names=None,
        history=None,
        reference=None,
    )


def _cut(packed: bytes, size: int) -> bytes:
    """Return blocks with the last one no longer than it was."""
    blocks = list(PACKED_BLOCK.iter_unpack(packed))
    if not blocks:
        return packed
    number, length, stamp = blocks[-1]
    before = sum(block[1] for block in blocks[:-1])
    blocks[-1] = number, min(length, size - before), stamp
    return b"".join(PACKED_BLOCK.pack(*block) for block in blocks)

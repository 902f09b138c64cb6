"""What files let go of when they, or snapshots of them, are deleted (FileWithSnapshotFeature)."""

from ha.record import dataclass, field
from namenode_sim.namespace.changes import BlockWatch
from namenode_sim.namespace.file_numbers import PACKED_BLOCK
from namenode_sim.namespace.inode import FileDiff, FileHistory, INode, INodeFile
from namenode_sim.namespace.snapshots import diffs as snapshots_diffs
from namenode_sim.namespace.tree import Tree
from namenode_sim.namespace.usage import Usage


@dataclass(slots=True)
class Reclaim:
    """What is collected on the way.

    ``dropping`` is the snapshot that is being deleted, CURRENT if none is.  ``removed`` are inodes
    that nothing holds any more, ``abandoned`` open files that may have left the current tree.
    ``watch`` hears of each file whose blocks may go, ``usage`` of those that the tree still has.
    """

    watch: BlockWatch | None
    dropping: int = snapshots_diffs.CURRENT
    removed: list[INode] = field(default_factory=list)
    abandoned: list[INodeFile] = field(default_factory=list)
    usage: Usage | None = None

    def touch(self, file: INodeFile) -> None:
        """Note that a file is about to let go of something."""
        if self.watch is not None:
            self.watch.touch(file)
        if self.usage is not None and self.usage.live and snapshots_diffs.is_current(file):
            self.usage.touch(file)

    def finish(self, tree: Tree) -> None:
        """Take the inodes out of the map, and leases from what was abandoned."""
        for file in self.abandoned:
            if not snapshots_diffs.is_current(file):
                tree.drop_lease(file)
        for node in self.removed:
            tree.drop(node)


def destroy_file(context: Reclaim, file: INodeFile) -> None:
    context.touch(file)
    file.packed_blocks = b""
    if file.history is not None:
        file.history.diffs.clear()
    context.removed.append(file)


def leave_file(context: Reclaim, file: INodeFile) -> None:
    """Note that a file went out of the current tree with a moved directory above it.

    Hadoop does not, and its image does not record it: whether such a file keeps blocks that no
    snapshot needs would depend on how often the NameNode was started.
    """
    context.touch(file)
    if file.history is not None:
        file.history.deleted = True
    if file.under_construction is not None:
        context.abandoned.append(file)


def clean_file(context: Reclaim, file: INodeFile, snapshot: int, prior: int) -> None:
    """Remove one state of a file, the current one or a snapshot's (INodeFile.cleanSubtree)."""
    context.touch(file)
    history = file.history
    if history is not None:
        _clean_history(context, file, history, snapshot, prior)
        if not history.diffs:
            file.history = None
    elif snapshot != snapshots_diffs.CURRENT:
        return
    elif file.under_construction is not None and file.packed_blocks:
        _, length, _ = PACKED_BLOCK.unpack(file.packed_blocks[-PACKED_BLOCK.size :])
        if length == 0:
            file.packed_blocks = file.packed_blocks[: -PACKED_BLOCK.size]
    if file.under_construction is not None:
        context.abandoned.append(file)


def _clean_history(
    context: Reclaim, file: INodeFile, history: FileHistory, snapshot: int, prior: int
) -> None:
    if snapshot != snapshots_diffs.CURRENT:
        prior = snapshots_diffs.later_prior(history.diffs, snapshot, prior)
        delete_file_diff(context, file, history, snapshot, prior)
        return
    if not history.deleted and context.dropping == snapshots_diffs.CURRENT:
        snapshots_diffs.record(file, prior)
        history.deleted = True
    _drop_blocks(context, file, history)


def _drop_blocks(context: Reclaim, file: INodeFile, history: FileHistory) -> None:
    """Keep only blocks that the newest diff needs, if only snapshots have the file."""
    diffs = history.diffs
    if history.deleted and not diffs:
        destroy_file(context, file)
        return
    kept = diffs[-1].packed_blocks if diffs else None
    if kept is not None:
        file.packed_blocks = _common(file.packed_blocks, kept)
        return
    size = diffs[-1].size if history.deleted else file.length()
    file.packed_blocks = snapshots_diffs.up_to(file.packed_blocks, size)


def _common(blocks: bytes, kept: bytes) -> bytes:
    """Return the blocks from the front that two lists share; a block is known by its id."""
    end = 0
    pairs = zip(PACKED_BLOCK.iter_unpack(blocks), PACKED_BLOCK.iter_unpack(kept), strict=False)
    for one, other in pairs:
        if one[0] != other[0]:
            break
        end += PACKED_BLOCK.size
    return blocks[:end]


def delete_file_diff(
    context: Reclaim, file: INodeFile, history: FileHistory, snapshot: int, prior: int
) -> None:
    """Drop, re-label or combine a file's diff (AbstractINodeDiffList.deleteSnapshotDiff)."""
    context.touch(file)
    diffs = history.diffs
    found = snapshots_diffs.diff_of(diffs, snapshot)
    if found is None:
        return
    index = snapshots_diffs.position(diffs, snapshot)
    previous = diffs[index - 1] if index > 0 else None
    if prior == snapshots_diffs.NONE:  # no diff is before it
        del diffs[index]
        _combine(context, file, history, found)
    elif previous is None or previous.snapshot_id != prior:
        found.snapshot_id = prior
    else:
        del diffs[index]
        previous.copy = previous.copy or found.copy
        _combine(context, file, history, found)


def _combine(context: Reclaim, file: INodeFile, history: FileHistory, removed: FileDiff) -> None:
    """Hand a removed diff's blocks to the one before (combineAndCollectSnapshotBlocks)."""
    if removed.packed_blocks is None:
        if history.deleted:
            _drop_blocks(context, file, history)
        return
    earlier = history.diffs[: snapshots_diffs.position(history.diffs, removed.snapshot_id)]
    if earlier:
        snapshots_diffs.keep_blocks(earlier[-1], removed.packed_blocks)

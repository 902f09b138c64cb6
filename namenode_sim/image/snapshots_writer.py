"""What snapshots hold to the sections SNAPSHOT, SNAPSHOT_DIFF and INODE_REFERENCE (3.2, 3.6)."""

from dataclasses import replace

from namenode_sim.edits.attributes import delimited
from namenode_sim.image import inodes_writer
from namenode_sim.image.container import WriteBytes
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import StringNumbers
from namenode_sim.image.unknown import Kept, restore_unknown
from namenode_sim.namespace import inode
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.diffs import in_order, names_in_order
from namenode_sim.namespace.state import Snapshots

_MASK_32 = (1 << 32) - 1


def write_snapshots(
    write: WriteBytes, snapshots: Snapshots, numbers: StringNumbers, layout: int, kept: Kept
) -> None:
    """Write SNAPSHOT: the snapshottable directories and their snapshots, those of one by name."""
    header = pb.SnapshotSection(
        snapshotCounter=snapshots.counter,
        snapshottableDir=list(snapshots.snapshottable),
        numSnapshots=snapshots.count(),
    )
    restore_unknown(kept, ("SNAPSHOT", ""), header)
    write(delimited(header.SerializeToString()))
    for number, taken in snapshots.snapshottable.items():
        by_name = {snapshot.root.name: snapshot for snapshot in taken}
        for name in names_in_order(by_name):
            snapshot = by_name[name]
            root = replace(snapshot.root, id=number)
            message = pb.Snapshot(
                snapshotId=snapshot.id, root=inodes_writer.inode_message(root, numbers, layout)
            )
            restore_unknown(kept, ("SNAPSHOT", snapshot.id), message)
            write(delimited(message.SerializeToString()))


def has_diffs(namespace: Namespace) -> bool:
    if namespace.snapshots.count():
        return True
    return namespace.tree.has_snapshots and any(map(_has_content, namespace.tree.inodes.values()))


def _has_content(node: inode.INode) -> bool:
    """Return whether a history contains anything that the section SNAPSHOT does not."""
    if isinstance(node, inode.INodeSymlink) or node.history is None:
        return False
    return isinstance(node, inode.INodeFile) or bool(
        node.history.diffs or not node.history.snapshottable
    )


def write_diffs(
    write: inodes_writer.DividedWrite,
    namespace: Namespace,
    numbers: StringNumbers,
    references: inodes_writer.ReferenceNumbers,
    layout: int,
    *,
    per_part: int = 0,
) -> None:
    """Write SNAPSHOT_DIFF: the diffs of each inode that has a history, newest first.

    A new sub-section begins after at least ``per_part`` diff lists, if it is not 0.
    """
    writer = _DiffWriter(write, numbers, references, layout, namespace.unknown_fields)
    done = 0
    for node in namespace.tree.inodes.values():
        if not writer.write_history(node, is_root=node is namespace.tree.root):
            continue
        done += 1
        if per_part and done % per_part == 0:
            write.split()


class _DiffWriter:
    def __init__(
        self,
        write: WriteBytes,
        numbers: StringNumbers,
        references: inodes_writer.ReferenceNumbers,
        layout: int,
        kept: Kept,
    ) -> None:
        self._write = write
        self._numbers = numbers
        self._references = references
        self._layout = layout
        self._kept = kept

    def write_history(self, node: inode.INode, *, is_root: bool) -> bool:
        """Write a node's diffs, if it has a history; Hadoop gives the root one in any case."""
        if isinstance(node, inode.INodeSymlink):
            return False
        history = inode.DirectoryHistory() if is_root and node.history is None else node.history
        if history is None:
            return False
        files = isinstance(node, inode.INodeFile)
        kind = pb.DiffEntry.FILEDIFF if files else pb.DiffEntry.DIRECTORYDIFF
        entry = pb.DiffEntry(type=kind, inodeId=node.id, numOfDiff=len(history.diffs))
        restore_unknown(self._kept, ("SNAPSHOT_DIFF", node.id), entry)
        self._write(delimited(entry.SerializeToString()))
        diffs: list[inode.FileDiff | inode.DirectoryDiff] = [*history.diffs]
        for diff in reversed(diffs):
            self._write_diff(node.id, diff)
        return True

    def _write_diff(self, number: int, diff: inode.FileDiff | inode.DirectoryDiff) -> None:
        created: dict[bytes, inode.Entry] = {}
        if isinstance(diff, inode.FileDiff):
            message: pb.FileDiff | pb.DirectoryDiff = self._file_diff(diff)
        else:
            message, created = self._directory_diff(diff), diff.created
        restore_unknown(self._kept, ("SNAPSHOT_DIFF", f"{number} {diff.snapshot_id}"), message)
        self._write(delimited(message.SerializeToString()))
        for name in names_in_order(created):
            self._write(delimited(pb.CreatedListEntry(name=name).SerializeToString()))

    def _file_diff(self, diff: inode.FileDiff) -> pb.FileDiff:
        message = pb.FileDiff(snapshotId=diff.snapshot_id, fileSize=diff.size)
        if diff.packed_blocks is not None:
            inodes_writer.add_blocks(message.blocks, diff.packed_blocks)
        if diff.copy is not None:
            message.name = diff.copy.name
            inodes_writer.fill_file(message.snapshotCopy, diff.copy, self._numbers, self._layout)
        return message

    def _directory_diff(self, diff: inode.DirectoryDiff) -> pb.DirectoryDiff:
        message = pb.DirectoryDiff(
            snapshotId=diff.snapshot_id,
            childrenSize=diff.children_size,
            isSnapshotRoot=diff.is_root,
            createdListSize=len(diff.created),
        )
        if diff.copy is not None and not diff.is_root:
            message.name = diff.copy.name
            inodes_writer.fill_directory(message.snapshotCopy, diff.copy, self._numbers)
        for entry in in_order(diff.deleted):
            if isinstance(entry, inode.OldName | inode.NewPlace):
                message.deletedINodeRef.append(self._references.add(entry))
            else:
                message.deletedINode.append(entry.id)
        return message


def write_references(
    write: WriteBytes, references: inodes_writer.ReferenceNumbers, kept: Kept
) -> None:
    """Write INODE_REFERENCE: the places to which the sections before it refer by number."""
    for place in references.places:
        number = place.reference.inode.id
        message = pb.INodeReference(referredId=number)
        if isinstance(place, inode.OldName):
            message.name = place.name
            message.lastSnapshotId = place.last_snapshot_id & _MASK_32
            restore_unknown(
                kept, ("INODE_REFERENCE", f"{number} {place.last_snapshot_id}"), message
            )
        else:
            message.dstSnapshotId = place.snapshot_id & _MASK_32
            restore_unknown(kept, ("INODE_REFERENCE", number), message)
        write(delimited(message.SerializeToString()))

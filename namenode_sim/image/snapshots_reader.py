"""Sections SNAPSHOT, SNAPSHOT_DIFF and INODE_REFERENCE to what snapshots hold (3.2)."""

from collections.abc import Iterator

from google.protobuf.message import Message

from namenode_sim.image.container import next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.inodes_reader import pack_protos, read_directory, read_file
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import Strings
from namenode_sim.image.unknown import Kept, keep_unknown
from namenode_sim.namespace import inode as namespace_inode
from namenode_sim.namespace.inode_map import InodeMap
from namenode_sim.namespace.snapshots.diffs import is_current, up_to
from namenode_sim.namespace.snapshots.references import add_to
from namenode_sim.namespace.state import Snapshot, Snapshots

Places = list[namespace_inode.OldName | namespace_inode.NewPlace]


def read_references(section: Iterator[bytes], inodes: InodeMap, kept: Kept) -> Places:
    """Read INODE_REFERENCE: the places of moved inodes, each to be found by its index."""
    places: Places = []
    for raw in section:
        message = pb.INodeReference.FromString(raw)
        inode = inodes[message.referredId]
        if inode.reference is None:
            inode.reference = namespace_inode.Reference(inode)
        reference = inode.reference
        if message.HasField("dstSnapshotId"):
            keep_unknown(kept, ("INODE_REFERENCE", inode.id), raw, message)
            if reference.place is not None:
                raise ImageError(f"inode {inode.id} was moved to two places")
            reference.place = namespace_inode.NewPlace(None, reference, _id(message.dstSnapshotId))
            places.append(reference.place)
        else:
            last = _id(message.lastSnapshotId)
            keep_unknown(kept, ("INODE_REFERENCE", f"{inode.id} {last}"), raw, message)
            old_name = namespace_inode.OldName(None, reference, message.name, last)
            add_to(reference, old_name)
            places.append(old_name)
    return places


def _id(number: int) -> int:
    """Return a snapshot's id; Hadoop stores NO_SNAPSHOT_ID, -1, without its sign."""
    return number - (1 << 32) if number >= 1 << 31 else number


def read_snapshots(
    section: Iterator[bytes], inodes: InodeMap, strings: Strings, kept: Kept
) -> Snapshots:
    """Return the snapshottable directories and their snapshots, without diffs."""
    raw = next_message(section)
    header = pb.SnapshotSection.FromString(raw)
    keep_unknown(kept, ("SNAPSHOT", ""), raw, header)
    snapshots = Snapshots(counter=header.snapshotCounter)
    for number in header.snapshottableDir:
        snapshots.snapshottable[number] = []
        _history(inodes, number).snapshottable = True
    for _ in range(header.numSnapshots):
        raw = next_message(section)
        message = pb.Snapshot.FromString(raw)
        keep_unknown(kept, ("SNAPSHOT", message.snapshotId), raw, message)
        root = message.root
        if root.id not in snapshots.snapshottable:
            raise ImageError(f"a snapshot of {root.id} is there, but it is not snapshottable")
        directory = read_directory(root.id, root.name, root.directory, strings)
        name = root.name.decode()
        snapshots.snapshottable[root.id].append(Snapshot(message.snapshotId, name, directory))
    for taken in snapshots.snapshottable.values():
        taken.sort(key=lambda snapshot: snapshot.id)
    return snapshots


def _history(inodes: InodeMap, number: int) -> namespace_inode.DirectoryHistory:
    directory = inodes[number]
    if not isinstance(directory, namespace_inode.INodeDirectory):
        raise ImageError(f"inode {number} has snapshots of a directory, which it is not")
    if directory.history is None:
        directory.history = namespace_inode.DirectoryHistory()
    return directory.history


def read_diffs(
    section: Iterator[bytes],
    inodes: InodeMap,
    snapshots: Snapshots,
    places: Places,
    strings: Strings,
    kept: Kept,
) -> bool:
    """Read SNAPSHOT_DIFF: all inodes' histories; return whether there are diffs at all.

    Raises:
        ImageError: if a list names what is not there.
    """
    reader = _DiffReader(section, inodes, snapshots, places, strings, kept)
    any_diffs = False
    for raw in section:
        entry = pb.DiffEntry.FromString(raw)
        keep_unknown(kept, ("SNAPSHOT_DIFF", entry.inodeId), raw, entry)
        if entry.type == pb.DiffEntry.FILEDIFF:
            reader.read_file_diffs(entry)
        else:
            reader.read_directory_diffs(entry)
        any_diffs |= entry.numOfDiff > 0 or bool(inodes[entry.inodeId].name)
    return any_diffs


class _DiffReader:
    def __init__(
        self,
        section: Iterator[bytes],
        inodes: InodeMap,
        snapshots: Snapshots,
        places: Places,
        strings: Strings,
        kept: Kept,
    ) -> None:
        self._section = section
        self._inodes = inodes
        self._places = places
        self._strings = strings
        self._kept = kept
        self._roots = {
            snapshot.id: snapshot.root
            for taken in snapshots.snapshottable.values()
            for snapshot in taken
        }

    def read_file_diffs(self, entry: pb.DiffEntry) -> None:
        file = self._inodes[entry.inodeId]
        if not isinstance(file, namespace_inode.INodeFile):
            raise ImageError(f"inode {entry.inodeId} has the diffs of a file, which it is not")
        file.history = namespace_inode.FileHistory()
        for _ in range(entry.numOfDiff):
            raw = next_message(self._section)
            message = pb.FileDiff.FromString(raw)
            self._keep(entry.inodeId, message.snapshotId, raw, message)
            size = message.fileSize
            diff = namespace_inode.FileDiff(message.snapshotId, size)
            diff.packed_blocks = up_to(pack_protos(message.blocks), size) or None
            if message.HasField("snapshotCopy"):
                copy = message.snapshotCopy
                diff.copy = read_file(file.id, message.name, copy, self._strings, {})
            file.history.diffs.insert(0, diff)

    def read_directory_diffs(self, entry: pb.DiffEntry) -> None:
        directory = self._inodes[entry.inodeId]
        if not entry.numOfDiff and not directory.name:
            return  # the root, which Hadoop lists in any case
        diffs = _history(self._inodes, entry.inodeId).diffs
        assert isinstance(directory, namespace_inode.INodeDirectory)
        for _ in range(entry.numOfDiff):
            raw = next_message(self._section)
            message = pb.DirectoryDiff.FromString(raw)
            self._keep(entry.inodeId, message.snapshotId, raw, message)
            diff = namespace_inode.DirectoryDiff(
                message.snapshotId, message.childrenSize, message.isSnapshotRoot
            )
            if diff.is_root:
                diff.copy = self._roots[diff.snapshot_id]
            elif message.HasField("snapshotCopy"):
                copy = message.snapshotCopy
                diff.copy = read_directory(directory.id, message.name, copy, self._strings)
            for _ in range(message.createdListSize):
                name = pb.CreatedListEntry.FromString(next_message(self._section)).name
                diff.created[name] = _created_entry(directory, name)
            for number in message.deletedINode:
                self._add_deleted(directory, diff, self._inodes[number])
            for index in message.deletedINodeRef:
                self._add_deleted(directory, diff, self._places[index])
            diffs.insert(0, diff)

    def _keep(self, inode_id: int, snapshot_id: int, raw: bytes, message: Message) -> None:
        keep_unknown(self._kept, ("SNAPSHOT_DIFF", f"{inode_id} {snapshot_id}"), raw, message)

    def _add_deleted(
        self,
        directory: namespace_inode.INodeDirectory,
        diff: namespace_inode.DirectoryDiff,
        entry: namespace_inode.Entry,
    ) -> None:
        if entry.name in diff.deleted:
            raise ImageError(
                f"directory {directory.id} lost two entries of one name in {diff.snapshot_id}"
            )
        diff.deleted[entry.name] = entry
        if entry.parent is None:
            entry.parent = directory
        if isinstance(entry, namespace_inode.NewPlace):
            entry.reference.inode.parent = directory


def _created_entry(directory: namespace_inode.INodeDirectory, name: bytes) -> namespace_inode.Entry:
    """Return the entry created under a name: the one a later diff deleted, or the present child."""
    assert directory.history is not None
    for later in directory.history.diffs:
        if name in later.deleted:
            return later.deleted[name]
    child = directory.children.get(name)
    if child is None:
        raise ImageError(f"directory {directory.id} lacks the entry {name!r} that it created")
    place = child.reference.place if child.reference is not None else None
    return place or child


def settle(inodes: InodeMap, places: Places) -> None:
    """Mark the files that only snapshots have, as an image does not.

    Raises:
        ImageError: if a moved inode is at no place.
    """
    for place in places:
        if place.parent is None:
            raise ImageError(f"inode {place.reference.inode.id} was moved and has no place")
    for node in inodes.values():
        if isinstance(node, namespace_inode.INodeFile) and node.history is not None:
            node.history.deleted = not is_current(node)

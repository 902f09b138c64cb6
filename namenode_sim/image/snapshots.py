"""Sections SNAPSHOT, SNAPSHOT_DIFF and INODE_REFERENCE (hadoop-formats 3.2).

The namespace does not act on what snapshots hold.  Their diffs and references are carried as the
bytes they came in, and written back with the string ids that they use.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from namenode_sim.edits.attributes import delimited
from namenode_sim.image.container import messages, next_message
from namenode_sim.image.errors import ImageError
from namenode_sim.image.inodes_reader import read_directory
from namenode_sim.image.inodes_writer import DividedWrite, inode_message
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.strings import StringNumbers, Strings
from namenode_sim.image.unknown import Kept, keep_unknown, restore_unknown
from namenode_sim.inode import INodeDirectory
from namenode_sim.namespace import Namespace
from namenode_sim.namespace_state import Snapshot, Snapshots

Write = Callable[[bytes], None]


def read_snapshots(section: Iterator[bytes], strings: Strings, kept: Kept) -> Snapshots:
    """The snapshottable directories and their snapshots, without diffs."""
    raw = next_message(section)
    header = pb.SnapshotSection.FromString(raw)
    keep_unknown(kept, ("SNAPSHOT", ""), raw, header)
    snapshots = Snapshots(counter=header.snapshotCounter)
    for number in header.snapshottableDir:
        snapshots.snapshottable[number] = []
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


def write_snapshots(
    write: Write, snapshots: Snapshots, numbers: StringNumbers, layout: int, kept: Kept
) -> None:
    """The snapshottable directories and their snapshots, those of one directory by name."""
    header = pb.SnapshotSection(
        snapshotCounter=snapshots.counter,
        snapshottableDir=list(snapshots.snapshottable),
        numSnapshots=snapshots.count(),
    )
    restore_unknown(kept, ("SNAPSHOT", ""), header)
    write(delimited(header.SerializeToString()))
    for number, taken in snapshots.snapshottable.items():
        for snapshot in sorted(taken, key=lambda one: one.name.encode()):
            root = replace(snapshot.root, id=number, name=snapshot.name.encode())
            message = pb.Snapshot(snapshotId=snapshot.id, root=inode_message(root, numbers, layout))
            restore_unknown(kept, ("SNAPSHOT", snapshot.id), message)
            write(delimited(message.SerializeToString()))


@dataclass(frozen=True, slots=True)
class DiffList:
    """All diffs of one inode, newest first; ``records`` are the messages as they came."""

    entry: pb.DiffEntry
    records: tuple[bytes, ...]
    snapshot_ids: frozenset[int]
    changed: bool
    """Whether it holds anything but marks that snapshots of an unchanged directory exist."""


def read_diffs(section: Iterator[bytes]) -> Iterator[DiffList]:
    """The diff lists of SNAPSHOT_DIFF."""
    for raw in section:
        entry = pb.DiffEntry.FromString(raw)
        records: list[bytes] = []
        ids, changed = set(), False
        for _ in range(entry.numOfDiff):
            record = next_message(section)
            records.append(record)
            if entry.type == pb.DiffEntry.FILEDIFF:
                ids.add(pb.FileDiff.FromString(record).snapshotId)
                changed = True
                continue
            diff = pb.DirectoryDiff.FromString(record)
            ids.add(diff.snapshotId)
            records += [next_message(section) for _ in range(diff.createdListSize)]
            changed |= not diff.isSnapshotRoot or bool(
                diff.createdListSize or diff.deletedINode or diff.deletedINodeRef
            )
        yield DiffList(entry, tuple(records), frozenset(ids), changed)


def write_diffs(write: DividedWrite, namespace: Namespace, *, per_part: int = 0) -> None:
    """SNAPSHOT_DIFF: what was carried, and a mark for each snapshot taken since.

    A new sub-section begins after at least ``per_part`` diff lists, if it is not 0.
    """
    for done, (found, new) in enumerate(_diff_lists(namespace), start=1):
        _write_diff_list(write, namespace, found, new)
        if per_part and done % per_part == 0:
            write.split()


def _diff_lists(namespace: Namespace) -> Iterator[tuple[DiffList, set[int]]]:
    """What was carried for each inode, and the snapshots taken of it since."""
    snapshots = namespace.snapshots
    missing = {
        number: {snapshot.id for snapshot in taken}
        for number, taken in snapshots.snapshottable.items()
        if taken
    }
    carried = _delimited_messages(snapshots.carried.diffs) if snapshots.carried else iter(())
    for found in read_diffs(carried):
        new = missing.pop(found.entry.inodeId, set()) - found.snapshot_ids
        yield found, new
    for number, new in missing.items():
        entry = pb.DiffEntry(type=pb.DiffEntry.DIRECTORYDIFF, inodeId=number)
        nothing = DiffList(entry, (), frozenset(), changed=False)
        yield nothing, new


def _write_diff_list(write: Write, namespace: Namespace, old: DiffList, new: set[int]) -> None:
    entry = pb.DiffEntry()
    entry.CopyFrom(old.entry)
    entry.numOfDiff = old.entry.numOfDiff + len(new)
    write(delimited(entry.SerializeToString()))
    for snapshot_id in sorted(new, reverse=True):
        directory = namespace.tree.inodes[entry.inodeId]
        assert isinstance(directory, INodeDirectory)
        diff = pb.DirectoryDiff(
            snapshotId=snapshot_id,
            childrenSize=len(directory.children),
            isSnapshotRoot=True,
            name=directory.name,
            createdListSize=0,
        )
        write(delimited(diff.SerializeToString()))
    for record in old.records:
        write(delimited(record))


def _delimited_messages(data: bytes) -> Iterator[bytes]:
    return messages(iter([data]))


def read_references(section: Iterator[bytes]) -> tuple[list[int], list[bytes]]:
    """INODE_REFERENCE: the inode that each entry stands for, and the entries as they came."""
    raws = list(section)
    return [pb.INodeReference.FromString(raw).referredId for raw in raws], raws


def referred_inodes(snapshots: Snapshots) -> list[int]:
    """The inode that each entry of the carried references stands for."""
    if snapshots.carried is None:
        return []
    return read_references(_delimited_messages(snapshots.carried.references))[0]

"""What snapshots hold goes through an image unchanged, and children stand in Hadoop's order."""

import io

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.attributes import delimited
from namenode_sim.image.container import read_summary, section_messages
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import read_namespace
from namenode_sim.inode import INodeFile
from namenode_sim.namespace import Namespace
from namenode_sim.namespace_dump import differences
from namenode_sim.namespace_state import CarriedSnapshots
from tests.image.image_world import PERMISSION, rich_namespace, saved

USERS, ALICE, OLD_NAME = 1, 5, b"was here"


def _messages(image: bytes, name: str) -> list[bytes]:
    file = io.BytesIO(image)
    summary = read_summary(file)
    section = next(section for section in summary.sections if section.name == name)
    return list(section_messages(file, section, summary.codec))


def _with_snapshot() -> Namespace:
    namespace = rich_namespace()
    more: tuple[ops.Op, ...] = (
        ops.CreateSnapshot("/d/é", "s0", 50),
        ops.CreateSnapshot("/d/é", "s1", 51),
        ops.Mkdir(16400, "/other", 60, 60, PERMISSION),
    )
    for txid, op in enumerate(more, start=namespace.last_applied + 1):
        namespace.apply(TxId(txid), op)
    return namespace


def test_snapshots_of_an_unchanged_directory_load_back_and_have_their_marks() -> None:
    namespace = _with_snapshot()
    image = saved(namespace)
    again = read_namespace(io.BytesIO(image))
    assert differences(namespace, again) == []
    assert again.snapshots.carried is None
    entry, *diffs = _messages(image, "SNAPSHOT_DIFF")
    assert pb.DiffEntry.FromString(entry).numOfDiff == 2
    found = [pb.DirectoryDiff.FromString(diff) for diff in diffs]
    assert [diff.snapshotId for diff in found] == [1, 0]  # newest first
    assert all(diff.isSnapshotRoot for diff in found)


def _carrying() -> Namespace:
    """A snapshot in which a file had another mode and name, before it was moved to /other."""
    namespace = _with_snapshot()
    moved = namespace.tree.file("/d/closed")
    namespace.tree.unlink(moved)
    other = namespace.tree.node("/other")
    namespace.tree.link(other, moved)  # type: ignore[arg-type]
    diff = pb.FileDiff(snapshotId=1, fileSize=265, name=OLD_NAME)
    diff.snapshotCopy.permission = ALICE << 40 | USERS << 16 | 0o600
    records = (
        pb.DiffEntry(type=pb.DiffEntry.FILEDIFF, inodeId=moved.id, numOfDiff=1),
        diff,
        pb.DiffEntry(type=pb.DiffEntry.DIRECTORYDIFF, inodeId=16387, numOfDiff=1),
        pb.DirectoryDiff(
            snapshotId=0, isSnapshotRoot=True, name="é".encode(), createdListSize=1,
            deletedINodeRef=[0],
        ),
        pb.CreatedListEntry(name=b"new"),
    )  # fmt: skip
    references = (
        pb.INodeReference(referredId=moved.id, name=OLD_NAME, lastSnapshotId=1),
        pb.INodeReference(referredId=moved.id, dstSnapshotId=2147483646),
    )
    namespace.snapshots.carried = CarriedSnapshots(
        diffs=b"".join(delimited(record.SerializeToString()) for record in records),
        references=b"".join(delimited(one.SerializeToString()) for one in references),
        ref_children={other.id: (1,)},
        referred=frozenset((moved.id,)),
        strings={0x20000000 | ALICE: "alice-of-old", 0x40000000 | USERS: "users-of-old"},
    )
    return namespace


def test_carried_diffs_and_references_come_back_with_the_strings_they_use() -> None:
    namespace = _carrying()
    carried = namespace.snapshots.carried
    assert carried is not None
    again = read_namespace(io.BytesIO(saved(namespace)))
    assert differences(namespace, again) == []
    found = again.snapshots.carried
    assert found is not None
    assert found.references == carried.references
    assert found.ref_children == carried.ref_children
    assert found.referred == carried.referred
    assert found.strings.items() >= carried.strings.items()
    assert isinstance(again.tree.find("/other/closed"), INodeFile)


def test_a_snapshot_taken_since_is_added_before_the_carried_diffs_of_its_directory() -> None:
    messages = _messages(saved(_carrying()), "SNAPSHOT_DIFF")
    entry = pb.DiffEntry.FromString(messages[2])
    assert (entry.inodeId, entry.numOfDiff) == (16387, 2)
    ids = [pb.DirectoryDiff.FromString(messages[at]).snapshotId for at in (3, 4)]
    assert ids == [1, 0]
    assert pb.CreatedListEntry.FromString(messages[5]).name == b"new"


def test_a_second_save_gives_the_same_bytes() -> None:
    once = saved(read_namespace(io.BytesIO(saved(_carrying()))))
    assert saved(read_namespace(io.BytesIO(once))) == once


def test_children_stand_in_the_order_of_signed_bytes() -> None:
    namespace = Namespace.empty("hdfs")
    names = ["b", "a", "é", "ab", "😀", "Z", "ÿ"]
    for txid, name in enumerate(names, start=1):
        namespace.apply(TxId(txid), ops.Mkdir(16385 + txid, f"/{name}", 1, 1, PERMISSION))
    (raw,) = _messages(saved(namespace), "INODE_DIR")
    ordered = [namespace.tree.inodes[n].name for n in pb.DirEntry.FromString(raw).children]
    assert ordered == [name.encode() for name in ("é", "ÿ", "😀", "Z", "a", "ab", "b")]

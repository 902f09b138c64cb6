"""What snapshots hold goes through an image unchanged, and children stand in Hadoop's order."""

import io

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.values import Block, XAttr, XAttrNamespace
from namenode_sim.image.container import read_summary, section_messages
from namenode_sim.image.errors import ImageError
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.reader import read_namespace
from namenode_sim.namespace.inode import INodeDirectory, INodeFile
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import PERMISSION, rich_namespace, saved
from tests.namenode_sim.namespace.dump import differences


def _messages(image: bytes, name: str) -> list[bytes]:
    file = io.BytesIO(image)
    summary = read_summary(file)
    section = next(section for section in summary.sections if section.name == name)
    return list(section_messages(file, section, summary.codec))


def _apply(namespace: Namespace, *more: ops.Op) -> Namespace:
    for txid, op in enumerate(more, start=namespace.last_applied + 1):
        namespace.apply(TxId(txid), op)
    return namespace


def _with_snapshots() -> Namespace:
    return _apply(
        rich_namespace(),
        ops.CreateSnapshot("/d/é", "s0", 50),
        ops.CreateSnapshot("/d/é", "s1", 51),
        ops.Mkdir(16400, "/other", 60, 60, PERMISSION),
    )


def test_snapshots_of_an_unchanged_directory_load_back_and_have_their_diffs() -> None:
    namespace = _with_snapshots()
    image = saved(namespace)
    assert differences(namespace, read_namespace(io.BytesIO(image))) == []
    root, entry, *diffs = _messages(image, "SNAPSHOT_DIFF")
    # Hadoop's root can always have snapshots, and so always has a list.
    assert pb.DiffEntry.FromString(root).numOfDiff == 0
    assert pb.DiffEntry.FromString(entry).numOfDiff == 2
    found = [pb.DirectoryDiff.FromString(diff) for diff in diffs]
    assert [diff.snapshotId for diff in found] == [1, 0]  # newest first
    assert all(diff.isSnapshotRoot for diff in found)


def _changed() -> Namespace:
    """Snapshot /d, then a file moves out, one changes, one comes, one goes, one is cut."""
    namespace = _apply(
        rich_namespace(),
        ops.DisallowSnapshot("/d/é"),
        ops.AllowSnapshot("/d"),
        ops.Add(16401, "/d/é/goes", 3, 9, 9, 128, (), PERMISSION, (), (), "c2", "host"),
        ops.Close(0, "/d/é/goes", 3, 9, 9, 128, (), PERMISSION),
        ops.CreateSnapshot("/d", "s0", 50),
        ops.Mkdir(16400, "/other", 60, 60, PERMISSION),
        ops.Rename("/d/closed", "/other/moved", 61),
        ops.Delete("/d/é/goes", 62),
        ops.CreateSnapshot("/d", "s1", 63),
        ops.Mkdir(16402, "/d/new", 64, 64, PERMISSION),
        ops.SetXAttr("/d/é", (XAttr(XAttrNamespace.USER, "late", b"1"),)),
        ops.Truncate("/other/moved", "client", "host", 100, 65, Block(2**30 + 9, 0, 1009)),
    )
    assert isinstance(namespace.tree.find("/other/moved"), INodeFile)
    return namespace


def test_histories_and_places_load_back() -> None:
    namespace = _changed()
    image = saved(namespace)
    assert differences(namespace, read_namespace(io.BytesIO(image))) == []
    references = [pb.INodeReference.FromString(raw) for raw in _messages(image, "INODE_REFERENCE")]
    assert [one.referredId for one in references] == [16389, 16389]
    assert [one.HasField("lastSnapshotId") for one in references] == [False, True]
    assert references[1].name == b"closed"
    copies = [
        pb.FileDiff.FromString(raw)
        for raw in _messages(image, "SNAPSHOT_DIFF")
        if b"closed" in raw and len(raw) > 20
    ]
    assert [(one.fileSize, len(one.blocks)) for one in copies] == [(265, 2)]


def test_a_second_save_gives_the_same_bytes() -> None:
    once = saved(read_namespace(io.BytesIO(saved(_changed()))))
    assert saved(read_namespace(io.BytesIO(once))) == once


@pytest.mark.parametrize("layout", [-63, -64, -65, -66, -67])
def test_histories_fit_into_images_of_all_layouts(layout: int) -> None:
    namespace = _changed()
    assert differences(namespace, read_namespace(io.BytesIO(saved(namespace, layout)))) == []


def test_a_created_entry_that_nobody_has_is_refused() -> None:
    namespace = _changed()
    directory = namespace.tree.node("/d")
    assert isinstance(directory, INodeDirectory)
    assert directory.history is not None
    directory.history.diffs[-1].created[b"nobody"] = namespace.tree.node("/other")
    with pytest.raises(ImageError, match="lacks the entry b'nobody'"):
        read_namespace(io.BytesIO(saved(namespace)))


def test_children_stand_in_the_order_of_signed_bytes() -> None:
    namespace = Namespace.empty("hdfs")
    names = ["b", "a", "é", "ab", "😀", "Z", "ÿ"]
    for txid, name in enumerate(names, start=1):
        namespace.apply(TxId(txid), ops.Mkdir(16385 + txid, f"/{name}", 1, 1, PERMISSION))
    (raw,) = _messages(saved(namespace), "INODE_DIR")
    ordered = [namespace.tree.inodes[n].name for n in pb.DirEntry.FromString(raw).children]
    assert ordered == [name.encode() for name in ("é", "ÿ", "😀", "Z", "a", "ab", "b")]

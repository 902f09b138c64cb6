"""What clients are answered about snapshots, and what they see in one."""

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.model import Settings
from namenode_sim.namespace.dump import differences
from namenode_sim.proto import client_namenode_pb2 as calls
from namenode_sim.proto.hdfs_types_pb2 import ContentSummaryProto, HdfsFileStatusProto
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, prepared

SNAPSHOT = "org.apache.hadoop.hdfs.protocol.SnapshotException"
ACCESS = "org.apache.hadoop.security.AccessControlException"


async def snapshotted(settings: Settings | None = None) -> Served:
    """/d (with e/ and g) has a snapshot s0; then g is renamed, e deleted, f2 created."""
    served = await prepared(settings)
    await served.call("allowSnapshot", snapshotRoot="/d")
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s0")
    await served.call("rename2", src="/d/g", dst="/h", overwriteDest=False)
    await served.call("delete", src="/d/e", recursive=True)
    await served.touch("/d/f2")
    return served


async def names(served: Served, src: str, after: bytes = b"") -> list[str]:
    answer = await served.call("getListing", src=src, startAfter=after, needLocation=False)
    assert isinstance(answer, calls.GetListingResponseProto)
    return [entry.path.decode() for entry in answer.dirList.partialListing]


async def test_a_snapshot_is_read_through_its_path() -> None:
    served = await snapshotted()
    assert await names(served, "/d") == ["f2"]
    assert await names(served, "/d/.snapshot") == ["s0"]
    assert await names(served, "/d/.snapshot/s0") == ["e", "g"]
    assert await names(served, "/d/.snapshot/s0/e") == []
    moved = await served.status("/h")
    before = await served.status("/d/.snapshot/s0/g")
    assert moved is not None
    assert before is not None
    assert before.fileId == moved.fileId
    assert await served.status("/d/.snapshot/s0/none") is None
    assert await served.status("/d/.snapshot/s1") is None
    dot = await served.status("/d/.snapshot")
    assert dot is not None
    assert dot.fileType == HdfsFileStatusProto.IS_DIR
    assert await served.status("/.snapshot") is not None
    assert await served.status("/h/.snapshot") is None


async def test_what_a_standby_replays_is_the_same() -> None:
    served = await snapshotted()
    await served.call(
        "renameSnapshot", snapshotRoot="/d", snapshotOldName="s0", snapshotNewName="s1"
    )
    assert differences(served.namespace, served.log.replayed()) == []
    await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s1")
    await served.call("disallowSnapshot", snapshotRoot="/d")
    assert differences(served.namespace, served.log.replayed()) == []
    assert served.namespace.snapshots.snapshottable == {}


async def test_listings_of_a_snapshot_come_in_pages() -> None:
    served = await snapshotted(Settings(listing_limit=1))
    answer = await served.call(
        "getListing", src="/d/.snapshot/s0", startAfter=b"", needLocation=False
    )
    assert isinstance(answer, calls.GetListingResponseProto)
    assert answer.dirList.remainingEntries == 1
    assert await names(served, "/d/.snapshot/s0", after=b"e") == ["g"]


async def test_a_snapshot_without_a_name_gets_one_once() -> None:
    served = await snapshotted()
    one = await served.call("createSnapshot", snapshotRoot="/d", call_id=77)
    assert isinstance(one, calls.CreateSnapshotResponseProto)
    assert one.snapshotPath.startswith("/d/.snapshot/s2")
    edits = len(served.log.frames)
    assert await served.call("createSnapshot", snapshotRoot="/d", call_id=77) == one
    assert len(served.log.frames) == edits


async def test_snapshots_and_their_directories_are_listed() -> None:
    served = await snapshotted()
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="a")
    answer = await served.call("getSnapshotListing", snapshotRoot="/d")
    assert isinstance(answer, calls.GetSnapshotListingResponseProto)
    found = answer.snapshotList.snapshotListing
    assert [(one.dirStatus.path, one.snapshotID, one.parent_fullpath) for one in found] == [
        (b"a", 1, b"/d"),
        (b"s0", 0, b"/d"),
    ]
    listing = await served.call("getSnapshottableDirListing")
    assert isinstance(listing, calls.GetSnapshottableDirListingResponseProto)
    (one,) = listing.snapshottableDirList.snapshottableDirListing
    assert (one.dirStatus.path, one.snapshot_number, one.parent_fullpath) == (b"d", 2, b"/")
    nobody = await served.call("getSnapshottableDirListing", user="carol")
    assert isinstance(nobody, calls.GetSnapshottableDirListingResponseProto)
    assert not nobody.HasField("snapshottableDirList")


async def counted(served: Served, path: str) -> ContentSummaryProto:
    answer = await served.call("getContentSummary", path=path)
    assert isinstance(answer, calls.GetContentSummaryResponseProto)
    return answer.summary


async def test_what_only_snapshots_have_is_counted_apart() -> None:
    served = await snapshotted()
    now = await counted(served, "/d")
    assert (now.fileCount, now.directoryCount) == (2, 2)  # f2 and g, /d and e
    assert (now.snapshotFileCount, now.snapshotDirectoryCount) == (1, 1)
    then = await counted(served, "/d/.snapshot/s0")
    assert (then.fileCount, then.directoryCount, then.snapshotFileCount) == (1, 2, 0)


REFUSED: dict[str, tuple[str, Fields, str, str]] = {
    "a change in a snapshot": (
        "mkdirs",
        {"src": "/d/.snapshot/s0/x", "masked": {"perm": 0o755}, "createParent": True},
        "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException",
        "Modification on a read-only snapshot is disallowed",
    ),
    "a directory named like it": (
        "mkdirs",
        {"src": "/k/.snapshot", "masked": {"perm": 0o755}, "createParent": True},
        "org.apache.hadoop.HadoopIllegalArgumentException",
        '".snapshot" is a reserved name.',
    ),
    "a snapshot of any directory": (
        "createSnapshot",
        {"snapshotRoot": "/k", "snapshotName": "s"},
        SNAPSHOT,
        "Directory is not a snapshottable directory: /k",
    ),
    "a snapshot of a file": (
        "createSnapshot",
        {"snapshotRoot": "/f", "snapshotName": "s"},
        "org.apache.hadoop.fs.PathIsNotDirectoryException",
        "`/f': Is not a directory",
    ),
    "a name twice": (
        "createSnapshot",
        {"snapshotRoot": "/d", "snapshotName": "s0"},
        SNAPSHOT,
        'Failed to add snapshot: there is already a snapshot with the same name "s0".',
    ),
    "a name with a slash": (
        "createSnapshot",
        {"snapshotRoot": "/d", "snapshotName": "a/b"},
        "org.apache.hadoop.HadoopIllegalArgumentException",
        'Snapshot name cannot contain "/"',
    ),
    "a snapshot that is not there": (
        "deleteSnapshot",
        {"snapshotRoot": "/d", "snapshotName": "s7"},
        SNAPSHOT,
        "Cannot delete snapshot s7 from path /d: the snapshot does not exist.",
    ),
    "a new name for one that is not there": (
        "renameSnapshot",
        {"snapshotRoot": "/d", "snapshotOldName": "s7", "snapshotNewName": "s8"},
        SNAPSHOT,
        "The snapshot s7 does not exist for directory /d",
    ),
    "snapshots below snapshots": (
        "allowSnapshot",
        {"snapshotRoot": "/d/k"},
        SNAPSHOT,
        "Nested snapshottable directories not allowed: path=/d/k, the ancestor /d is already a "
        "snapshottable directory.",
    ),
    "no more snapshots": (
        "disallowSnapshot",
        {"snapshotRoot": "/d"},
        SNAPSHOT,
        "The directory /d has snapshot(s). Please redo the operation after removing all the "
        "snapshots.",
    ),
    "the directory goes": (
        "delete",
        {"src": "/d", "recursive": True},
        SNAPSHOT,
        "The directory /d cannot be deleted since /d is snapshottable and already has snapshots",
    ),
    "one that may have snapshots moves below another": (
        "rename2",
        {"src": "/k", "dst": "/d/k/k", "overwriteDest": False},
        SNAPSHOT,
        "Unable to rename because /k has snapshottable descendant directories and /d/k is a "
        "descent of a snapshottable directory, and HDFS does not support nested snapshottable "
        "directory.",
    ),
    "somebody else": (
        "createSnapshot",
        {"snapshotRoot": "/d", "snapshotName": "s", "user": "carol"},
        ACCESS,
        "Permission denied. user=carol is not the owner of inode=/d",
    ),
}


@pytest.mark.parametrize(
    ("method", "fields", "java_class", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_refused(method: str, fields: Fields, java_class: str, message: str) -> None:
    served = await snapshotted()
    await served.mkdirs("/k")
    await served.mkdirs("/d/k")
    if method == "rename2":
        await served.call("allowSnapshot", snapshotRoot="/k")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, **fields)
    assert (refusal.value.java_class, refusal.value.message) == (java_class, message)
    assert len(served.log.frames) == edits

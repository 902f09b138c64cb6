"""What clients are answered about snapshots, and what they see in one."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import HdfsFileStatusProto
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT, SNAPSHOT
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.namespace.state import SnapshotRules
from tests.namenode_sim.client_protocol.namenode_in_memory import GROUPS, Fields, prepared
from tests.namenode_sim.namespace.dump import differences
from tests.namenode_sim.namespace.given_edits import striped
from tests.namenode_sim.namespace.snapshots.snapshotted import names, snapshotted

ACCESS = "org.apache.hadoop.security.AccessControlException"
IO = "java.io.IOException"


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
    served.face.wall_clock = lambda: 1234567890.0625
    one = await served.call("createSnapshot", snapshotRoot="/d", call_id=77)
    assert one == calls.CreateSnapshotResponseProto(
        snapshotPath="/d/.snapshot/s20090213-233130.062"
    )
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


@pytest.mark.parametrize("checked", [True, False], ids=["with permissions", "without"])
async def test_each_sees_the_snapshottable_directories_that_are_theirs(checked: bool) -> None:
    """Sort by what is above them; without any at all the list itself is left out."""
    served = await prepared(Settings(permissions_enabled=checked))
    answer = await served.call("getSnapshottableDirListing")
    assert not answer.HasField("snapshottableDirList")
    for path, user in {"/z": "alice", "/b/a": "bob", "/a": "alice", "/b/Z": "alice"}.items():
        await served.mkdirs(path)
        await served.call("setOwner", src=path, username=user)
        await served.call("allowSnapshot", snapshotRoot=path)
    found = {}
    for user in GROUPS:
        answer = await served.call("getSnapshottableDirListing", user=user)
        assert isinstance(answer, calls.GetSnapshottableDirListingResponseProto)
        assert answer.HasField("snapshottableDirList")
        listed = answer.snapshottableDirList.snapshottableDirListing
        found[user] = [(one.parent_fullpath, one.dirStatus.path) for one in listed]
    of_alice = [(b"/", b"a"), (b"/", b"z"), (b"/b", b"Z")]
    everything = [*of_alice, (b"/b", b"a")]
    assert found == {
        "hdfs": everything,
        "admin": everything,
        "alice": of_alice,
        "bob": [(b"/b", b"a")],
        "carol": [],
    }


async def test_the_root_is_listed_without_a_name_or_a_directory_above() -> None:
    served = await prepared()
    await served.call("allowSnapshot", snapshotRoot="/")
    answer = await served.call("getSnapshottableDirListing")
    assert isinstance(answer, calls.GetSnapshottableDirListingResponseProto)
    (one,) = answer.snapshottableDirList.snapshottableDirListing
    assert (one.dirStatus.path, one.parent_fullpath, one.snapshot_number) == (b"", b"", 0)
    assert one.snapshot_quota == 65536
    taken = await served.call("createSnapshot", snapshotRoot="/", snapshotName="s")
    assert taken == calls.CreateSnapshotResponseProto(snapshotPath="/.snapshot/s")


async def test_listings_for_snapshots_tell_no_flags_and_no_policies() -> None:
    """Leave them out, as SnapshottableDirectoryStatus and SnapshotStatus have none."""
    served = await prepared()
    await served.call("setStoragePolicy", src="/d", policyName="COLD")
    served.log_and_apply(striped("/d", "RS-6-3-1024k"))
    status = await served.status("/d")
    assert status is not None
    assert status.HasField("ecPolicy")
    entry = {"type": 0, "scope": 0, "permissions": 7, "name": "bob"}
    await served.call("modifyAclEntries", src="/d", aclSpec=[entry])
    await served.take_snapshot("/d", "s0")
    listing = await served.call("getSnapshottableDirListing")
    assert isinstance(listing, calls.GetSnapshottableDirListingResponseProto)
    (live,) = listing.snapshottableDirList.snapshottableDirListing
    answer = await served.call("getSnapshotListing", snapshotRoot="/d")
    assert isinstance(answer, calls.GetSnapshotListingResponseProto)
    (taken,) = answer.snapshotList.snapshotListing
    for status in (live.dirStatus, taken.dirStatus):
        assert (status.flags, status.storagePolicy, status.HasField("ecPolicy")) == (0, 0, False)
        assert (status.owner, status.childrenNum) == ("hdfs", 2)


async def test_a_snapshot_that_waits_for_older_ones_to_go_is_marked() -> None:
    served = await snapshotted()
    served.namespace.snapshots.rules = SnapshotRules(deletion_ordered=True)
    await served.call("setXAttr", src="/d", flag=1, xAttr={"namespace": 0, "name": "of.all"})
    for name in ("s1", "s2"):
        await served.call("createSnapshot", snapshotRoot="/d", snapshotName=name)
    await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s1")
    answer = await served.call("getSnapshotListing", snapshotRoot="/d")
    assert isinstance(answer, calls.GetSnapshotListingResponseProto)
    found = {one.dirStatus.path: one.isDeleted for one in answer.snapshotList.snapshotListing}
    assert found == {b"s0": False, b"s1#1": True, b"s2": False}


async def test_a_directory_without_snapshots_lists_none() -> None:
    served = await prepared()
    await served.call("allowSnapshot", snapshotRoot="/d")
    answer = await served.call("getSnapshotListing", snapshotRoot="/d")
    assert isinstance(answer, calls.GetSnapshotListingResponseProto)
    assert answer.HasField("snapshotList")
    assert not answer.snapshotList.snapshotListing


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
        HADOOP_ILLEGAL_ARGUMENT,
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
    "a new name with a slash": (
        "renameSnapshot",
        {"snapshotRoot": "/d", "snapshotOldName": "s0", "snapshotNewName": "a/b"},
        HADOOP_ILLEGAL_ARGUMENT,
        'Snapshot name cannot contain "/"',
    ),
    "a new name by which snapshots are seen": (
        "renameSnapshot",
        {"snapshotRoot": "/d", "snapshotOldName": "s0", "snapshotNewName": ".snapshot"},
        HADOOP_ILLEGAL_ARGUMENT,
        '".snapshot" is a reserved name.',
    ),
    "no new name": (
        "renameSnapshot",
        {"snapshotRoot": "/d", "snapshotOldName": "s0", "snapshotNewName": ""},
        IO,
        "The new snapshot name is null or empty.",
    ),
    "none by name": (
        "deleteSnapshot",
        {"snapshotRoot": "/d", "snapshotName": ""},
        IO,
        "The snapshot name is null or empty.",
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
        {"snapshotRoot": "/d/k/l"},
        SNAPSHOT,
        "Nested snapshottable directories not allowed: path=/d/k/l, the ancestor /d is already a "
        "snapshottable directory.",
    ),
    "snapshots above snapshots": (
        "allowSnapshot",
        {"snapshotRoot": "/"},
        SNAPSHOT,
        "Nested snapshottable directories not allowed: path=/, the subdirectory /d is already a "
        "snapshottable directory.",
    ),
    "snapshots of nothing": (
        "allowSnapshot",
        {"snapshotRoot": "/none"},
        "java.io.FileNotFoundException",
        "Directory does not exist: /none",
    ),
    "a snapshot of nothing": (
        "createSnapshot",
        {"snapshotRoot": "/none", "snapshotName": "s"},
        "java.io.FileNotFoundException",
        "Directory/File does not exist /none",
    ),
    "a snapshot of nothing gets another name": (
        "renameSnapshot",
        {"snapshotRoot": "/none", "snapshotOldName": "s", "snapshotNewName": "t"},
        "java.io.FileNotFoundException",
        "Directory/File does not exist /none",
    ),
    "a snapshot of nothing goes": (
        "deleteSnapshot",
        {"snapshotRoot": "/none", "snapshotName": "s"},
        "java.io.FileNotFoundException",
        "Directory/File does not exist /none",
    ),
    "the snapshots of any directory": (
        "getSnapshotListing",
        {"snapshotRoot": "/k"},
        SNAPSHOT,
        "Directory is not a snapshottable directory: /k",
    ),
    "a snapshot far below": (
        "createSnapshot",
        {"snapshotRoot": "/a" * 1001, "snapshotName": "s"},
        IO,
        "createSnapshot: Pathname too long.  Limit 8000 characters, 1000 levels.",
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
    await served.mkdirs("/d/k/l")
    if method == "rename2":
        await served.call("allowSnapshot", snapshotRoot="/k")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, **fields)
    assert (refusal.value.java_class, refusal.value.message) == (java_class, message)
    assert len(served.log.frames) == edits


@pytest.mark.parametrize(
    ("above", "message"),
    [
        ("/k", "Directory is not a snapshottable directory: /k"),
        ("/none", "Directory does not exist: /none"),
    ],
)
async def test_snapshots_of_what_cannot_have_any_are_not_listed(above: str, message: str) -> None:
    served = await snapshotted()
    await served.mkdirs("/k")
    with pytest.raises(RemoteFault) as fault:
        await names(served, f"{above}/.snapshot")
    assert fault.value.message == message
    answer = await served.call(
        "getListing", src="/k/.snapshot/x", startAfter=b"", needLocation=False
    )
    assert answer == calls.GetListingResponseProto()
    assert await served.status("/k/.snapshot") is None


async def test_the_root_lists_no_snapshots_where_it_may_have_none() -> None:
    served = await snapshotted()
    answer = await served.call("getSnapshotListing", snapshotRoot="/")
    assert isinstance(answer, calls.GetSnapshotListingResponseProto)
    assert not answer.snapshotList.snapshotListing
    await served.mkdirs("/e")
    with pytest.raises(RemoteFault, match="not a snapshottable directory: /e"):
        await served.call("getSnapshotListing", snapshotRoot="/e")


async def test_the_rights_of_then_count_in_a_snapshot() -> None:
    """Those that could enter the directory when it was taken still can there, and no others."""
    served = await snapshotted()
    await served.mkdirs("/p", 0o755)
    await served.mkdirs("/q", 0o700)
    for root, mode in (("/p", 0o700), ("/q", 0o755)):
        await served.take_snapshot(root, "s")
        await served.call("setPermission", src=root, permission={"perm": mode})
    assert await served.status("/p/.snapshot/s", user="bob") is not None
    with pytest.raises(RemoteFault, match="Permission denied: user=bob, access=EXECUTE"):
        await served.status("/q/.snapshot/s/x", user="bob")
    with pytest.raises(RemoteFault, match="Permission denied: user=bob, access=EXECUTE"):
        await served.status("/p/x", user="bob")


async def test_what_snapshots_alone_hold_counts_for_name_quotas() -> None:
    served = await snapshotted()
    await served.mkdirs("/q")
    await served.call("setQuota", path="/q", namespaceQuota=3, storagespaceQuota=2**63 - 1)
    await served.call("allowSnapshot", snapshotRoot="/q")
    await served.touch("/q/a")
    await served.call("createSnapshot", snapshotRoot="/q", snapshotName="s")
    await served.call("rename2", src="/q/a", dst="/q/b", overwriteDest=False)
    with pytest.raises(RemoteFault, match="quota=3 file count=4"):
        await served.create("/q/c")
    await served.call("delete", src="/q/b", recursive=False)
    await served.touch("/q/c")
    await served.call("delete", src="/q/c", recursive=False)
    await served.call("deleteSnapshot", snapshotRoot="/q", snapshotName="s")
    await served.touch("/q/d")
    await served.touch("/q/e")

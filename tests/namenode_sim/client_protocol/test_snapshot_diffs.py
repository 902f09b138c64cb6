"""getSnapshotDiffReport before clients: what is refused, who may ask, and calls in between."""

import asyncio

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, FILE_NOT_FOUND, PATH_IS_NOT_DIRECTORY
from hadoop.proto import client_snapshots_pb2 as pb
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto
from namenode_sim.client_protocol.words.errors import SNAPSHOT
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, prepared

METHODS = ["getSnapshotDiffReport", "getSnapshotDiffReportListing"]


async def diff(
    served: Served, old: str, new: str, root: str = "/d", user: str = "hdfs"
) -> list[str]:
    fields = {"snapshotRoot": root, "fromSnapshot": old, "toSnapshot": new}
    answer = await served.call(METHODS[0], user=user, **fields)  # type: ignore[arg-type]
    assert isinstance(answer, pb.GetSnapshotDiffReportResponseProto)
    report = answer.diffReport
    assert (report.fromSnapshot, report.toSnapshot) == (old, new)
    return [
        " ".join((one.modificationLabel, one.fullpath.decode(), one.targetPath.decode())).strip()
        for one in report.diffReportEntries
    ]


async def changed() -> Served:
    """/d with s1; then e becomes h, g goes, k comes; s2; then k/m comes."""
    served = await prepared()
    await served.take_snapshot("/d", "s1")
    await served.call("rename2", src="/d/e", dst="/d/h", overwriteDest=False)
    await served.call("delete", src="/d/g", recursive=False)
    await served.mkdirs("/d/k")
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s2")
    await served.mkdirs("/d/k/m")
    return served


async def test_from_one_to_another_back_and_to_now() -> None:
    served = await changed()
    assert await diff(served, "s1", "s2") == ["M", "+ k", "R e h", "- g"]
    assert await diff(served, "s2", "s1") == ["M", "- k", "R h e", "+ g"]
    assert await diff(served, "s1", "") == ["M", "+ k", "R e h", "- g"]
    assert await diff(served, "s2", "") == ["M k", "+ k/m"]
    assert await diff(served, "", "s2") == ["M k", "- k/m"]
    assert await diff(served, "s1", "s1") == await diff(served, "", "") == []


async def test_a_directory_below_shows_its_own_part() -> None:
    served = await changed()
    assert await diff(served, "s2", "", "/d/k") == ["M", "+ m"]
    assert await diff(served, "s1", "s2", "/d/h") == []


REFUSED = {
    "no such snapshot": (
        ("/d", "s1", "s9"),
        SNAPSHOT,
        "Cannot find the snapshot of directory /d with name s9",
    ),
    "no snapshots there": (
        ("/", "", ""),
        SNAPSHOT,
        "The path / is neither snapshottable nor under a snapshot root!",
    ),
    "a file": (("/f", "s1", "s2"), PATH_IS_NOT_DIRECTORY, "`/f': Is not a directory"),
    "nothing": (("/n", "s1", "s2"), FILE_NOT_FOUND, "Directory does not exist: /n"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", REFUSED)
async def test_refused(case: str, method: str) -> None:
    served = await changed()
    (root, old, new), java_class, words = REFUSED[case]
    fields = {"snapshotRoot": root, "fromSnapshot": old, "toSnapshot": new}
    with pytest.raises(RemoteFault) as refused:
        await served.call(method, **fields)  # type: ignore[arg-type]
    assert (refused.value.java_class, refused.value.message) == (java_class, words)


@pytest.mark.parametrize("method", METHODS)
async def test_a_caller_that_may_not_list_all_of_both_is_refused(method: str) -> None:
    """The directory was closed in s1 and is open since."""
    served = await prepared()
    await served.call("setPermission", src="/d/e", permission=FsPermissionProto(perm=0o700))
    await served.take_snapshot("/d", "s1")
    await served.call("setPermission", src="/d/e", permission=FsPermissionProto(perm=0o755))
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s2")
    fields = {"snapshotRoot": "/d", "fromSnapshot": "s1", "toSnapshot": "s2"}
    with pytest.raises(RemoteFault) as refused:
        await served.call(method, user="alice", **fields)  # type: ignore[arg-type]
    assert refused.value.java_class == ACCESS_CONTROL
    assert await diff(served, "s2", "", user="alice") == []
    await served.call("setPermission", src="/d/e", permission=FsPermissionProto(perm=0o700))
    with pytest.raises(RemoteFault):
        await diff(served, "s2", "", user="alice")


@pytest.mark.parametrize("then", [0, 1200], ids=["a walk", "many entries"])
async def test_others_are_served_in_between_and_a_snapshot_may_go(then: int) -> None:
    served = await prepared()
    for number in range(1200 - then):
        await served.mkdirs(f"/d/m{number}")
    await served.take_snapshot("/d", "s1")
    for number in range(then):
        await served.mkdirs(f"/d/m{number}")
    asking = asyncio.create_task(diff(served, "s1", ""))
    await asyncio.sleep(0)
    assert not asking.done()
    await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s1")
    with pytest.raises(RemoteFault, match="Cannot find the snapshot of directory /d with name s1"):
        await asking


@pytest.mark.parametrize("method", METHODS)
async def test_a_snapshot_that_goes_while_it_is_checked_is_not_compared(method: str) -> None:
    """Only the check whether the caller may list it all takes long: the earlier state is small."""
    served = await prepared()
    await served.take_snapshot("/d", "s0")
    for number in range(600):
        await served.mkdirs(f"/d/k/{number}/m")
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s1")
    fields = {"snapshotRoot": "/d", "fromSnapshot": "s0", "toSnapshot": "s1"}
    asking = asyncio.create_task(served.call(method, user="alice", **fields))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert not asking.done()
    await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s1")
    with pytest.raises(RemoteFault, match="Cannot find the snapshot of directory /d with name s1"):
        await asking

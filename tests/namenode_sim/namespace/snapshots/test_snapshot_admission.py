"""Under which names snapshots are taken, how many there may be, and who may do what with them."""

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, INVALID_PATH
from namenode_sim.client_protocol.words.errors import SNAPSHOT
from namenode_sim.client_protocol.words.model import Settings
from tests.namenode_sim.client_protocol.namenode_in_memory import GROUPS, Fields
from tests.namenode_sim.namespace.snapshots.snapshotted import names, snapshotted


@pytest.mark.parametrize("name", [".", "..", "a:b", "a/b", ".snapshot", ".reserved"])
async def test_a_name_by_which_no_snapshot_is_taken(name: str) -> None:
    """DFSUtil.isValidNameForComponent."""
    served = await snapshotted()
    with pytest.raises(RemoteFault, match="Invalid snapshot name") as refusal:
        await served.call("createSnapshot", snapshotRoot="/d", snapshotName=name)
    assert refusal.value.java_class == INVALID_PATH


@pytest.mark.parametrize("name", [".reserved", "a:b"])
async def test_a_name_that_a_snapshot_gets_by_a_rename_alone(name: str) -> None:
    """FSDirSnapshotOp.verifySnapshotName, which asks for less."""
    served = await snapshotted()
    change: Fields = {"snapshotOldName": "s0", "snapshotNewName": name}
    await served.call("renameSnapshot", snapshotRoot="/d", **change)
    assert await names(served, "/d/.snapshot") == [name]


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("createSnapshot", {"snapshotName": "ääa"}),
        ("renameSnapshot", {"snapshotOldName": "s0", "snapshotNewName": "ääa"}),
    ],
)
async def test_the_name_of_a_snapshot_has_a_limit_in_bytes(method: str, fields: Fields) -> None:
    served = await snapshotted(Settings(max_component_bytes=4))
    with pytest.raises(RemoteFault, match="limit=4 length=5"):
        await served.call(method, snapshotRoot="/d", **fields)
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="ää")


async def test_a_snapshot_can_get_its_own_name_and_not_that_of_another() -> None:
    served = await snapshotted()
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s1")
    own: Fields = {"snapshotOldName": "s0", "snapshotNewName": "s0"}
    await served.call("renameSnapshot", snapshotRoot="/d", **own)
    taken: Fields = {"snapshotOldName": "s0", "snapshotNewName": "s1"}
    with pytest.raises(RemoteFault, match="The snapshot s1 already exists for directory /d"):
        await served.call("renameSnapshot", snapshotRoot="/d", **taken)
    assert await names(served, "/d/.snapshot") == ["s0", "s1"]


ONE_DIRECTORY = "there are already 2 snapshot(s) and the per directory snapshot limit is 2"
ALL_DIRECTORIES = "there are already 3 snapshot(s) and the file system snapshot limit is 3"


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        (Settings(max_snapshots_of_one=2), ONE_DIRECTORY),
        (Settings(max_snapshots=3), ALL_DIRECTORIES),
        (Settings(max_snapshots=3, max_snapshots_of_one=2), ALL_DIRECTORIES),
        (Settings(max_snapshots=4, max_snapshots_of_one=3), None),
    ],
    ids=["of a directory", "of all", "of both", "not reached"],
)
async def test_there_is_a_limit_of_snapshots(limits: Settings, refusal: str | None) -> None:
    served = await snapshotted(limits)
    await served.mkdirs("/k")
    await served.take_snapshot("/k", "s0")
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s1")
    taken = served.call("createSnapshot", snapshotRoot="/d", snapshotName="s2")
    if refusal is None:
        await taken
        return
    with pytest.raises(RemoteFault) as told:
        await taken
    assert told.value.java_class == SNAPSHOT
    assert told.value.message == f"Failed to create snapshot: {refusal}"


USERS = set(GROUPS)
SUPERUSERS, OWNERS = {"hdfs", "admin"}, {"hdfs", "admin", "alice"}
# The directories are alice's, and her group may read them.
MAY: dict[str, tuple[Fields, set[str]]] = {
    "allowSnapshot": ({"snapshotRoot": "/k"}, SUPERUSERS),
    "disallowSnapshot": ({"snapshotRoot": "/k"}, SUPERUSERS),
    "createSnapshot": ({"snapshotRoot": "/d", "snapshotName": "s1"}, OWNERS),
    "deleteSnapshot": ({"snapshotRoot": "/d", "snapshotName": "s0"}, OWNERS),
    "renameSnapshot": (
        {"snapshotRoot": "/d", "snapshotOldName": "s0", "snapshotNewName": "s1"}, OWNERS,
    ),
    "getSnapshotListing": ({"snapshotRoot": "/d"}, {*OWNERS, "bob"}),
}  # fmt: skip


@pytest.mark.parametrize("checked", [True, False], ids=["with permissions", "without"])
@pytest.mark.parametrize("method", MAY)
async def test_who_may(method: str, checked: bool) -> None:
    fields, expected = MAY[method]
    allowed, refused = set(), set()
    for user in USERS:
        served = await snapshotted(Settings(permissions_enabled=checked))
        await served.mkdirs("/k")
        for path in ("/d", "/k"):
            await served.call("setOwner", src=path, username="alice", groupname="staff")
            await served.call("setPermission", src=path, permission={"perm": 0o750})
        try:
            await served.call(method, user=user, **fields)
            allowed.add(user)
        except RemoteFault as refusal:
            refused.add(refusal.java_class)
    assert allowed == (expected if checked else USERS)
    assert refused <= {ACCESS_CONTROL}

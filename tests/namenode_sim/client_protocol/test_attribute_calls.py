"""Times, replication, quotas and storage policies: what the calls log, and what they refuse."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import SSD
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op, SetOwner, SetQuota, SetStoragePolicy, Times
from namenode_sim.edits.values import StorageType
from namenode_sim.namespace.inode import QUOTA_DONT_SET, STRIPED
from tests.namenode_sim.client_protocol import permissions_world
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, prepared

KEEP = QUOTA_DONT_SET
NOT_FOUND = "java.io.FileNotFoundException"
JAVA_ILLEGAL = "java.lang.IllegalArgumentException"
ILLEGAL = "org.apache.hadoop.HadoopIllegalArgumentException"
NO_DIRECTORY = "org.apache.hadoop.fs.PathIsNotDirectoryException"
UNSUPPORTED = "org.apache.hadoop.hdfs.server.namenode.UnsupportedActionException"


def unsigned(number: int) -> int:
    return number % 2**64


def times(mtime: int, atime: int) -> Fields:
    return {"src": "/f", "mtime": unsigned(mtime), "atime": unsigned(atime)}


def quotas(names: int, space: int, path: str = "/d", **more: object) -> Fields:
    both = {"namespaceQuota": unsigned(names), "storagespaceQuota": unsigned(space)}
    return {"path": path, **both, **more}


async def logged(served: Served, method: str, fields: Fields, user: str = "hdfs") -> list[Op]:
    before = len(served.log.frames)
    await served.call(method, user=user, **fields)
    return served.log.ops()[before:]


def owner(user: str, group: str) -> Fields:
    return {"src": "/f", "username": user, "groupname": group}


#   "/f" is hdfs:supergroup and rw-r--r--
LOGGED: dict[str, tuple[str, Fields, list[Op]]] = {
    "another mode": (
        "setPermission", {"src": "/f", "permission": {"perm": 0o1644}},
        [ops.SetPermissions("/f", 0o1644)],
    ),
    "the mode that there is": ("setPermission", {"src": "/f", "permission": {"perm": 0o644}}, []),
    "another owner": ("setOwner", owner("bob", ""), [SetOwner("/f", "bob", "")]),
    "another group": ("setOwner", owner("hdfs", "staff"), [SetOwner("/f", "hdfs", "staff")]),
    "another owner of the same group": (
        "setOwner", owner("bob", "supergroup"), [SetOwner("/f", "bob", "supergroup")],
    ),
    "the owner that there is": ("setOwner", owner("hdfs", ""), []),
    "the group that there is": ("setOwner", owner("", "supergroup"), []),
    "owner and group that there are": ("setOwner", owner("hdfs", "supergroup"), []),
    "no owner": ("setOwner", owner("", ""), []),
    "the replication that there is": (
        "setReplication", {"src": "/f", "replication": 3}, [ops.SetReplication("/f", 3)],
    ),
    "both times": ("setTimes", times(5, 7), [Times("/f", 5, 7)]),
    "one time": ("setTimes", times(0, -1), [Times("/f", 0, -1)]),
    "the other time": ("setTimes", times(-1, 0), [Times("/f", -1, 0)]),
    "a time before 1970 is none": ("setTimes", times(-2, 7), [Times("/f", -1, 7)]),
    "a time of access before 1970 is none": ("setTimes", times(5, -(2**63)), [Times("/f", 5, -1)]),
    "no time": ("setTimes", times(-1, -1), []),
    "a policy by any case": (
        "setStoragePolicy", {"src": "/d", "policyName": "One_ssd"}, [SetStoragePolicy("/d", 10)],
    ),
    "a file's policy": (
        "setStoragePolicy", {"src": "/f", "policyName": "COLD"}, [SetStoragePolicy("/f", 2)],
    ),
    "a file without one": ("unsetStoragePolicy", {"src": "/f"}, [SetStoragePolicy("/f", 0)]),
    "a directory without one": ("unsetStoragePolicy", {"src": "/d"}, [SetStoragePolicy("/d", 0)]),
    "LAZY_PERSIST for new files": (
        "setStoragePolicy",
        {"src": "/d", "policyName": "LAZY_PERSIST"},
        [SetStoragePolicy("/d", 15)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("method", "fields", "edits"), LOGGED.values(), ids=LOGGED.keys())
async def test_what_a_call_logs(method: str, fields: Fields, edits: list[Op]) -> None:
    assert await logged(await prepared(), method, fields) == edits


async def test_the_time_of_access_can_be_set_though_reading_does_not_move_it() -> None:
    served = await prepared(Settings(access_time_precision_ms=0))
    assert await logged(served, "setTimes", times(-1, 7)) == [Times("/f", -1, 7)]


REPLICATED = {"/f": True, "/d": False, "/striped": False, "/none": False}


@pytest.mark.parametrize(("src", "result"), REPLICATED.items())
async def test_only_a_replicated_file_s_replication_is_set(src: str, result: bool) -> None:
    served = await prepared()
    await served.touch("/striped")
    served.namespace.tree.file("/striped").block_type = STRIPED
    before = len(served.log.frames)
    answer = await served.call("setReplication", src=src, replication=2)
    assert answer == calls.SetReplicationResponseProto(result=result)
    assert served.log.ops()[before:] == ([ops.SetReplication("/f", 2)] if result else [])


async def test_an_owner_may_name_themselves_as_the_owner() -> None:
    served = await permissions_world.prepared()
    fields: Fields = {"src": "/home/alice/f", "username": "alice", "groupname": "alice"}
    edits = await logged(served, "setOwner", fields, user="alice")
    assert edits == [SetOwner("/home/alice/f", "alice", "alice")]


async def test_only_the_owner_gives_to_a_group() -> None:
    served = await permissions_world.prepared()
    with pytest.raises(RemoteFault, match="bob is not the owner of inode=/home/alice/f"):
        await served.call("setOwner", user="bob", src="/home/alice/f", groupname="staff")


READ_ONLY: dict[str, tuple[str, Fields]] = {
    "times": ("setTimes", {"mtime": 5, "atime": 5}),
    "the replication": ("setReplication", {"replication": 2}),
    "a policy": ("setStoragePolicy", {"policyName": "COLD"}),
    "no policy": ("unsetStoragePolicy", {}),
}


@pytest.mark.parametrize(("method", "fields"), READ_ONLY.values(), ids=READ_ONLY.keys())
async def test_even_an_owner_needs_write_access_to_change(method: str, fields: Fields) -> None:
    served = await permissions_world.prepared()
    with pytest.raises(RemoteFault, match='access=WRITE, inode="/home/alice/f"'):
        await served.call(method, user="alice", src="/home/alice/f", **fields)


#   asked for -> logged, where the quotas are 5 names and 60 bytes
QUOTAS: dict[str, tuple[tuple[int, int], tuple[int, int] | None]] = {
    "both": ((7, 80), (7, 80)),
    "both, exchanged": ((60, 5), (60, 5)),
    "names alone": ((7, KEEP), (7, 60)),
    "space alone": ((KEEP, 80), (5, 80)),
    "the same names with other space": ((5, 80), (5, 80)),
    "other names with the same space": ((7, 60), (7, 60)),
    "names no more": ((-1, KEEP), (-1, 60)),
    "space no more": ((KEEP, -1), (5, -1)),
    "none": ((0, 0), (0, 0)),
    "the same": ((5, 60), None),
    "nothing": ((KEEP, KEEP), None),
}


@pytest.mark.parametrize(("asked", "expected"), QUOTAS.values(), ids=QUOTAS.keys())
async def test_quotas_are_set_kept_or_cleared(
    asked: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    served = await prepared()
    await served.call("setQuota", **quotas(5, 60))
    edits = await logged(served, "setQuota", quotas(*asked))
    assert edits == ([SetQuota("/d", *expected)] if expected else [])


#   asked of the root -> logged, and what it then has
ROOT: dict[str, tuple[tuple[int, int], tuple[int, int] | None, tuple[int, int]]] = {
    "names no more": ((-1, KEEP), (-1, 60), (KEEP, 60)),
    "other names": ((7, KEEP), (7, 60), (7, 60)),
    "the same": ((5, 60), None, (5, 60)),
}


async def test_a_quota_of_the_root_s_space_keeps_its_names_in_the_edit() -> None:
    """Log no reset there: unasked for, it would end a NameNode of Hadoop 3.2."""
    served = await prepared()
    assert await logged(served, "setQuota", quotas(KEEP, 80, "/")) == [SetQuota("/", KEEP, 80)]


@pytest.mark.parametrize(("asked", "edit", "after"), ROOT.values(), ids=ROOT.keys())
async def test_the_root_s_name_quota_is_the_greatest_once_it_is_cleared(
    asked: tuple[int, int], edit: tuple[int, int] | None, after: tuple[int, int]
) -> None:
    served = await prepared()
    await served.call("setQuota", **quotas(5, 60, "/"))
    edits = await logged(served, "setQuota", quotas(*asked, "/"))
    assert edits == ([SetQuota("/", *edit)] if edit else [])
    for namespace in (served.namespace, served.log.replayed()):
        root = namespace.tree.root.quotas
        assert (root.namespace, root.space) == after
    assert await logged(served, "setQuota", quotas(*asked, "/")) == []


#   asked for -> logged, where there is a quota of 50 bytes on DISK, and 60 in all
BY_TYPE: dict[str, tuple[StorageType, int, bool]] = {
    "another": (StorageType.DISK, 60, True),
    "none any more": (StorageType.DISK, -1, True),
    "as much on another type": (StorageType.SSD, 50, True),
    "the same": (StorageType.DISK, 50, False),
    "what there is": (StorageType.DISK, KEEP, False),
    "none where there is none": (StorageType.SSD, -1, False),
}


@pytest.mark.parametrize(("kind", "space", "changes"), BY_TYPE.values(), ids=BY_TYPE.keys())
async def test_a_quota_for_one_type_of_storage(
    kind: StorageType, space: int, changes: bool
) -> None:
    served = await prepared()
    await served.call("setQuota", **quotas(5, 60))
    await served.call("setQuota", **quotas(KEEP, 50, storageType="DISK"))
    edits = await logged(served, "setQuota", quotas(KEEP, space, storageType=kind.name))
    assert edits == ([ops.SetQuotaByStorageType("/d", kind, space)] if changes else [])


REFUSED: dict[str, tuple[str, Fields, str, str]] = {
    "names below none": (
        "setQuota", quotas(-2, 5), JAVA_ILLEGAL, "Illegal value for nsQuota or ssQuota : -2 and 5",
    ),
    "space below none": (
        "setQuota", quotas(5, -2), JAVA_ILLEGAL, "Illegal value for nsQuota or ssQuota : 5 and -2",
    ),
    "the least number": (
        "setQuota",
        quotas(-(2**63), KEEP),
        JAVA_ILLEGAL,
        f"Illegal value for nsQuota or ssQuota : {-(2**63)} and {KEEP}",
    ),
    "a quota of nothing": (
        "setQuota", quotas(5, 6, "/none"), NOT_FOUND, "Directory does not exist: /none",
    ),
    "a file's quota": (
        "setQuota", quotas(5, 6, "/f"), NO_DIRECTORY, "`/f': Is not a directory",
    ),
    "a file's quota by type": (
        "setQuota", quotas(KEEP, 6, "/f", storageType=SSD), NO_DIRECTORY,
        "`/f': Is not a directory",
    ),
    "names on a type of storage": (
        "setQuota",
        quotas(5, 6, storageType=SSD),
        UNSUPPORTED,
        "Failed to set quota by storage type because eitherdfs.quota.by.storage.type.enabled is "
        "set to true or nsQuota value is illegal 5",
    ),
    "a policy for nothing": (
        "setStoragePolicy",
        {"src": "/none", "policyName": "COLD"},
        NOT_FOUND,
        "File/Directory does not exist: /none",
    ),
    "no policy for nothing": (
        "unsetStoragePolicy", {"src": "/none"}, NOT_FOUND, "File/Directory does not exist: /none",
    ),
    "LAZY_PERSIST for a file that is there": (
        "setStoragePolicy",
        {"src": "/f", "policyName": "LAZY_PERSIST"},
        ILLEGAL,
        "Policy BlockStoragePolicy{LAZY_PERSIST:15, storageTypes=[RAM_DISK, DISK], "
        "creationFallbacks=[DISK], replicationFallbacks=[DISK]} cannot be set after file creation.",
    ),
    "another policy for a file with LAZY_PERSIST": (
        "setStoragePolicy",
        {"src": "/lazy", "policyName": "COLD"},
        ILLEGAL,
        "Existing policy LAZY_PERSIST cannot be changed after file creation.",
    ),
    "none for a file with LAZY_PERSIST": (
        "unsetStoragePolicy",
        {"src": "/lazy"},
        ILLEGAL,
        "Existing policy LAZY_PERSIST cannot be changed after file creation.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "fields", "java_class", "message"), REFUSED.values(), ids=REFUSED.keys()
)
async def test_refused(method: str, fields: Fields, java_class: str, message: str) -> None:
    served = await prepared()
    await served.touch("/lazy", storagePolicy="LAZY_PERSIST")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, **fields)
    assert (refusal.value.java_class, refusal.value.message) == (java_class, message)
    assert len(served.log.frames) == edits

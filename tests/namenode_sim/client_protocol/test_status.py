"""What a client is answered about an inode: the whole status of each kind, and its policies."""

import pytest

from hadoop.proto import hdfs_types_pb2
from namenode_sim.client_protocol.words import status as words_status
from namenode_sim.edits import ops, values
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import AclType, XAttr
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.state import EcState, ErasureCodingPolicy
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields
from tests.namenode_sim.namespace.given_edits import (
    B1,
    B3,
    EC_XATTR,
    WHO,
    add,
    after,
    file,
    mkdir,
    seen,
    striped,
)

DIRECTORY, FILE, SYMLINK = (
    hdfs_types_pb2.HdfsFileStatusProto.IS_DIR,
    hdfs_types_pb2.HdfsFileStatusProto.IS_FILE,
    hdfs_types_pb2.HdfsFileStatusProto.IS_SYMLINK,
)
HAS_ACL, HAS_EC, SNAPSHOTTABLE = (
    hdfs_types_pb2.HdfsFileStatusProto.HAS_ACL,
    hdfs_types_pb2.HdfsFileStatusProto.HAS_EC,
    hdfs_types_pb2.HdfsFileStatusProto.SNAPSHOT_ENABLED,
)
COLD, HOT = 2, 7
RS32, XOR = "RS-3-2-1024k", "XOR-2-1-1024k"
SYSTEM = values.XAttrNamespace.SYSTEM


def told(
    kind: hdfs_types_pb2.HdfsFileStatusProto.FileType.ValueType, number: int, **more: object
) -> hdfs_types_pb2.HdfsFileStatusProto:
    fields: Fields = {
        "path": b"",
        "length": 0,
        "permission": {"perm": 0o750},
        "owner": "alice",
        "group": "staff",
        "modification_time": 10,
        "access_time": 0,
        "fileId": number,
        "fileType": kind,
        "childrenNum": 0,
    }
    return hdfs_types_pb2.HdfsFileStatusProto(**{**fields, **more})


ROOT, FIRST = 16385, 16386
"""The ids of the root and of the first inode that is made."""
ACL = tuple(
    values.AclEntry(values.AclScope.ACCESS, kind, name, permission)
    for kind, name, permission in (
        (AclType.USER, None, 7),
        (AclType.USER, "bob", 7),
        (AclType.GROUP, None, 5),
        (AclType.MASK, None, 7),
        (AclType.OTHER, None, 0),
    )
)
STATUSES: dict[str, tuple[list[Op], str, hdfs_types_pb2.HdfsFileStatusProto]] = {
    "a directory": (
        [mkdir("/d"), mkdir("/d/e", 30), mkdir("/d/g", 40)],
        "/d",
        told(DIRECTORY, FIRST, modification_time=40, childrenNum=2, storagePolicy=0),
    ),
    "the root, of which Hadoop says that it may have snapshots": (
        [mkdir("/d")],
        "/",
        told(
            DIRECTORY,
            ROOT,
            permission={"perm": 0o755},
            owner="hdfs",
            group="supergroup",
            childrenNum=1,
            storagePolicy=0,
            flags=SNAPSHOTTABLE,
        ),
    ),
    "a directory that may have snapshots": (
        [mkdir("/d"), ops.AllowSnapshot("/d")],
        "/d",
        told(DIRECTORY, FIRST, storagePolicy=0, flags=SNAPSHOTTABLE),
    ),
    "a directory below it, which has changed since a snapshot": (
        [
            mkdir("/d"), ops.AllowSnapshot("/d"), mkdir("/d/e"),
            ops.CreateSnapshot("/d", "s", 20), mkdir("/d/e/f", 30),
        ],
        "/d/e",
        told(DIRECTORY, FIRST + 1, modification_time=30, childrenNum=1, storagePolicy=0),
    ),
    "a directory with an ACL": (
        [mkdir("/d"), ops.SetAcl("/d", ACL)],
        "/d",
        told(DIRECTORY, FIRST, storagePolicy=0, flags=HAS_ACL, permission={"perm": 0o770}),
    ),
    "a file": (
        [*file("/f", B1, B3), ops.Times("/f", 50, 60)],
        "/f",
        told(
            FILE,
            FIRST,
            length=150,
            modification_time=50,
            access_time=60,
            block_replication=3,
            blocksize=128,
            storagePolicy=0,
        ),
    ),
    "a file with a policy, in a directory with another": (
        [
            mkdir("/d"), ops.SetStoragePolicy("/d", COLD),
            add("/d/f"), ops.SetStoragePolicy("/d/f", HOT),
        ],
        "/d/f",
        told(
            FILE, FIRST + 1, access_time=10, block_replication=3, blocksize=128, storagePolicy=HOT
        ),
    ),
    "a symlink in a directory with policies": (
        [
            mkdir("/d"), ops.SetStoragePolicy("/d", COLD), striped("/d", RS32),
            ops.Symlink(0, "/d/l", "/to", 20, 30, values.Permission("alice", "staff", 0o777)),
        ],
        "/d/l",
        told(
            SYMLINK,
            FIRST + 1,
            permission={"perm": 0o777},
            modification_time=20,
            access_time=30,
            symlink=b"/to",
        ),
    ),
    "a directory for striped files": (
        [mkdir("/d"), striped("/d", RS32)],
        "/d",
        told(
            DIRECTORY,
            FIRST,
            storagePolicy=0,
            flags=HAS_EC,
            ecPolicy=words_status.ec_policy_proto(Namespace.empty("hdfs").ec_policies[2]),
        ),
    ),
    "one with all of that": (
        [
            mkdir("/d"), ops.AllowSnapshot("/d"), striped("/d", XOR),
            ops.SetAcl("/d", ACL), ops.SetStoragePolicy("/d", COLD),
        ],
        "/d",
        told(
            DIRECTORY,
            FIRST,
            permission={"perm": 0o770},
            storagePolicy=COLD,
            flags=SNAPSHOTTABLE | HAS_ACL | HAS_EC,
            ecPolicy=words_status.ec_policy_proto(Namespace.empty("hdfs").ec_policies[4]),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "path", "status"), STATUSES.values(), ids=STATUSES.keys())
def test_the_status_of_an_inode(
    given: list[Op], path: str, status: hdfs_types_pb2.HdfsFileStatusProto
) -> None:
    namespace = after(given)
    assert words_status.status_of(namespace, namespace.tree.node(path)) == status


def test_a_name_is_told_where_the_client_does_not_know_it() -> None:
    namespace = after(mkdir("/d"))
    status = words_status.status_of(namespace, namespace.tree.node("/d"), b"d")
    assert status == told(DIRECTORY, FIRST, path=b"d", storagePolicy=0)


def without_inode(mode: int, **more: object) -> hdfs_types_pb2.HdfsFileStatusProto:
    """Return a directory that has no inode, and so no id (-1), owner or time."""
    nobody: Fields = {"owner": "", "group": "", "modification_time": 0, **more}
    return told(DIRECTORY, 2**64 - 1, permission={"perm": mode}, **nobody)


def test_of_any_dot_snapshot_the_same_is_told() -> None:
    assert words_status.dot_snapshot_status() == without_inode(0o777)


def test_the_reserved_directory_has_a_status_and_entries() -> None:
    """FSDirectory.DOT_RESERVED_STATUS and createReservedStatuses."""
    assert words_status.reserved_status() == without_inode(0o1770)
    assert words_status.reserved_entries("staff") == [
        without_inode(0o770, path=name, group="staff") for name in (b".inodes", b"raw")
    ]


def replicated(path: str) -> Op:
    return striped(path, "replication")


MORE = b"xxxx" + RS32.encode()
POLICIES: dict[str, tuple[list[Op], str, int | None]] = {
    "none": ([], "/d/e", None),
    "the directory's own": ([striped("/d/e", RS32)], "/d/e", 2),
    "that of one further up": ([striped("/d", XOR)], "/d/e", 4),
    "the nearest": ([striped("/d", XOR), striped("/d/e", RS32)], "/d/e", 2),
    "the root's": ([striped("/", XOR)], "/d/e", 4),
    "replication, which is none": ([striped("/d", XOR), replicated("/d/e")], "/d/e", None),
    "one that is unknown": ([striped("/d", "RS-9-9-1024k")], "/d/e", None),
    "one without a name": ([striped("/d", None)], "/d/e", None),
    "that of another attribute's name": (
        [ops.SetXAttr("/d", (XAttr(SYSTEM, "hdfs.other", MORE),))], "/d/e", None,
    ),
    "that of a user's attribute": (
        [ops.SetXAttr("/d", (XAttr(values.XAttrNamespace.USER, EC_XATTR, MORE),))], "/d/e", None,
    ),
    "behind other attributes": (
        [ops.SetXAttr("/d", (XAttr(SYSTEM, "hdfs.other", MORE),)), striped("/d", XOR)], "/d/e", 4,
    ),
    "a striped file's own": (
        [striped("/d", XOR), add("/d/f", ec_policy_id=2)], "/d/f", 2,
    ),
    "a replicated file's in a directory for striped ones": (
        [striped("/d", XOR), add("/d/f")], "/d/f", None,
    ),
    "a symlink's": (
        [striped("/d", XOR), ops.Symlink(0, "/d/l", "/to", 20, 30, WHO)], "/d/l", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "path", "number"), POLICIES.values(), ids=POLICIES.keys())
def test_the_erasure_coding_policy_in_force(given: list[Op], path: str, number: int | None) -> None:
    namespace = after(mkdir("/d"), mkdir("/d/e"), given)
    found = words_status.erasure_coding_of(namespace, namespace.tree.node(path))
    assert (None if found is None else found.id) == number


def test_an_erasure_coding_policy_is_told_as_it_was_defined() -> None:
    policy = values.EcPolicy("rs", 4, 2, 8192, (("k", "v"), ("l", "")))
    known = ErasureCodingPolicy(64, "RS-4-2-8k", policy, EcState.ENABLED)
    assert words_status.ec_policy_proto(known) == hdfs_types_pb2.ErasureCodingPolicyProto(
        id=64,
        name="RS-4-2-8k",
        schema=hdfs_types_pb2.ECSchemaProto(
            codecName="rs",
            dataUnits=4,
            parityUnits=2,
            options=[
                hdfs_types_pb2.ECSchemaOptionEntryProto(key="k", value="v"),
                hdfs_types_pb2.ECSchemaOptionEntryProto(key="l", value=""),
            ],
        ),
        cellSize=8192,
        state=hdfs_types_pb2.ErasureCodingPolicyState.ENABLED,
    )


SEEN: dict[str, tuple[list[str], int, int]] = {
    "the snapshot itself": ([], COLD, 2),
    "a directory in it": (["e"], COLD, 2),
    "a directory further down": (["e", "in"], COLD, 2),
    "a directory with policies of its own": (["own"], HOT, 4),
}


@pytest.mark.parametrize(("names", "storage", "coding"), SEEN.values(), ids=SEEN.keys())
def test_policies_above_count_in_a_snapshot(names: list[str], storage: int, coding: int) -> None:
    namespace = after(
        mkdir("/d"), mkdir("/d/e"), mkdir("/d/e/in"), mkdir("/d/own"),
        ops.SetStoragePolicy("/d", COLD), striped("/d", RS32),
        ops.SetStoragePolicy("/d/own", HOT), striped("/d/own", XOR),
        ops.AllowSnapshot("/d"), ops.CreateSnapshot("/d", "s", 20),
        ops.Delete("/d/e", 30),
    )  # fmt: skip
    status = words_status.status_of(namespace, seen(namespace, "s", *names).node)
    assert (status.storagePolicy, status.ecPolicy.id, status.flags) == (storage, coding, HAS_EC)


def test_a_file_in_a_snapshot_has_the_storage_policy_that_it_has_now() -> None:
    namespace = after(
        mkdir("/d"), add("/d/f"), ops.AllowSnapshot("/d"), ops.CreateSnapshot("/d", "s", 20),
        ops.SetStoragePolicy("/d", COLD),
    )  # fmt: skip
    assert words_status.status_of(namespace, seen(namespace, "s", "f").node).storagePolicy == COLD

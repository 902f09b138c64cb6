"""create: what it asks of the path, the flags and the file, and what its edit says."""

from dataclasses import dataclass, field

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT, RECOVERY_IN_PROGRESS
from namenode_sim.edits.ops import Add
from namenode_sim.edits.values import RpcIds
from tests.namenode_sim.client_protocol import namenode_in_memory
from tests.namenode_sim.client_protocol.recovering_datanodes import half_written
from tests.namenode_sim.namespace.given_edits import striped

CREATE, OVERWRITE, LAZY_PERSIST, SHOULD_REPLICATE = 1, 2, 16, 128
DENIED = "org.apache.hadoop.security.AccessControlException"
EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
NO_PARENT = "org.apache.hadoop.fs.ParentNotDirectoryException"
NOT_FOUND = "java.io.FileNotFoundException"
INVALID = "org.apache.hadoop.fs.InvalidPathException"
ILLEGAL = HADOOP_ILLEGAL_ARGUMENT


async def prepared() -> namenode_in_memory.Served:
    """``/d``, where all may write, with ``/d/f`` of alice's; ``/s``, whose files are striped."""
    served = namenode_in_memory.serve()
    for path in ("/d", "/s/in"):
        await served.mkdirs(path)
    await served.call("setPermission", src="/d", permission={"perm": 0o777})
    await served.touch("/d/f", user="alice")
    await served.touch("/s/f")
    served.log_and_apply(striped("/s", "RS-6-3-1024k"))
    return served


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that is refused, the exception's class and a part of its words."""

    src: str
    java_class: str
    told: str
    flags: int = CREATE
    user: str = "bob"
    fields: namenode_in_memory.Fields = field(default_factory=dict)


STRIPED = "writes no striped files"
REFUSED: dict[str, Refusal] = {
    "a bad name": Refusal("/d/a:b", INVALID, "/d/a:b"),
    "too many levels": Refusal("/x" * 1001, IO_EXCEPTION, "create: Pathname too long."),
    "in a directory of another's": Refusal("/n", DENIED, 'access=WRITE, inode="/"'),
    "below a directory of another's": Refusal("/n/m", DENIED, 'access=WRITE, inode="/"'),
    "below a file": Refusal("/d/f/n", NO_PARENT, "/d/f (is not a directory)"),
    "below a file, by who may everything": Refusal(
        "/d/f/n/m", NO_PARENT, "/d/f (is not a directory)", user="hdfs"
    ),
    "over a file": Refusal("/d/f", EXISTS, "/d/f for client 127.0.0.1 already exists"),
    "overwriting what another may write": Refusal(
        "/d/f", DENIED, 'access=WRITE, inode="/d/f"', CREATE | OVERWRITE
    ),
    "only overwriting what another may write": Refusal(
        "/d/f", DENIED, 'access=WRITE, inode="/d/f"', OVERWRITE
    ),
    "without its directory": Refusal(
        "/d/n/m", NOT_FOUND, "Parent directory doesn't exist: /d/n",
        fields={"createParent": False},
    ),
    "overwriting nothing": Refusal("/d/n", NOT_FOUND, "Can't overwrite", OVERWRITE),
    "overwriting nothing without its directory": Refusal(
        "/d/n/m", NOT_FOUND, "Parent directory", OVERWRITE, fields={"createParent": False}
    ),
    "no replicas": Refusal(
        "/d/n", IO_EXCEPTION,
        "of 0 is less than the required minimum of 1 for /d/n, clientName=10.0.0.7",
        fields={"replication": 0, "host": "10.0.0.7"},
    ),
    "too many replicas, over a file": Refusal(
        "/d/f", IO_EXCEPTION, "of 513 exceeds maximum of 512 for /d/f, clientName=127.0.0.1",
        fields={"replication": 513},
    ),
    "tiny blocks, over a file": Refusal(
        "/d/f", IO_EXCEPTION, "1048575 < 1048576", fields={"blockSize": (1 << 20) - 1}
    ),
    "an unknown storage policy": Refusal(
        "/d/n", ILLEGAL, "Cannot find a block policy with the name FAST",
        fields={"storagePolicy": "FAST"},
    ),
    "striped by its directory": Refusal("/s/n", IO_EXCEPTION, STRIPED, user="hdfs"),
    "striped by one further up": Refusal("/s/in/x/n", IO_EXCEPTION, STRIPED, user="hdfs"),
    "striped, overwriting one that was not": Refusal(
        "/s/f", IO_EXCEPTION, STRIPED, CREATE | OVERWRITE, "hdfs"
    ),
    "striped by name": Refusal(
        "/d/n", IO_EXCEPTION, STRIPED, fields={"ecPolicyName": "RS-6-3-1024k"}
    ),
    "striped and replicated": Refusal(
        "/d/n", ILLEGAL, "exclusive parameters", CREATE | SHOULD_REPLICATE,
        fields={"ecPolicyName": "RS-6-3-1024k"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
async def test_refused(row: Refusal) -> None:
    served = await prepared()
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.create(row.src, user=row.user, createFlag=row.flags, **row.fields)
    assert refusal.value.java_class == row.java_class
    assert row.told in refusal.value.message
    assert len(served.log.frames) == edits


@dataclass(frozen=True, slots=True)
class Made:
    """A call that makes a file; a path, flags and fields."""

    src: str
    flags: int = CREATE
    fields: namenode_in_memory.Fields = field(default_factory=dict)


MADE: dict[str, Made] = {
    "in a directory that is there": Made("/d/n", fields={"createParent": False}),
    "with its directories": Made("/d/n/m"),
    "over nothing": Made("/d/n", CREATE | OVERWRITE),
    "over a file": Made("/d/f", CREATE | OVERWRITE),
    "only over a file": Made("/d/f", OVERWRITE),
    "with the fewest replicas": Made("/d/n", fields={"replication": 1}),
    "with the most replicas": Made("/d/n", fields={"replication": 512}),
    "with the smallest blocks": Made("/d/n", fields={"blockSize": 1 << 20}),
    "replicated where files are striped": Made("/s/n", CREATE | SHOULD_REPLICATE),
    "replicated by name": Made("/s/n", fields={"ecPolicyName": "Replication"}),
}


@pytest.mark.parametrize("row", MADE.values(), ids=MADE.keys())
async def test_a_file_is_made_as_asked_for(row: Made) -> None:
    served = await prepared()
    before = served.namespace.counters.last_inode_id
    made = await served.create(row.src, createFlag=row.flags, call_id=77, **row.fields)
    op = added(served)
    assert (op.path, op.overwrite, op.client_name, op.client_machine, op.rpc) == (
        row.src, bool(row.flags & OVERWRITE), "writer", "127.0.0.1",
        RpcIds(b"client-of-16byte", 77),
    )  # fmt: skip
    assert (op.replication, op.block_size) == (
        row.fields.get("replication", 3),
        row.fields.get("blockSize", 1 << 27),
    )
    directories = 1 if row.src == "/d/n/m" else 0
    assert op.inode_id == made.fileId == before + directories + 1
    assert op.ec_policy_id == 0


def added(served: namenode_in_memory.Served) -> Add:
    op = served.log.ops()[-1]
    assert isinstance(op, Add)
    return op


@pytest.mark.parametrize(
    ("directory", "asked", "flags", "own"),
    [
        ("HOT", None, CREATE, 0),
        ("COLD", None, CREATE, 0),
        ("HOT", "COLD", CREATE, 2),
        ("HOT", "cold", CREATE, 2),
        ("HOT", "LAZY_PERSIST", CREATE, 15),
        ("HOT", None, CREATE | LAZY_PERSIST, 15),
        ("HOT", "COLD", CREATE | LAZY_PERSIST, 15),
        ("LAZY_PERSIST", None, CREATE, 15),
        ("LAZY_PERSIST", None, CREATE | OVERWRITE, 15),
        ("LAZY_PERSIST", "COLD", CREATE, 2),
    ],
)
async def test_a_file_s_own_storage_policy(
    directory: str, asked: str | None, flags: int, own: int
) -> None:
    """LAZY_PERSIST is copied from the directory and goes before others, as in Hadoop."""
    served = namenode_in_memory.serve()
    await served.mkdirs("/d")
    await served.touch("/d/f")
    await served.call("setStoragePolicy", src="/d", policyName=directory)
    more = {} if asked is None else {"storagePolicy": asked}
    for path in ("/d/f" if flags & OVERWRITE else "/d/n", "/d/x/n"):
        await served.create(path, createFlag=flags, **more)
        assert added(served).storage_policy_id == own


async def test_who_creates_is_alive() -> None:
    served = namenode_in_memory.serve()
    await served.create("/f")
    namenode_in_memory.silent_beyond_the_soft_limit(served)
    await served.create("/g")
    with pytest.raises(RemoteFault, match="currently owned by writer"):
        await served.create("/f", clientName="other")


async def test_a_taken_name_is_told_after_the_recovery_that_the_call_causes() -> None:
    served, disks, _ = await half_written()
    namenode_in_memory.silent_beyond_the_soft_limit(served)
    with pytest.raises(RemoteFault, match="Failed to CREATE_FILE /f for other") as refusal:
        await served.create("/f", clientName="other")
    assert refusal.value.java_class == RECOVERY_IN_PROGRESS
    assert disks.leader()


@pytest.mark.parametrize(
    ("replication", "told"),
    [
        (0, "Requested replication factor of 0 is less than the required minimum of 1 for /f"),
        (513, "Requested replication factor of 513 exceeds maximum of 512 for /f"),
    ],
)
async def test_who_changes_the_replication_is_not_named(replication: int, told: str) -> None:
    served = namenode_in_memory.serve()
    await served.touch("/f")
    with pytest.raises(RemoteFault) as refusal:
        await served.call("setReplication", src="/f", replication=replication)
    assert refusal.value.message == told

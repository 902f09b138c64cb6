"""Which file a call about an open file means, whose it must be, and with what it is closed."""

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.open_files.open_files import by_id, close_edit
from namenode_sim.edits.ops import Close
from namenode_sim.edits.values import Block, Permission
from tests.namenode_sim.client_protocol.namenode_in_memory import prepared, serve

NO_FILE = "java.io.FileNotFoundException"
LEASE = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException"


# ---- which file ----


async def test_without_an_id_it_is_the_one_at_the_path() -> None:
    served = await prepared()
    route = by_id(served.scene(), "/d/g", 0)
    assert (route.path, route.last) == ("/d/g", served.namespace.tree.file("/d/g"))


@pytest.mark.parametrize("told", ["/open", "/f", "/none/at/all"])
async def test_by_its_id_it_is_found_wherever_it_is_now(told: str) -> None:
    served = await prepared()
    file = served.namespace.tree.file("/open")
    await served.call("rename2", src="/open", dst="/d/moved", overwriteDest=False)
    route = by_id(served.scene(), told, file.id)
    assert (route.path, route.last) == ("/d/moved", file)


@pytest.mark.parametrize("told", ["/f", "/d/none", "/none/at/all"])
async def test_one_that_is_gone_is_at_no_path(told: str) -> None:
    served = await prepared()
    route = by_id(served.scene(), told, 2**40)
    assert (route.path, route.last) == (told, None)


# ---- whose it must be ----


# The path, the client, how it is refused, and why: ID stands for the id that the client sends.
REFUSED: dict[str, tuple[str, str, str, str]] = {
    "one that does not exist": (
        "/none", "writer", NO_FILE,
        "File does not exist: /none (inode 0) [Lease.  Holder: writer, pending creates: 2]",
    ),
    "one that is no file": (
        "/d", "writer", LEASE,
        "INode is not a regular file: /d (inode ID) [Lease.  Holder: writer, pending creates: 2]",
    ),
    "one that is closed": (
        "/f", "other", LEASE,
        "File is not open for writing: /f (inode ID) Holder other does not have any open files.",
    ),
    "one that another writes": (
        "/open", "other", LEASE,
        "Client (=other) is not the lease owner (=writer: /open (inode ID) Holder other does not "
        "have any open files.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("src", "client", "java_class", "why"), REFUSED.values(), ids=REFUSED)
async def test_it_must_be_the_caller_s_own(
    src: str, client: str, java_class: str, why: str
) -> None:
    served = await prepared()
    await served.create("/second")
    node = served.namespace.tree.find(src)
    number = 0 if node is None else node.id
    served.face.leases.renew(client, 10.0)
    with pytest.raises(RemoteFault) as refusal:
        await served.call("fsync", src=src, client=client, fileId=number)
    told = why.replace("ID", str(number))
    assert (refusal.value.java_class, refusal.value.message) == (java_class, told)
    assert served.face.leases.last_heard([client], 20.0) == {client: 10.0}


async def test_a_call_about_one_s_own_is_a_sign_of_life() -> None:
    served = await prepared()
    served.face.leases.renew("writer", 10.0)
    served.face.clock = lambda: 15.0
    await served.call("fsync", src="/open", client="writer")
    assert served.face.leases.last_heard(["writer"], 20.0) == {"writer": 15.0}


# ---- with what it is closed ----

ONE, OTHER = Block(7, 100, 1001), Block(8, 200, 1002)


@pytest.mark.parametrize("blocks", [None, (), (OTHER,)])
async def test_a_file_is_closed_with_all_that_it_is(blocks: tuple[Block, ...] | None) -> None:
    served = serve()
    await served.create("/f", replication=2, blockSize=1 << 20)
    await served.call("setOwner", src="/f", username="alice", groupname="staff")
    file = served.namespace.tree.file("/f")
    file.blocks, file.mtime, file.atime = (ONE,), 5, 6
    assert close_edit(file, "/g", 1000, blocks) == Close(
        inode_id=0,
        path="/g",
        replication=2,
        mtime=1000,
        atime=6,
        block_size=1 << 20,
        blocks=(ONE,) if blocks is None else blocks,
        permission=Permission("alice", "staff", 0o644),
    )

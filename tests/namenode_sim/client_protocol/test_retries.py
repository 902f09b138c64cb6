"""A call repeated after a lost answer gives the first answer, on the same NameNode or the next."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import XAttrProto
from namenode_sim.client_protocol.table import READS, WRITES
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import INodeDirectory, UnderConstruction
from tests.namenode_sim.client_protocol.datanodes_in_memory import with_datanodes, written
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve
from tests.namenode_sim.namespace.dump import differences

XATTR = XAttrProto(namespace=XAttrProto.USER, name="a", value=b"1")

CREATE_LAZY_PERSIST = 0x11
"""With a storage policy of the file's own."""

CACHE = ("Directive", "Pool")

ONCE: dict[str, tuple[str, Fields]] = {
    "create": (
        "create",
        {
            "src": "/d/new",
            "masked": {"perm": 0o644},
            "clientName": "writer",
            "createFlag": 1,
            "createParent": True,
            "replication": 3,
            "blockSize": 1 << 27,
        },
    ),
    "rename": ("rename", {"src": "/d/f", "dst": "/d/g"}),
    "rename2": ("rename2", {"src": "/d/f", "dst": "/d/g", "overwriteDest": False}),
    "delete": ("delete", {"src": "/d/f", "recursive": False}),
    "append": ("append", {"src": "/d/f", "clientName": "writer"}),
    "setXAttr": ("setXAttr", {"src": "/d/f", "xAttr": XATTR, "flag": 1}),
    "removeXAttr": ("removeXAttr", {"src": "/d/x", "xAttr": XATTR}),
    "addCacheDirective": ("addCacheDirective", {"info": {"path": "/d/f", "pool": "p"}}),
    "modifyCacheDirective": ("modifyCacheDirective", {"info": {"id": 1, "path": "/d/x"}}),
    "removeCacheDirective": ("removeCacheDirective", {"id": 1}),
    "addCachePool": ("addCachePool", {"info": {"poolName": "q"}}),
    "modifyCachePool": ("modifyCachePool", {"info": {"poolName": "p", "limit": 5}}),
    "removeCachePool": ("removeCachePool", {"poolName": "p"}),
}


async def prepared() -> Served:
    served = serve()
    await served.mkdirs("/d")
    await served.touch("/d/f")
    await served.touch("/d/x")
    await served.call("setXAttr", src="/d/x", xAttr=XATTR, flag=1)
    await served.call("addCachePool", info={"poolName": "p"})
    await served.call("addCacheDirective", info={"path": "/d", "pool": "p"})
    return served


def next_namenode(old: Served) -> Served:
    return serve(namespace=old.log.replayed())


@pytest.mark.parametrize(("method", "fields"), ONCE.values(), ids=ONCE.keys())
@pytest.mark.parametrize("failed_over", [False, True], ids=["here", "after a failover"])
async def test_a_repeated_call_is_not_done_twice(
    method: str, fields: Fields, failed_over: bool
) -> None:
    first = await prepared()
    answer = await first.call(method, call_id=700, **fields)
    then = next_namenode(first) if failed_over else first
    edits = len(then.log.frames)
    assert await then.call(method, call_id=700, **fields) == answer
    assert len(then.log.frames) == edits


@pytest.mark.parametrize("method", ["create", "append"])
@pytest.mark.parametrize("failed_over", [False, True], ids=["here", "after a failover"])
async def test_a_call_is_repeated_when_its_file_is_gone(method: str, failed_over: bool) -> None:
    first = with_datanodes(await prepared())
    await written(first, "/d/full", 10)
    src = "/d/full" if method == "append" else "/d/new"
    more: Fields = {"createFlag": CREATE_LAZY_PERSIST} if method == "create" else {}
    fields = {**ONCE[method][1], "src": src, **more}
    answer = await first.call(method, call_id=700, **fields)
    await first.call("delete", src=src, recursive=False)
    then = next_namenode(first) if failed_over else first
    again = await then.call(method, call_id=700, **fields)
    stat = "fs" if method == "create" else "stat"
    assert getattr(again, stat) == getattr(answer, stat)


@pytest.mark.parametrize(
    ("method", "fields"), [ONCE[name] for name in ("create", "rename", "rename2", "removeXAttr")]
)
async def test_the_same_call_by_another_number_is_another_call(method: str, fields: Fields) -> None:
    served = await prepared()
    await served.call(method, call_id=700, **fields)
    try:
        answer = await served.call(method, call_id=701, **fields)
    except RemoteFault:
        return
    assert answer == calls.RenameResponseProto(result=False)


async def test_complete_says_true_again_though_no_cache_remembers_it() -> None:
    first = await prepared()
    status = await first.create("/d/new")
    assert await first.complete("/d/new", fileId=status.fileId)
    assert await next_namenode(first).complete("/d/new", fileId=status.fileId)


async def test_a_duplicate_waits_for_the_first_to_be_durable() -> None:
    served = await prepared()
    served.log.held = asyncio.Event()
    first = asyncio.create_task(served.call("delete", src="/d/f", recursive=False, call_id=7))
    again = asyncio.create_task(served.call("delete", src="/d/f", recursive=False, call_id=7))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done()
    assert not again.done()
    served.log.held.set()
    done = calls.DeleteResponseProto(result=True)
    assert [await first, await again] == [done, done]


Idempotent = Callable[[Served], Awaitable[object]]
REPEATABLE: dict[str, Idempotent] = {
    "mkdirs": lambda s: s.mkdirs("/d/e/f"),
    "setPermission": lambda s: s.call("setPermission", src="/d", permission={"perm": 0o700}),
    "setOwner": lambda s: s.call("setOwner", src="/d", username="bob"),
    "setTimes": lambda s: s.call("setTimes", src="/d/f", mtime=5, atime=6),
    "setReplication": lambda s: s.call("setReplication", src="/d/f", replication=2),
    "setQuota": lambda s: s.call("setQuota", path="/d", namespaceQuota=50, storagespaceQuota=60),
    "setStoragePolicy": lambda s: s.call("setStoragePolicy", src="/d", policyName="COLD"),
    "renewLease": lambda s: s.call("renewLease", clientName="writer"),
}


@pytest.mark.parametrize("action", REPEATABLE.values(), ids=REPEATABLE.keys())
async def test_the_other_calls_may_simply_be_done_again(action: Idempotent) -> None:
    served = await prepared()
    answer = await action(served)
    once = served.log.replayed()
    assert await action(served) == answer
    # Only the count of transactions may have grown.
    once.last_applied = served.namespace.last_applied
    assert differences(once, served.log.replayed()) == []


def test_exactly_the_calls_that_hadoop_marks_at_most_once_are_remembered() -> None:
    marked = {"create", "append", "rename", "rename2", "delete", "setXAttr", "removeXAttr"}
    marked |= {"createSnapshot", "deleteSnapshot", "renameSnapshot"}
    marked |= {"updatePipeline", "concat"}
    marked |= {f"{verb}Cache{what}" for verb in ("add", "modify", "remove") for what in CACHE}
    assert {name for name, write in WRITES.items() if write.repeated is not None} == marked
    assert not READS.keys() & WRITES.keys()


async def test_every_answer_waits_for_the_last_edit_that_it_could_have_seen() -> None:
    served = await prepared()
    served.log.held = asyncio.Event()
    writer = asyncio.create_task(served.mkdirs("/seen"))
    await asyncio.sleep(0)
    reader = asyncio.create_task(served.status("/seen"))
    refused = asyncio.create_task(served.create("/seen"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(task.done() for task in (writer, reader, refused))
    assert set(served.log.waited_for[-3:]) == {served.namespace.last_applied}
    served.log.held.set()
    assert await reader is not None
    with pytest.raises(RemoteFault, match="already exists as a directory"):
        await refused
    assert await writer


async def test_a_journal_that_fails_lets_no_answer_out() -> None:
    served = await prepared()
    served.log.broken = True
    with pytest.raises(ConnectionError):
        await served.mkdirs("/lost")
    with pytest.raises(ConnectionError):
        await served.status("/lost")


async def test_calls_are_admitted_as_reads_or_writes() -> None:
    served = await prepared()
    served.gate.open = False
    await served.status("/")
    await served.mkdirs("/x")
    await served.call("getBlockLocations", src="/d/f", offset=0, length=1)
    await served.call("getContentSummary", path="/")
    assert served.gate.admitted == [
        ("getFileInfo", False),
        ("mkdirs", True),
        ("getBlockLocations", False),
        ("getContentSummary", False),
    ]
    await served.call("getHAServiceState")
    assert len(served.gate.admitted) == 4


async def test_an_edit_that_was_logged_and_does_not_apply_is_reported() -> None:
    served = await prepared()
    told: list[str] = []
    served.face.on_broken = told.append
    tree, name = served.namespace.tree, b"to/which/no/path/leads"
    file, directory = tree.file("/d/f"), tree.node("/d")
    assert isinstance(directory, INodeDirectory)
    directory.children[name] = directory.children.pop(file.name)
    file.name, file.under_construction = name, UnderConstruction("writer", "here")
    with pytest.raises(ApplyError):
        await served.complete("/d/f", fileId=file.id)
    path = f"/d/{name.decode()}"
    assert told == [f"transaction 9, Close: {path} is not a file of the namespace"]


async def test_an_edit_that_was_logged_and_broke_while_it_was_applied_is_reported() -> None:
    """End it half-way: memory is not what the log says, and must serve no one."""
    served = await prepared()
    told: list[str] = []
    served.face.on_broken = told.append
    served.namespace.tree.leases["writer"] = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await served.create("/d/new", clientName="writer")
    assert len(told) == 1
    assert "NoneType" in told[0]


@pytest.mark.parametrize(
    ("method", "fields"),
    [("delete", {"src": "/d", "recursive": True}), ("rename", {"src": "/d", "dst": "/elsewhere"})],
)
async def test_a_late_duplicate_of_a_call_that_did_nothing_does_nothing(
    method: str, fields: Fields
) -> None:
    """Hold back the first attempt, as a cut network; the second is answered, then a peer acts."""
    served = serve()

    async def does(call_id: int) -> bool:
        answer = await served.call(method, call_id=call_id, **fields)
        assert isinstance(answer, calls.DeleteResponseProto | calls.RenameResponseProto)
        return answer.result

    assert not await does(90)
    await served.mkdirs("/d")
    edits = len(served.log.frames)
    assert not await does(90)
    assert len(served.log.frames) == edits
    assert await served.status("/d") is not None
    assert await does(91), "another call of the same client is another call"
    assert await served.status("/d") is None


async def test_a_late_duplicate_of_a_call_that_was_refused_is_refused() -> None:
    """Repeat the above for the calls that answer an exception when there is nothing to do."""
    served = serve()
    fields: Fields = {"src": "/d", "dst": "/elsewhere", "overwriteDest": False}
    for made in (False, True):
        if made:
            await served.mkdirs("/d")
        with pytest.raises(RemoteFault, match="rename source /d is not found"):
            await served.call("rename2", call_id=90, **fields)
    assert await served.status("/d") is not None
    await served.call("rename2", call_id=91, **fields)
    assert await served.status("/d") is None

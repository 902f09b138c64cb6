"""concat: what becomes of the blocks, and what is refused."""

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ILLEGAL_ARGUMENT, IO_EXCEPTION
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT, SNAPSHOT
from namenode_sim.edits.ops import Add
from namenode_sim.edits.values import Permission
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve


async def prepared() -> Served:
    """``/d/t``, ``/d/a`` and ``/d/b`` have blocks; others are unfit."""
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/d")
    await served.mkdirs("/s")
    for path in ("/d/t", "/d/a", "/d/b", "/other", "/s/t", "/s/a"):
        await datanodes_in_memory.written(served, path, 5)
    await served.touch("/d/empty")
    await served.create("/d/open")
    await served.create("/d/large", blockSize=1 << 28)
    return served


@pytest.mark.row("B26")
async def test_the_blocks_of_the_sources_come_behind_the_target_s() -> None:
    served = await prepared()
    await served.call("concat", trg="/d/t", srcs=["/d/b", "/d/a"])
    found = await datanodes_in_memory.locations(served, "/d/t")
    assert found.fileLength == 15
    assert [(block.offset, len(block.locs)) for block in found.blocks] == [(0, 3), (5, 3), (10, 3)]
    assert await served.status("/d/a") is None
    served.cluster.blocks.map.check()
    assert not len(served.cluster.blocks.invalidations)


@pytest.mark.row("B11", because="concat is one of the calls that are repeated there")
@pytest.mark.parametrize("failed_over", [False, True], ids=["here", "after a failover"])
async def test_a_repeated_concat_is_not_done_twice(*, failed_over: bool) -> None:
    served = await prepared()
    await served.call("concat", trg="/d/t", srcs=["/d/a"], call_id=900)
    if failed_over:
        served = serve(namespace=served.log.replayed())
    edits = len(served.log.frames)
    await served.call("concat", trg="/d/t", srcs=["/d/a"], call_id=900)
    assert len(served.log.frames) == edits


REFUSED = {
    "an open target": (
        "/d/open", ["/d/a"], "concat: target file /d/open is under construction",
    ),
    "a source elsewhere": (
        "/d/t", ["/other"],
        "Source file /other is not in the same directory with the target /d/t",
    ),
    "the target itself": (
        "/d/t", ["/d/t"], "concat: the src file /d/t is the same with the target file /d/t",
    ),
    "an empty source": (
        "/d/t", ["/d/empty"],
        "concat: source file /d/empty is invalid or empty or underConstruction",
    ),
    "an open source": (
        "/d/t", ["/d/open"], "concat: source file /d/open is invalid or empty or underConstruction",
    ),
    "a source twice": (
        "/d/t", ["/d/a", "/d/a"], "concat: at least two of the source files are the same",
    ),
    "a source twice, written otherwise": (
        "/d/t", ["/d/a", "/d//a/"], "concat: at least two of the source files are the same",
    ),
}  # fmt: skip


@pytest.mark.row("B26")
@pytest.mark.parametrize(("target", "sources", "message"), REFUSED.values(), ids=REFUSED.keys())
async def test_refused(target: str, sources: list[str], message: str) -> None:
    served = await prepared()
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call("concat", trg=target, srcs=sources)
    assert (refusal.value.java_class, refusal.value.message) == (HADOOP_ILLEGAL_ARGUMENT, message)
    assert len(served.log.frames) == edits


async def test_without_a_source_nothing_else_is_looked_at() -> None:
    with pytest.raises(RemoteFault, match="No sources given") as refusal:
        await serve().call("concat", trg="/none", srcs=[])
    assert refusal.value.java_class == ILLEGAL_ARGUMENT


@pytest.mark.parametrize("reserved", ["/.reserved/raw/d/t", "/.reserved/.inodes/16387"])
async def test_neither_end_is_named_by_a_reserved_path(reserved: str) -> None:
    served = await prepared()
    for target, sources in ((reserved, ["/d/a"]), ("/d/t", ["/d/a", reserved])):
        with pytest.raises(RemoteFault) as refusal:
            await served.call("concat", trg=target, srcs=sources)
        assert (refusal.value.java_class, refusal.value.message) == (
            IO_EXCEPTION,
            f"Concat operation doesn't support .reserved relative path : {reserved}",
        )


async def test_a_source_that_is_written_again_is_refused() -> None:
    served = await prepared()
    await served.call("append", src="/d/a", clientName="other")
    with pytest.raises(RemoteFault, match="source file /d/a is invalid or empty or under"):
        await served.call("concat", trg="/d/t", srcs=["/d/a"])


async def test_a_striped_target_and_a_replicated_source_do_not_go_together() -> None:
    """Log such a file, which only Hadoop's NameNode can have made."""
    served = await prepared()
    number = served.namespace.counters.last_inode_id + 1
    rights = Permission("hdfs", "hdfs", 0o644)
    op = Add(
        number, "/d/striped", 0, 1, 1, 1 << 27, (), rights, client_name="writer", ec_policy_id=1
    )
    served.log_and_apply(op)
    await served.complete("/d/striped")
    with pytest.raises(RemoteFault, match="have different erasure coding policy") as refusal:
        await served.call("concat", trg="/d/striped", srcs=["/d/a"])
    assert refusal.value.java_class == HADOOP_ILLEGAL_ARGUMENT


async def test_a_source_with_larger_blocks_is_refused() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await datanodes_in_memory.written(served, "/a", 5)
    await served.touch("/t", blockSize=1 << 20)
    with pytest.raises(RemoteFault) as refusal:
        await served.call("concat", trg="/t", srcs=["/a"])
    assert refusal.value.message == (
        "concat: source file /a has preferred block size 134217728 which is greater than the "
        "target file's preferred block size 1048576"
    )


async def test_a_source_that_a_snapshot_has_is_refused() -> None:
    served = await prepared()
    await served.take_snapshot("/s", "one")
    with pytest.raises(RemoteFault) as refusal:
        await served.call("concat", trg="/s/t", srcs=["/s/a"])
    assert (refusal.value.java_class, refusal.value.message) == (
        SNAPSHOT,
        "Concat: the source file /s/a is in snapshot",
    )


async def test_a_source_that_came_from_a_snapshot_s_directory_stays_while_that_has_it() -> None:
    served = await prepared()
    await served.take_snapshot("/s", "one")
    await served.call("rename", src="/s/a", dst="/d/moved")
    with pytest.raises(RemoteFault, match="/d/moved is referred by some other") as refusal:
        await served.call("concat", trg="/d/t", srcs=["/d/moved"])
    assert refusal.value.java_class == SNAPSHOT
    await served.call("deleteSnapshot", snapshotRoot="/s", snapshotName="one")
    await served.call("concat", trg="/d/t", srcs=["/d/moved"])
    assert (await datanodes_in_memory.locations(served, "/d/t")).fileLength == 10


@pytest.mark.parametrize(
    ("directory", "target", "source", "lacks"),
    [
        (0o777, 0o662, 0o664, None),
        (0o773, 0o662, 0o664, None),
        (0o777, 0o664, 0o664, 'access=WRITE, inode="/d/t"'),
        (0o777, 0o662, 0o662, 'access=READ, inode="/d/a"'),
        (0o775, 0o662, 0o664, 'access=WRITE, inode="/d"'),
    ],
)
async def test_what_a_caller_must_have_access_to(
    directory: int, target: int, source: int, lacks: str | None
) -> None:
    """Write the target, read the source, and take it out of its directory."""
    served = await prepared()
    for path, mode in {"/d": directory, "/d/t": target, "/d/a": source}.items():
        await served.call("setPermission", src=path, permission={"perm": mode})
    call = served.call("concat", trg="/d/t", srcs=["/d/a"], user="bob")
    if lacks is None:
        await call
        return
    with pytest.raises(RemoteFault, match="Permission denied") as refusal:
        await call
    assert lacks in refusal.value.message

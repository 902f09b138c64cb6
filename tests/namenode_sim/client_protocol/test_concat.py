"""concat: what becomes of the blocks, and what is refused."""

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.blocks.check import check
from namenode_sim.client_protocol.errors import HADOOP_ILLEGAL_ARGUMENT, SNAPSHOT
from tests.namenode_sim.client_protocol.datanodes_in_memory import (
    locations,
    with_datanodes,
    written,
)
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve


async def prepared() -> Served:
    """``/d/t``, ``/d/a`` and ``/d/b`` have blocks; others are unfit."""
    served = with_datanodes(serve())
    await served.mkdirs("/d")
    await served.mkdirs("/s")
    for path in ("/d/t", "/d/a", "/d/b", "/other", "/s/t", "/s/a"):
        await written(served, path, 5)
    await served.touch("/d/empty")
    await served.create("/d/open")
    await served.create("/d/large", blockSize=1 << 28)
    return served


@pytest.mark.row("B26")
async def test_the_blocks_of_the_sources_come_behind_the_target_s() -> None:
    served = await prepared()
    await served.call("concat", trg="/d/t", srcs=["/d/b", "/d/a"])
    found = await locations(served, "/d/t")
    assert found.fileLength == 15
    assert [(block.offset, len(block.locs)) for block in found.blocks] == [(0, 3), (5, 3), (10, 3)]
    assert await served.status("/d/a") is None
    check(served.cluster.blocks)
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
    "no source": ("/d/t", [], "concat: no source is given"),
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


async def test_a_source_with_larger_blocks_is_refused() -> None:
    served = with_datanodes(serve())
    await written(served, "/a", 5)
    await served.touch("/t", blockSize=1 << 20)
    with pytest.raises(RemoteFault) as refusal:
        await served.call("concat", trg="/t", srcs=["/a"])
    assert refusal.value.message == (
        "concat: source file /a has preferred block size 134217728 which is greater than the "
        "target file's preferred block size 1048576"
    )


async def test_a_source_that_a_snapshot_has_is_refused() -> None:
    served = await prepared()
    await served.call("allowSnapshot", snapshotRoot="/s")
    await served.call("createSnapshot", snapshotRoot="/s", snapshotName="one")
    with pytest.raises(RemoteFault) as refusal:
        await served.call("concat", trg="/s/t", srcs=["/s/a"])
    assert (refusal.value.java_class, refusal.value.message) == (
        SNAPSHOT,
        "Concat: the source file /s/a is in snapshot",
    )


async def test_a_caller_without_access_is_refused() -> None:
    served = await prepared()
    with pytest.raises(RemoteFault, match="Permission denied"):
        await served.call("concat", trg="/d/t", srcs=["/d/a"], user="bob")

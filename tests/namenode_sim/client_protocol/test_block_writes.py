"""addBlock, complete, abandonBlock, fsync: what they answer, log and leave in the map."""

import time
from collections.abc import Awaitable, Callable

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto, LocatedBlockProto
from namenode_sim.blocks.model import ReplicaState, Stage
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.edits import ops
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol.datanodes_in_memory import (
    POOL,
    add_block,
    locations,
    report,
    sized,
    with_datanodes,
    written,
)
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

FIRST, STAMP = 2**30 + 1, 1001
FULL = 1 << 27


def stage(served: Served, block: ExtendedBlockProto) -> Stage | None:
    state = served.cluster.blocks
    slot = state.map.find(block.blockId)
    return None if slot is None else state.map.block(slot).stage


def shown(block: LocatedBlockProto) -> tuple[int, int, int, list[str]]:
    """Return what stays the same in the answer to a repeated call."""
    return block.b.blockId, block.b.generationStamp, block.offset, sorted(block.storageIDs)


async def opened(count: int = 3) -> Served:
    """``/f`` is open and has no block yet."""
    served = with_datanodes(serve(), count)
    await served.create("/f")
    return served


async def test_a_file_of_two_blocks_is_written_and_read() -> None:
    served = await opened()
    first = await add_block(served, "/f")
    assert (first.b.poolId, first.b.blockId, first.b.generationStamp) == (POOL, FIRST, STAMP)
    assert sorted(place.id.datanodeUuid for place in first.locs) == ["d1", "d2", "d3"]
    assert list(first.storageIDs) == [f"DS-{place.id.datanodeUuid}-0" for place in first.locs]
    assert list(first.storageTypes) == [1, 1, 1]
    one = sized(first.b, 1 << 27)
    report(served, one, "d1", "d2", "d3")
    second = await add_block(served, "/f", one)
    assert second.offset == 1 << 27
    two = sized(second.b, 10)
    report(served, two, "d1")
    assert await served.complete("/f", last=two)
    assert served.log.ops() == [
        served.log.ops()[0],
        ops.AllocateBlockId(FIRST),
        ops.SetGenstampV2(STAMP),
        ops.AddBlock("/f", None, Block(FIRST, 0, STAMP)),
        ops.AllocateBlockId(FIRST + 1),
        ops.SetGenstampV2(STAMP + 1),
        ops.AddBlock("/f", Block(FIRST, 1 << 27, STAMP), Block(FIRST + 1, 0, STAMP + 1)),
        served.log.ops()[-1],
    ]
    closed = served.log.ops()[-1]
    assert isinstance(closed, ops.Close)
    assert closed.blocks == (Block(FIRST, 1 << 27, STAMP), Block(FIRST + 1, 10, STAMP + 1))
    served.cluster.blocks.map.check()
    found = await locations(served, "/f")
    assert (found.fileLength, found.underConstruction, found.isLastBlockComplete) == (
        (1 << 27) + 10,
        False,
        True,
    )
    assert [(block.offset, len(block.locs)) for block in found.blocks] == [(0, 3), (1 << 27, 1)]
    assert found.lastBlock == found.blocks[-1]


async def test_a_file_closes_once_enough_replicas_are_reported() -> None:
    served = await opened()
    block = sized((await add_block(served, "/f")).b, 7)
    edits = len(served.log.frames)
    assert not await served.complete("/f", last=block)
    assert stage(served, block) is Stage.COMMITTED
    assert not await served.complete("/f", last=block)
    assert len(served.log.frames) == edits  # no edit contains a length that is only committed
    report(served, block, "d2")
    assert stage(served, block) is Stage.COMPLETE
    assert await served.complete("/f", last=block)
    assert await served.complete("/f", last=block)  # its answer was lost
    assert len(served.log.frames) == edits + 1
    assert served.namespace.tree.file("/f").length() == 7


async def test_a_replica_of_another_length_does_not_complete_a_block() -> None:
    served = await opened()
    block = sized((await add_block(served, "/f")).b, 7)
    report(served, block, "d1", length=6)
    assert not await served.complete("/f", last=block)
    served.cluster.blocks.map.check()
    report(served, block, "d2")
    assert await served.complete("/f", last=block)
    (found,) = (await locations(served, "/f")).blocks
    assert [place.id.datanodeUuid for place in found.locs] == ["d2"]


async def test_a_block_behind_one_that_lacks_replicas_may_be_added_but_no_third() -> None:
    served = await opened()
    one = sized((await add_block(served, "/f")).b, 5)
    two = sized((await add_block(served, "/f", one)).b, 5)
    assert stage(served, one) is Stage.COMMITTED
    with pytest.raises(RemoteFault) as refusal:
        await add_block(served, "/f", two)
    assert refusal.value.java_class.endswith(".NotReplicatedYetException")
    assert refusal.value.message == "Not replicated yet: /f"
    assert not await served.complete("/f", last=two)
    assert stage(served, two) is Stage.UNDER_CONSTRUCTION
    report(served, one, "d1")
    await add_block(served, "/f", two)


@pytest.mark.row("B23", because="the case in which the answer alone was lost")
@pytest.mark.parametrize("length", [9, FULL])
async def test_a_repeated_call_gets_the_block_of_the_first(length: int) -> None:
    served = await opened()
    first = await add_block(served, "/f")
    edits = len(served.log.frames)
    assert shown(await add_block(served, "/f")) == shown(first)
    one = sized(first.b, length)
    report(served, one, "d1")
    second = await add_block(served, "/f", one)
    assert shown(await add_block(served, "/f", one)) == shown(second)
    assert len(served.log.frames) == edits + 3


@pytest.mark.row("B23", because="the case in which the first active has told the block and died")
async def test_after_a_failover_a_repetition_gets_the_same_block_at_new_places() -> None:
    old = await opened()
    first = await add_block(old, "/f")
    one = sized(first.b, 9)
    second = await add_block(old, "/f", one)
    new = with_datanodes(serve(namespace=old.log.replayed()))
    edits = len(new.log.frames)
    again = await add_block(new, "/f", one)
    assert (again.b, again.offset) == (second.b, second.offset)
    assert len(again.locs) == 3
    assert len(new.log.frames) == edits
    report(new, second.b, "d3", state=ReplicaState.RBW)
    assert shown(await add_block(new, "/f", one)) == shown(again)


async def test_an_append_to_a_full_block_needs_no_previous() -> None:
    served = with_datanodes(serve())
    await written(served, "/f", 1 << 27)
    served.log_and_apply(ops.Append("/f", "writer", "here"))
    added = await add_block(served, "/f")
    assert added.offset == 1 << 27
    # The active dies before it answers; Hadoop's NameNode fails the client's second call.
    assert shown(await add_block(served, "/f")) == shown(added)
    again = await add_block(with_datanodes(serve(namespace=served.log.replayed())), "/f")
    assert (again.b, again.offset) == (added.b, added.offset)


async def test_a_block_that_is_not_full_must_be_named_also_by_a_repetition() -> None:
    served = await opened()
    first = await add_block(served, "/f")
    await add_block(served, "/f", sized(first.b, 9))
    report(served, sized(first.b, 9), "d1")
    assert stage(served, first.b) is Stage.COMPLETE
    with pytest.raises(RemoteFault, match="does not match actual last block"):
        await add_block(served, "/f")


async def test_a_full_block_that_is_not_complete_must_be_named_also_by_a_repetition() -> None:
    served = await opened()
    first = sized((await add_block(served, "/f")).b, FULL)
    assert not await served.complete("/f", last=first)
    assert stage(served, first) is Stage.COMMITTED
    with pytest.raises(RemoteFault, match=f"already contains {FULL} bytes"):
        await add_block(served, "/f")
    await add_block(served, "/f", first)
    with pytest.raises(RemoteFault, match="does not match actual last block"):
        await add_block(served, "/f")


async def test_a_call_that_comes_late_adds_no_block_behind_a_whole_one() -> None:
    served = await opened()
    one = sized((await add_block(served, "/f")).b, 9)
    two = sized((await add_block(served, "/f", one)).b, FULL)
    report(served, one, "d1")
    assert not await served.complete("/f", last=two)
    report(served, two, "d1")
    assert stage(served, two) is Stage.COMPLETE
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match=f"already contains {FULL} bytes"):
        await add_block(served, "/f", one)
    assert len(served.log.frames) == edits


async def test_the_blocks_of_a_striped_file_stay_as_they_are() -> None:
    served = await opened()
    block = (await add_block(served, "/f")).b
    served.namespace.tree.file("/f").block_type = 1
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match="/f is striped; this NameNode writes no striped files"):
        await add_block(served, "/f", block)
    await served.call("abandonBlock", src="/f", holder="writer", b=block)
    assert len(served.log.frames) == edits


Step = Callable[[Served, ExtendedBlockProto], Awaitable[object]]


def other_stamp(block: ExtendedBlockProto) -> ExtendedBlockProto:
    changed = sized(block, 5)
    changed.generationStamp += 1
    return changed


def other_pool(block: ExtendedBlockProto) -> ExtendedBlockProto:
    changed = sized(block, 5)
    changed.poolId = "BP-2"
    return changed


REFUSED: dict[str, tuple[Step, str]] = {
    "a block behind one of another pool": (
        lambda s, b: add_block(s, "/f", other_pool(b)),
        f"Unexpected BlockPoolId BP-2 - expected {POOL}",
    ),
    "a block behind another": (
        lambda s, b: add_block(s, "/f", sized(other_stamp(b), 0)),
        f"Cannot allocate block in /f: passed 'previous' block {POOL}:blk_{FIRST}_{STAMP + 1} "
        f"does not match actual last block in file blk_{FIRST}_{STAMP}",
    ),
    "a block behind none where the file has none such": (
        lambda s, b: add_block(s, "/empty", b, clientName="writer"),
        f"Cannot allocate block in /empty: passed 'previous' block {POOL}:blk_{FIRST}_{STAMP} "
        "does not match actual last block in file null",
    ),
    "the end of another block": (
        lambda s, b: s.complete("/f", last=other_stamp(b)),
        f"Commit block with mismatching GS. NN has blk_{FIRST}_{STAMP}, client submits "
        f"blk_{FIRST}_{STAMP + 1}",
    ),
    "an abandoned block of another pool": (
        lambda s, b: s.call("abandonBlock", src="/f", holder="writer", b=other_pool(b)),
        f"Unexpected BlockPoolId BP-2 - expected {POOL}",
    ),
}


@pytest.mark.parametrize(("step", "message"), REFUSED.values(), ids=REFUSED.keys())
async def test_refused(step: Step, message: str) -> None:
    served = await opened()
    await served.create("/empty")
    block = await add_block(served, "/f")
    before = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await step(served, block.b)
    assert (refusal.value.java_class, refusal.value.message) == ("java.io.IOException", message)
    assert len(served.log.frames) == before


async def test_a_repetition_is_refused_once_the_block_has_bytes() -> None:
    served = await opened()
    await add_block(served, "/f")
    await served.call("fsync", src="/f", client="writer", lastBlockLength=3)
    with pytest.raises(RemoteFault) as refusal:
        await add_block(served, "/f")
    assert refusal.value.message == (
        f"Request looked like a retry to allocate block blk_{FIRST}_{STAMP} but it already "
        "contains 3 bytes"
    )


async def test_a_file_has_so_many_blocks() -> None:
    served = with_datanodes(serve(settings=Settings(max_blocks=1)))
    await served.create("/f")
    block = await add_block(served, "/f")
    with pytest.raises(RemoteFault, match=r"limit on maximum number of blocks .*: 1 >= 1"):
        await add_block(served, "/f", sized(block.b, 5))


async def test_without_room_a_refusal_says_why() -> None:
    served = await opened()
    for name in ("d1", "d2"):
        served.cluster.nodes[name].alive = False
    excluded = [{"id": {"ipAddr": "", "hostName": "", "datanodeUuid": "d3", "xferPort": 1,
                        "infoPort": 1, "ipcPort": 1}}]  # fmt: skip
    with pytest.raises(RemoteFault) as refusal:
        await add_block(served, "/f", excludeNodes=excluded)
    assert refusal.value.message == (
        "File /f could only be written to 0 of the 1 minReplication nodes. There are 1 "
        "datanode(s) running and 1 node(s) are excluded in this operation.\n"
        "DataNodes not taken: 2 not in service."
    )


async def test_an_abandoned_block_is_gone_and_its_replicas_are_deleted() -> None:
    served = await opened()
    one = sized((await add_block(served, "/f")).b, 5)
    report(served, one, "d1", "d2", "d3")
    two = await add_block(served, "/f", one)
    await served.call("abandonBlock", src="/f", holder="writer", b=two.b)
    assert served.log.ops()[-1] == ops.UpdateBlocks("/f", (Block(FIRST, 5, STAMP),))
    assert stage(served, two.b) is None
    assert len(served.cluster.blocks.invalidations) == 3
    now = time.monotonic()
    assert [storage.scheduled.count(now) for storage in served.cluster.blocks.map.storages] == [
        0,
        0,
        0,
    ]
    edits = len(served.log.frames)
    await served.call("abandonBlock", src="/f", holder="writer", b=two.b)  # again
    assert len(served.log.frames) == edits
    assert await served.complete("/f", last=one)


async def test_overwriting_deletes_the_replicas_of_the_old_file() -> None:
    served = with_datanodes(serve())
    (block,) = await written(served, "/f", 5)
    await served.create("/f", createFlag=3)
    assert isinstance(served.log.ops()[-1], ops.Add)
    orders = list(served.cluster.blocks.invalidations)
    assert {(number, cause) for _, number, _, cause in orders} == {
        (block.blockId, served.namespace.last_applied)
    }
    assert len(orders) == 3


async def test_a_reader_of_an_open_file_learns_where_its_last_block_is() -> None:
    served = await opened()
    await add_block(served, "/f")
    found = await locations(served, "/f")
    assert (found.fileLength, found.underConstruction, found.isLastBlockComplete) == (
        0,
        True,
        False,
    )
    assert len(found.blocks) == len(found.lastBlock.locs) - 2 == 1
    await served.call("fsync", src="/f", client="writer", lastBlockLength=300)
    found = await locations(served, "/f")
    assert (found.fileLength, found.blocks[0].b.numBytes) == (0, 300)

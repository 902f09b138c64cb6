"""What a DataNode reports of a recovery counts only where this NameNode ordered it."""

from collections.abc import Awaitable, Callable

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.blocks.model import Stage
from namenode_sim.blocks.safemode import enter, leave
from namenode_sim.datanodes.damage import Damaged, note_damage
from namenode_sim.datanodes.model import StorageState
from namenode_sim.edits.ops import Close, UpdateBlocks
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import datanodes_in_memory, recovering_datanodes
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

NEW_BLOCK = 32


@pytest.mark.row("B24")
async def test_a_result_of_another_recovery_is_refused() -> None:
    served, disks, block = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    late = disks.take_order(disks.leader())
    recovering_datanodes.at(served, 90.0)
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    old = recovering_datanodes.changed(result, newGenStamp=late.recovery_stamp)
    with pytest.raises(RemoteFault) as refused:
        await recovering_datanodes.commit(served, old)
    assert refused.value.reason == (
        f"The recovery id {late.recovery_stamp} does not match current recovery id "
        f"{result.newGenStamp} for block BP-1-127.0.0.1-1:blk_{block.blockId}_"
        f"{block.generationStamp}"
    )
    await recovering_datanodes.commit(served, result)


@pytest.mark.row("B9")
async def test_the_next_active_refuses_recoveries_of_the_former_one() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    served.cluster.blocks.demote()
    served.cluster.blocks.activate()
    with pytest.raises(RemoteFault, match="does not match current recovery id 0 for block"):
        await recovering_datanodes.commit(served, result)
    assert not await recovering_datanodes.recover_lease(served)
    again = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, again)
    assert served.namespace.tree.leases == {}


def of_another_pool(result: recovering_datanodes.Request) -> None:
    result.block.poolId = "BP-2"


def of_an_unknown_block(result: recovering_datanodes.Request) -> None:
    result.block.blockId = 7


def with_more_nodes_than_storages(result: recovering_datanodes.Request) -> None:
    result.newTargetStorages.pop()


def on_unknown_datanodes(result: recovering_datanodes.Request) -> None:
    for one in result.newTaragets:
        one.datanodeUuid = "d9"


def with_an_impossible_length(result: recovering_datanodes.Request) -> None:
    result.newLength = 2**63


REFUSED: dict[Callable[[recovering_datanodes.Request], None], str] = {
    of_another_pool: r"Unexpected BlockPoolId BP-2 - expected BP-1-127\.0\.0\.1-1",
    of_an_unknown_block: r"Block \(=BP-1-127\.0\.0\.1-1:blk_7_\d+\) not found",
    with_more_nodes_than_storages: "Missing storageIDs",
    on_unknown_datanodes: "on no storage that this NameNode knows",
    with_an_impossible_length: "cannot have 9223372036854775808 bytes",
}


@pytest.mark.row("B24")
@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
async def test_a_result_is_refused(change: Callable[[recovering_datanodes.Request], None]) -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    wrong = recovering_datanodes.changed(result)
    change(wrong)
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match=REFUSED[change]):
        await recovering_datanodes.commit(served, wrong)
    assert len(served.log.frames) == edits
    await recovering_datanodes.commit(served, result)
    assert served.namespace.tree.leases == {}


async def test_where_no_recovery_was_ordered_none_has_the_id_0() -> None:
    served, _, block = await recovering_datanodes.half_written()
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match="id 0 does not match current recovery id 0"):
        await recovering_datanodes.commit(
            served,
            recovering_datanodes.Request(block=block, newGenStamp=0, newLength=0, closeFile=True),
        )
    assert len(served.log.frames) == edits


async def test_a_block_may_have_as_many_bytes_as_edits_can_tell() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    await recovering_datanodes.commit(
        served, recovering_datanodes.changed(disks.lead(disks.leader()), newLength=2**63 - 1)
    )
    assert served.log.replayed().tree.file("/f").length() == 2**63 - 1


def died(served: Served) -> None:
    served.cluster.nodes["d2"].alive = False


def lost_its_volume(served: Served) -> None:
    served.cluster.nodes["d2"].storages["DS-d2-0"].state = StorageState.FAILED


def registered_with_other_storages(served: Served) -> None:
    node = served.cluster.nodes["d2"]
    node.storages["DS-d2-1"] = node.storages.pop("DS-d2-0")


@pytest.mark.parametrize(
    "change", [died, lost_its_volume, registered_with_other_storages], ids=lambda one: one.__name__
)
async def test_a_datanode_without_the_told_storage_does_not_have_the_block(
    change: Callable[[Served], None],
) -> None:
    served, disks, block = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    assert len(result.newTaragets) == 3
    change(served)
    await recovering_datanodes.commit(served, result)
    assert recovering_datanodes.holders(served, block.blockId) == ["d1", "d3"]


# ---- results that come late ----


async def appended_behind(served: Served) -> None:
    await served.call("append", src="/d/f", clientName="next", flag=NEW_BLOCK)


async def emptied_and_opened(served: Served) -> None:
    await served.call("truncate", src="/d/f", clientName="next", newLength=0)
    await served.call("append", src="/d/f", clientName="next")


async def emptied(served: Served) -> None:
    await served.call("truncate", src="/d/f", clientName="next", newLength=0)


SINCE = (appended_behind, emptied_and_opened, emptied)


@pytest.mark.parametrize("change", SINCE, ids=lambda change: change.__name__)
async def test_a_result_told_again_does_nothing_to_what_the_file_is_by_then(
    change: Callable[[Served], Awaitable[None]],
) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/d")
    (block,) = await datanodes_in_memory.written(served, "/d/f", 700)
    disks = recovering_datanodes.Disks(served)
    disks.write(block, recovering_datanodes.FINALIZED, d1=700, d2=700, d3=700)
    await served.take_snapshot("/d", "s")
    await served.call("truncate", src="/d/f", clientName="writer", newLength=400)
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    await change(served)
    file = served.namespace.tree.file("/d/f")
    edits, was = len(served.log.frames), (file.blocks, file.under_construction)
    await recovering_datanodes.commit(served, result)
    assert len(served.log.frames) == edits
    assert (file.blocks, file.under_construction) == was


async def test_the_last_block_of_a_closed_file_is_complete_though_its_only_replica_is_damaged() -> (
    None
):
    served = datanodes_in_memory.with_datanodes(serve(), 1)
    (block,) = await datanodes_in_memory.written(served, "/f", 700)
    disks = recovering_datanodes.Disks(served)
    disks.write(block, recovering_datanodes.FINALIZED, d1=700)
    await served.call("append", src="/f", clientName="writer")
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    note_damage(served.cluster, Damaged(block.blockId, block.generationStamp, "d1"))
    await recovering_datanodes.commit(served, result)
    assert recovering_datanodes.stage(served, block.blockId) is Stage.COMPLETE
    assert recovering_datanodes.holders(served, block.blockId) == []
    found = (await datanodes_in_memory.locations(served, "/f")).lastBlock
    assert (found.corrupt, [one.id.datanodeUuid for one in found.locs]) == (True, ["d1"])
    edits = len(served.log.frames)
    await recovering_datanodes.commit(served, result)
    assert len(served.log.frames) == edits


@pytest.mark.parametrize("told", [0, 700], ids=["length not told", "length told"])
async def test_a_file_is_closed_whose_only_replica_was_found_damaged_before(told: int) -> None:
    served = datanodes_in_memory.with_datanodes(serve(), 1)
    await served.create("/f")
    block = (await datanodes_in_memory.add_block(served, "/f")).b
    disks = recovering_datanodes.Disks(served)
    disks.write(block, recovering_datanodes.FINALIZED, d1=700)
    await served.call("fsync", src="/f", client="writer", lastBlockLength=told)
    note_damage(served.cluster, Damaged(block.blockId, block.generationStamp, "d1"))
    assert not await recovering_datanodes.recover_lease(served)
    await recovering_datanodes.commit(served, disks.lead("d1"))
    assert served.namespace.tree.file("/f").length() == 700
    assert recovering_datanodes.stage(served, block.blockId) is Stage.COMPLETE
    assert recovering_datanodes.holders(served, block.blockId) == []


async def test_a_damaged_replica_does_not_take_part_where_there_is_a_good_one() -> None:
    served, disks, block = await recovering_datanodes.half_written(d1=700)
    disks.write(block, recovering_datanodes.FINALIZED, d2=600)
    note_damage(served.cluster, Damaged(block.blockId, block.generationStamp, "d2"))
    await recovering_datanodes.recover_lease(served)
    told = disks.heartbeat(disks.leader())
    assert told is not None
    assert "d2" not in told.names


async def test_a_file_is_closed_with_fewer_replicas_than_a_block_needs() -> None:
    """Make more once it is closed; a block of an open file is not copied."""
    served, disks, block = await recovering_datanodes.half_written(minimum=2, d1=700)
    await recovering_datanodes.recover_lease(served)
    await recovering_datanodes.commit(served, disks.lead(disks.leader()))
    assert served.namespace.tree.leases == {}
    assert recovering_datanodes.stage(served, block.blockId) is Stage.COMPLETE
    assert recovering_datanodes.holders(served, block.blockId) == ["d1"]


@pytest.mark.row("B24")
async def test_the_file_of_a_result_may_be_gone() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    await served.call("delete", src="/f", recursive=False)
    with pytest.raises(RemoteFault, match=r"Block \(=.*\) not found"):
        await recovering_datanodes.commit(served, result)


async def test_a_file_that_only_a_snapshot_has_is_not_closed() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/d")
    await served.call("allowSnapshot", snapshotRoot="/d")
    await served.create("/d/f")
    block = (await datanodes_in_memory.add_block(served, "/d/f")).b
    disks = recovering_datanodes.Disks(served)
    disks.write(block, recovering_datanodes.RBW, d1=10)
    await served.call("fsync", src="/d/f", client="writer", lastBlockLength=10)
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s")
    await served.call("recoverLease", src="/d/f", clientName="other")
    result = disks.lead(disks.leader())
    await served.call("delete", src="/d/f", recursive=False)
    with pytest.raises(RemoteFault, match="likely due to delayed block removal"):
        await recovering_datanodes.commit(served, result)
    recovering_datanodes.at(served, 90.0)
    assert await served.face.release_expired_leases() == 0


async def test_a_result_may_leave_the_file_open() -> None:
    served, disks, block = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, recovering_datanodes.changed(result, closeFile=False))
    file = served.namespace.tree.file("/f")
    assert file.under_construction is not None
    assert file.blocks == (Block(block.blockId, 500, result.newGenStamp),)
    assert recovering_datanodes.stage(served, block.blockId) is Stage.UNDER_CONSTRUCTION
    assert recovering_datanodes.holders(served, block.blockId) == ["d1", "d2", "d3"]
    assert not await recovering_datanodes.recover_lease(served)


@pytest.mark.parametrize("length", [1, 500])
async def test_a_block_is_not_deleted_while_one_who_has_it_does_not_answer(length: int) -> None:
    served, disks, block = await recovering_datanodes.half_written(d1=0, d2=0, d3=length)
    disks.unreachable = {"d3"}
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    assert result.deleteBlock
    with pytest.raises(RemoteFault, match=f"not deleted: DataNode d3 has reported {length} bytes"):
        await recovering_datanodes.commit(served, result)
    node = served.cluster.nodes["d3"]
    for storage in node.storages.values():  # which is dead by now
        served.cluster.blocks.empty_storage(storage.held)
    await recovering_datanodes.commit(served, result)
    assert served.cluster.blocks.map.find(block.blockId) is None


# ---- files of two blocks ----


async def of_two_blocks(
    *, first_on: str, **lengths: int
) -> tuple[Served, recovering_datanodes.Disks, ExtendedBlockProto]:
    """``/f`` is open with a first block, which is returned, and a last one as ``half_written``."""
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/f")
    first = datanodes_in_memory.sized((await datanodes_in_memory.add_block(served, "/f")).b, 1000)
    datanodes_in_memory.report(served, first, *first_on.split())
    last = (await datanodes_in_memory.add_block(served, "/f", first)).b
    disks = recovering_datanodes.Disks(served)
    disks.write(last, recovering_datanodes.RBW, **lengths)
    return served, disks, first


@pytest.mark.parametrize("closes", [True, False])
async def test_a_file_ends_before_a_block_of_which_nobody_has_a_byte(closes: bool) -> None:
    served, disks, first = await of_two_blocks(first_on="d1 d2 d3", d1=0, d2=0, d3=0)
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    assert result.deleteBlock
    edits = len(served.log.frames)
    await recovering_datanodes.commit(
        served, recovering_datanodes.changed(result, closeFile=closes)
    )
    left = (Block(first.blockId, 1000, first.generationStamp),)
    done = served.log.ops()[edits:]
    assert [type(op) for op in done] == ([UpdateBlocks, Close] if closes else [UpdateBlocks])
    assert done[0] == UpdateBlocks("/f", left)
    file = served.namespace.tree.file("/f")
    assert file.blocks == left
    assert (file.under_construction is None) is closes


@pytest.mark.parametrize("length", [0, 500])
async def test_a_file_is_not_closed_while_the_block_before_the_last_waits_for_a_replica(
    length: int,
) -> None:
    served, disks, first = await of_two_blocks(first_on="", d1=length)
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    assert result.deleteBlock is (length == 0)
    edits = len(served.log.frames)
    text = f"Failed to finalize /f since block {first.blockId} is COMMITTED"
    with pytest.raises(RemoteFault, match=text):
        await recovering_datanodes.commit(served, result)
    assert len(served.log.frames) == edits
    datanodes_in_memory.report(served, first, "d1")
    await recovering_datanodes.commit(served, result)
    assert served.namespace.tree.file("/f").under_construction is None
    assert served.namespace.tree.file("/f").length() == 1000 + length


@pytest.mark.row("B24")
async def test_a_file_is_closed_where_it_was_renamed_to() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    await served.call("rename2", src="/f", dst="/g", overwriteDest=False)
    await recovering_datanodes.commit(served, disks.lead(disks.leader()))
    assert served.namespace.tree.file("/g").under_construction is None
    assert served.namespace.tree.file("/g").length() == 500


async def test_in_safe_mode_no_result_counts() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    served.cluster.set_safe_mode(enter(served.cluster.safe_mode))
    text = "Cannot commitBlockSynchronization while in safe mode. Name node is in safe mode"
    with pytest.raises(RemoteFault, match=text):
        await recovering_datanodes.commit(served, result)
    recovering_datanodes.at(served, 90.0)
    assert await served.face.release_expired_leases() == 0
    served.cluster.set_safe_mode(leave(served.cluster.counts()))
    await recovering_datanodes.commit(served, result)
    assert served.namespace.tree.leases == {}

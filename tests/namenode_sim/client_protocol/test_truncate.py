"""truncate: at the end of a block at once, inside one by a recovery, copied for a snapshot."""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from journal.model import TxId
from namenode_sim.blocks.model import Cut, Stage
from namenode_sim.datanodes.damage import Damaged, note_damage
from namenode_sim.edits import ops
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import (
    datanodes_in_memory,
    namenode_in_memory,
    recovering_datanodes,
)

NAMES = ("d1", "d2", "d3")


async def file_of(
    *lengths: int,
) -> tuple[namenode_in_memory.Served, recovering_datanodes.Disks, list[ExtendedBlockProto]]:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await served.mkdirs("/d")
    disks = recovering_datanodes.Disks(served)
    blocks = await datanodes_in_memory.written(served, "/d/f", *lengths)
    for block in blocks:
        disks.write(block, recovering_datanodes.FINALIZED, **dict.fromkeys(NAMES, block.numBytes))
    return served, disks, blocks


async def truncate(served: namenode_in_memory.Served, length: int, client: str = "writer") -> bool:
    answer = await served.call("truncate", src="/d/f", newLength=length, clientName=client)
    assert isinstance(answer, calls.TruncateResponseProto)
    return answer.result


def stored(served: namenode_in_memory.Served) -> tuple[Block, ...]:
    return served.namespace.tree.file("/d/f").blocks


def cut_of(served: namenode_in_memory.Served, block_id: int) -> Cut | None:
    return served.cluster.blocks.map.construction(
        recovering_datanodes.slot_of(served, block_id)
    ).cut


async def test_to_the_length_that_it_has() -> None:
    served, _, _ = await file_of(1000, 700)
    edits = len(served.log.frames)
    assert await truncate(served, 1700)
    assert len(served.log.frames) == edits


@pytest.mark.row("B26")
@pytest.mark.parametrize("length", [0, 1000])
async def test_to_the_end_of_a_block_is_done_at_once(length: int) -> None:
    served, _, (first, last) = await file_of(1000, 700)
    assert await truncate(served, length)
    assert sum(block.num_bytes for block in stored(served)) == length
    assert served.namespace.tree.leases == {}
    assert served.cluster.blocks.map.find(last.blockId) is None
    orders = {number for _, number, _, _ in served.cluster.blocks.invalidations}
    assert orders == {last.blockId} | ({first.blockId} if not length else set())


@pytest.mark.row("B26")
async def test_inside_a_block_its_replicas_are_cut() -> None:
    served, disks, (first, last) = await file_of(1000, 700)
    edits = len(served.log.frames)
    assert not await truncate(served, 400)
    stamp = last.generationStamp + 1
    number, edit = served.log.ops()[edits:]
    assert number == ops.SetGenstampV2(stamp)
    assert isinstance(edit, ops.Truncate)
    assert (edit.new_length, edit.block) == (400, Block(first.blockId, 1000, stamp))
    assert served.namespace.tree.leases == {"writer": {served.namespace.tree.file("/d/f").id}}
    assert cut_of(served, first.blockId) == Cut(400, stamp, first.blockId)
    assert await closes(served, disks)
    assert stored(served) == (Block(first.blockId, 400, stamp),)
    assert recovering_datanodes.holders(served, first.blockId) == ["d1", "d2", "d3"]
    assert disks.replicas["d1", first.blockId].length == 400
    assert served.log.replayed().tree.file("/d/f").blocks == stored(served)


@pytest.mark.parametrize(("length", "left"), [(1, [1]), (999, [999]), (1001, [1000, 1]),
                                              (1699, [1000, 699])])  # fmt: skip
async def test_a_file_ends_where_it_was_cut(length: int, left: list[int]) -> None:
    served, disks, _ = await file_of(1000, 700)
    assert not await truncate(served, length)
    assert await closes(served, disks)
    assert [block.num_bytes for block in stored(served)] == left


async def closes(served: namenode_in_memory.Served, disks: recovering_datanodes.Disks) -> bool:
    """End the recovery that was ordered; return whether the file is closed."""
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    served.cluster.blocks.map.check()
    return served.namespace.tree.file("/d/f").under_construction is None


@pytest.mark.row("B26")
async def test_a_block_that_a_snapshot_has_is_copied() -> None:
    served, disks, (block,) = await file_of(700)
    await served.take_snapshot("/d", "s")
    edits = len(served.log.frames)
    assert not await truncate(served, 400)
    identity, number, edit = served.log.ops()[edits:]
    copy, stamp = block.blockId + 1, block.generationStamp + 1
    assert (identity, number) == (ops.AllocateBlockId(copy), ops.SetGenstampV2(stamp))
    assert isinstance(edit, ops.Truncate)
    assert edit.block == Block(copy, 0, stamp)
    assert cut_of(served, copy) == Cut(400, stamp, block.blockId)
    result = disks.lead(disks.leader())
    assert result.block.blockId == block.blockId
    await recovering_datanodes.commit(served, result)
    assert stored(served) == (Block(copy, 400, stamp),)
    assert (
        recovering_datanodes.holders(served, copy)
        == recovering_datanodes.holders(served, block.blockId)
        == ["d1", "d2", "d3"]
    )
    assert disks.replicas["d1", block.blockId].length == 700
    assert len(served.cluster.blocks.invalidations) == 0


@pytest.mark.parametrize("failover", ["none", "before the snapshot goes", "after it"])
async def test_the_source_of_a_copy_outlives_its_last_snapshot_until_the_copy_is_made(
    failover: str,
) -> None:
    """The schedule: the snapshot is deleted before a DataNode has led the recovery."""
    served, disks, (block,) = await file_of(700)
    state = served.cluster.blocks
    await served.take_snapshot("/d", "s")
    assert not await truncate(served, 400)
    for when in ("before the snapshot goes", "", "after it"):
        if not when:
            await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s")
        elif when == failover:
            disks.take_order(disks.leader())
            state.demote()
            state.activate()
            assert await served.face.release_expired_leases() == 1
    assert recovering_datanodes.holders(served, block.blockId) == list(NAMES)
    assert len(state.invalidations) == 0
    assert await closes(served, disks)
    assert [one.num_bytes for one in stored(served)] == [400]
    assert state.map.find(block.blockId) is None
    assert len(state.invalidations) == len(NAMES)


@pytest.mark.parametrize("first", ["/d/f", "s"])
async def test_with_its_file_and_its_snapshot_a_copy_and_its_source_go(first: str) -> None:
    served, _, (block,) = await file_of(700)
    await served.take_snapshot("/d", "s")
    await truncate(served, 400)
    for gone in (first, "/d/f" if first == "s" else "s"):
        if gone == "s":
            await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s")
        else:
            await served.call("delete", src=gone, recursive=False)
    blocks = served.cluster.blocks
    assert [blocks.map.find(block.blockId + more) for more in (0, 1)] == [None, None]
    assert len(blocks.invalidations) == len(NAMES)
    blocks.map.check()


async def test_a_block_is_copied_from_damaged_replicas_where_there_are_no_others() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve(), 1)
    await served.mkdirs("/d")
    (block,) = await datanodes_in_memory.written(served, "/d/f", 700)
    disks = recovering_datanodes.Disks(served)
    disks.write(block, recovering_datanodes.FINALIZED, d1=700)
    await served.take_snapshot("/d", "s")
    note_damage(served.cluster, Damaged(block.blockId, block.generationStamp, "d1"))
    await served.call("truncate", src="/d/f", clientName="writer", newLength=400)
    await recovering_datanodes.commit(served, disks.lead("d1"))
    file = served.namespace.tree.file("/d/f")
    assert (file.length(), file.under_construction) == (400, None)


async def test_what_was_appended_since_the_snapshot_is_cut_in_place() -> None:
    served, disks, (block,) = await file_of(700)
    await served.take_snapshot("/d", "s")
    await served.call("append", src="/d/f", clientName="writer", flag=32)
    added = (
        await datanodes_in_memory.add_block(served, "/d/f", datanodes_in_memory.sized(block, 700))
    ).b
    disks.write(datanodes_in_memory.sized(added, 300), recovering_datanodes.FINALIZED, d1=300)
    assert await served.complete("/d/f", last=datanodes_in_memory.sized(added, 300))
    assert not await truncate(served, 800)
    assert cut_of(served, added.blockId) == Cut(100, added.generationStamp + 1, added.blockId)
    assert await closes(served, disks)


async def test_a_repeated_call_waits_with_the_first() -> None:
    served, disks, _ = await file_of(700)
    assert not await truncate(served, 400)
    edits = len(served.log.frames)
    assert not await truncate(served, 400, client="other")
    with pytest.raises(RemoteFault) as refused:
        await truncate(served, 300)
    assert refused.value.reason == (
        "Failed to TRUNCATE_FILE /d/f for writer on 127.0.0.1 because /d/f is being truncated."
    )
    assert refused.value.java_class.endswith("AlreadyBeingCreatedException")
    assert len(served.log.frames) == edits
    assert await closes(served, disks)
    assert await truncate(served, 400)


async def test_a_repeated_call_names_the_length_of_the_whole_file() -> None:
    served, _, _ = await file_of(1000, 700)
    assert not await truncate(served, 1400)
    edits = len(served.log.frames)
    assert not await truncate(served, 1400)
    with pytest.raises(RemoteFault, match="is being truncated"):
        await truncate(served, 400)
    assert len(served.log.frames) == edits


async def test_a_file_without_blocks() -> None:
    served = namenode_in_memory.serve()
    await served.mkdirs("/d")
    await served.create("/d/f", clientName="gone")
    namenode_in_memory.silent_beyond_the_soft_limit(served, "gone")
    assert await truncate(served, 0)
    assert served.namespace.tree.leases == {}
    assert await truncate(served, 0)
    with pytest.raises(RemoteFault, match="Current size: 0, truncate size: 1"):
        await truncate(served, 1)


async def test_whoever_cuts_a_file_counts_as_just_renewed() -> None:
    served, _, _ = await file_of(700)
    served.face.leases.renew("writer", 500.0)
    served.face.clock = lambda: 1000.0
    assert not await truncate(served, 400)
    assert served.face.leases.last_heard(["writer"], 1000.0) == {"writer": 1000.0}


async def test_a_longer_file_cannot_be_made() -> None:
    served, _, _ = await file_of(700)
    with pytest.raises(RemoteFault) as refused:
        await truncate(served, 701)
    assert refused.value.reason == (
        "Cannot truncate to a larger file size. Current size: 700, truncate size: 701."
    )


@pytest.mark.parametrize("wrong", [{"newLength": 500}, {"newLength": 300}, {"deleteBlock": True}])
async def test_another_length_than_the_asked_one_does_not_count(wrong: dict[str, int]) -> None:
    served, disks, _ = await file_of(700)
    await truncate(served, 400)
    result = disks.lead(disks.leader())
    with pytest.raises(RemoteFault, match="is being truncated to 400 bytes, not"):
        await recovering_datanodes.commit(served, recovering_datanodes.changed(result, **wrong))
    await recovering_datanodes.commit(served, result)
    assert served.namespace.tree.leases == {}


async def test_the_result_must_name_the_source_of_a_copy() -> None:
    served, disks, (block,) = await file_of(700)
    await served.take_snapshot("/d", "s")
    await truncate(served, 400)
    result = disks.lead(disks.leader())
    wrong = recovering_datanodes.changed(result)
    wrong.block.blockId = block.blockId + 1
    with pytest.raises(RemoteFault, match=f"is that of block {block.blockId + 1}, not of"):
        await recovering_datanodes.commit(served, wrong)


async def test_after_a_failover_a_truncation_goes_on_from_its_edit() -> None:
    served, disks, (first, _) = await file_of(1000, 700)
    await truncate(served, 400)
    late = disks.lead(disks.leader())
    state = served.cluster.blocks
    state.demote()
    state.activate()
    with pytest.raises(RemoteFault, match="does not match current recovery id 0"):
        await recovering_datanodes.commit(served, late)
    assert not await truncate(served, 400)
    assert await served.face.release_expired_leases() == 1
    assert cut_of(served, first.blockId) == Cut(400, late.newGenStamp + 1, first.blockId)
    assert await closes(served, disks)
    assert stored(served) == (Block(first.blockId, 400, late.newGenStamp + 1),)


async def test_a_truncation_whose_leader_died_is_ordered_again() -> None:
    served, disks, _ = await file_of(700)
    await truncate(served, 400)
    disks.take_order(disks.leader())
    assert await served.face.release_expired_leases() == 0
    recovering_datanodes.at(served, 90.0)
    assert await served.face.release_expired_leases() == 1
    assert await closes(served, disks)


async def test_a_standby_learns_from_the_edit_what_is_to_be_cut() -> None:
    served, _, (first, _) = await file_of(1000, 700)
    await truncate(served, 400)
    standby = namenode_in_memory.serve()
    for txid, op in enumerate(served.log.ops(), start=1):
        standby.namespace.apply(TxId(txid), op)
    assert cut_of(standby, first.blockId) == cut_of(served, first.blockId)


async def test_an_abandoned_file_is_closed_and_then_cut() -> None:
    served, disks, _ = await file_of(700)
    await served.call("append", src="/d/f", clientName="gone", flag=32)
    namenode_in_memory.silent_beyond_the_soft_limit(served, "gone")
    edits = len(served.log.frames)
    assert not await truncate(served, 400)
    assert [type(op) for op in served.log.ops()[edits:]] == [
        ops.Close,
        ops.SetGenstampV2,
        ops.Truncate,
    ]
    assert await closes(served, disks)


async def test_an_abandoned_file_is_closed_and_then_emptied() -> None:
    served, _, _ = await file_of(700)
    await served.call("append", src="/d/f", clientName="gone", flag=32)
    namenode_in_memory.silent_beyond_the_soft_limit(served, "gone")
    edits = len(served.log.frames)
    assert await truncate(served, 0)
    assert [type(op) for op in served.log.ops()[edits:]] == [ops.Close, ops.Truncate]
    assert (stored(served), served.namespace.tree.leases) == ((), {})


async def test_an_abandoned_block_is_recovered_first() -> None:
    served, disks, (block,) = await file_of(700)
    await served.call("append", src="/d/f", clientName="gone")
    disks.write(block, recovering_datanodes.RBW, d1=900, d2=900, d3=900)
    namenode_in_memory.silent_beyond_the_soft_limit(served, "gone")
    with pytest.raises(RemoteFault, match="lease recovery is in progress"):
        await truncate(served, 400)
    assert await closes(served, disks)
    assert sum(one.num_bytes for one in stored(served)) == 900
    assert not await truncate(served, 400)
    assert recovering_datanodes.stage(served, block.blockId) is Stage.UNDER_RECOVERY


@pytest.mark.parametrize("path", ["/d/f", "/d"])
async def test_who_may_not_write_a_path_is_told_so_first(path: str) -> None:
    served, _, _ = await file_of(700)
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match="Permission denied: user=carol, access=WRITE"):
        await served.call("truncate", src=path, newLength=0, clientName="writer", user="carol")
    assert len(served.log.frames) == edits


@pytest.mark.parametrize(
    ("path", "user", "text"),
    [
        ("/d", "hdfs", "Path is not a file: /d"),
        ("/none", "hdfs", "File does not exist: /none"),
        ("/none", "carol", "File does not exist: /none"),
    ],
)
async def test_what_is_no_file_cannot_be_cut(path: str, user: str, text: str) -> None:
    served, _, _ = await file_of(700)
    with pytest.raises(RemoteFault, match=text):
        await served.call("truncate", src=path, newLength=0, clientName="writer", user=user)


async def test_what_cannot_be_cut() -> None:
    served, _, _ = await file_of(700)
    served.log_and_apply(ops.RollingUpgradeStart(1))
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match="while a rolling upgrade is in progress"):
        await truncate(served, 400)
    file = served.namespace.tree.file("/d/f")
    file.storage_policy_id = 15
    with pytest.raises(RemoteFault, match="Cannot truncate lazy persist file /d/f"):
        await truncate(served, 400)
    file.block_type = 1
    with pytest.raises(RemoteFault, match="Cannot truncate file with striped block /d/f"):
        await truncate(served, 400)
    assert len(served.log.frames) == edits


async def test_a_file_is_lazy_by_the_policy_of_its_directory_too() -> None:
    served, _, _ = await file_of(700)
    await served.call("setStoragePolicy", src="/d", policyName="LAZY_PERSIST")
    with pytest.raises(RemoteFault, match="Cannot truncate lazy persist file /d/f"):
        await truncate(served, 400)

"""A writer dies: its file is closed once DataNodes agree on the last block."""

import time

import pytest

from ha.rpc.errors import RemoteFault
from journal.model import TxId
from namenode_sim.blocks.apply_edits import apply_edit
from namenode_sim.blocks.model import CorruptMark, Reason, ReplicaState, Stage
from namenode_sim.client_protocol.words.model import Settings
from namenode_sim.datanodes.model import StorageState
from namenode_sim.datanodes.recovery import participants
from namenode_sim.edits.ops import Close, Op, ReassignLease, SetGenstampV2, UpdateBlocks
from namenode_sim.edits.values import Block
from namenode_sim.namespace.changes import BlockSettled
from tests.namenode_sim.client_protocol import (
    datanodes_in_memory,
    namenode_in_memory,
    recovering_datanodes,
)


def edits_since(served: namenode_in_memory.Served, count: int) -> list[Op]:
    return served.log.ops()[count:]


# ---- the way through ----


@pytest.mark.row("B24")
async def test_recover_lease_has_the_shortest_replica_win() -> None:
    served, disks, block = await recovering_datanodes.half_written()
    edits = len(served.log.frames)
    assert not await recovering_datanodes.recover_lease(served)
    stamp = block.generationStamp + 1
    assert edits_since(served, edits) == [
        SetGenstampV2(stamp),
        ReassignLease("writer", "/f", "other"),
    ]
    assert recovering_datanodes.stage(served, block.blockId) is Stage.UNDER_RECOVERY
    result = disks.lead(disks.leader())
    assert (result.newLength, result.newGenStamp, len(result.newTaragets)) == (500, stamp, 3)
    await recovering_datanodes.commit(served, result)
    (close,) = edits_since(served, edits + 2)
    assert isinstance(close, Close)
    assert close.blocks == (Block(block.blockId, 500, stamp),)
    assert recovering_datanodes.stage(served, block.blockId) is Stage.COMPLETE
    assert recovering_datanodes.holders(served, block.blockId) == ["d1", "d2", "d3"]
    assert await recovering_datanodes.recover_lease(served)
    answer = await datanodes_in_memory.locations(served, "/f")
    assert (answer.fileLength, len(answer.blocks[0].locs)) == (500, 3)
    assert served.log.replayed().tree.file("/f").blocks == close.blocks


async def test_the_order_waits_for_the_edit_with_its_stamp() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    edits = len(served.log.frames)
    await recovering_datanodes.recover_lease(served)
    assert disks.take_order(disks.leader()).cause == len(served.log.frames) == edits + 2


async def test_a_result_told_twice_counts_once() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    edits = len(served.log.frames)
    await recovering_datanodes.commit(served, result)
    assert len(served.log.frames) == edits


async def test_a_block_of_which_nobody_has_a_byte_is_given_up() -> None:
    served, disks, block = await recovering_datanodes.half_written(d1=0, d2=0, d3=0)
    edits = len(served.log.frames)
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    assert result.deleteBlock
    await recovering_datanodes.commit(served, result)
    assert [type(op) for op in edits_since(served, edits + 2)] == [UpdateBlocks, Close]
    assert served.namespace.tree.file("/f").blocks == ()
    assert served.cluster.blocks.map.find(block.blockId) is None
    await recovering_datanodes.commit(served, result)  # a repetition finds nothing to do


async def test_a_finalized_replica_is_the_truth() -> None:
    served, disks, block = await recovering_datanodes.half_written(d1=700, d2=700)
    disks.write(block, recovering_datanodes.FINALIZED, d3=650)
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    assert result.newLength == 650
    assert recovering_datanodes.holders(served, block.blockId) == ["d3"]


async def test_replicas_that_took_no_part_are_gone_or_corrupt() -> None:
    served, disks, block = await recovering_datanodes.half_written(d1=700, d2=700)
    disks.write(block, recovering_datanodes.FINALIZED, d3=700)
    disks.unreachable = {"d3"}
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    assert recovering_datanodes.holders(served, block.blockId) == ["d1", "d2"]
    state = served.cluster.blocks
    (mark,) = state.map.corrupt_marks(recovering_datanodes.slot_of(served, block.blockId)).values()
    assert mark.stamp == block.generationStamp
    disks.tell_all(block.blockId)  # a replica that comes back late stays corrupt
    assert recovering_datanodes.holders(served, block.blockId) == ["d1", "d2"]


async def test_a_replica_whose_datanode_restarted_counts_only_where_no_other_does() -> None:
    served, disks, block = await recovering_datanodes.half_written(d1=600)
    disks.write(block, recovering_datanodes.RWR, d2=900, d3=900)
    await recovering_datanodes.recover_lease(served)
    result = disks.lead(disks.leader())
    assert (result.newLength, len(result.newTaragets)) == (600, 1)


# ---- which writer gets the file, and when ----


async def test_while_a_recovery_runs_no_other_begins() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    edits = len(served.log.frames)
    first = disks.take_order(disks.leader())
    assert not await recovering_datanodes.recover_lease(served)
    assert len(served.log.frames) == edits
    recovering_datanodes.at(served, 90.0)
    assert not await recovering_datanodes.recover_lease(served)
    assert disks.take_order(disks.leader()).recovery_stamp == first.recovery_stamp + 1


async def test_each_recovery_has_another_leader_until_all_were_asked() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    leaders = []
    for _ in range(4):
        await recovering_datanodes.recover_lease(served)
        leaders.append(disks.leader())
        disks.take_order(leaders[-1])
        recovering_datanodes.at(served, 90.0)
    assert sorted(leaders[:3]) == ["d1", "d2", "d3"]
    assert leaders[3] == leaders[0]


async def test_the_dead_lead_nothing() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    for name in ("d1", "d3"):
        served.cluster.nodes[name].alive = False
    await recovering_datanodes.recover_lease(served)
    assert disks.leader() == "d2"


async def test_without_a_living_datanode_nothing_is_lost() -> None:
    served, disks, block = await recovering_datanodes.half_written()
    for node in served.cluster.nodes.values():
        node.alive = False
    assert not await recovering_datanodes.recover_lease(served)
    assert recovering_datanodes.stage(served, block.blockId) is Stage.UNDER_RECOVERY
    assert await served.face.release_expired_leases() == 0
    served.cluster.nodes["d2"].alive = True
    assert await served.face.release_expired_leases() == 1
    assert disks.leader() == "d2"


async def test_an_untouched_block_waits_until_every_datanode_that_lives_is_known() -> None:
    before, _, _ = await recovering_datanodes.half_written()
    served = datanodes_in_memory.with_datanodes(
        namenode_in_memory.serve(namespace=before.log.replayed())
    )
    served.cluster.registered_by = time.monotonic() + 1000.0
    with pytest.raises(RemoteFault, match="No DataNode has told of its last block yet"):
        await recovering_datanodes.recover_lease(served)
    assert len(served.namespace.tree.file("/f").blocks) == 1
    served.cluster.registered_by = time.monotonic()
    assert await recovering_datanodes.recover_lease(served)
    assert served.namespace.tree.file("/f").blocks == ()


async def test_after_the_soft_limit_a_writer_waits_for_the_recovery_that_it_causes() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    namenode_in_memory.silent_beyond_the_soft_limit(served)
    for _ in range(2):
        with pytest.raises(RemoteFault, match="in progress") as refused:
            await served.call("append", src="/f", clientName="other")
        assert refused.value.java_class.endswith("RecoveryInProgressException")
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    await served.call("append", src="/f", clientName="other")
    assert set(served.namespace.tree.leases) == {"other"}


async def test_the_namenode_recovers_what_the_hard_limit_gives_it() -> None:
    served, disks, _ = await recovering_datanodes.half_written(Settings(hard_lease_seconds=0.0))
    assert await served.face.release_expired_leases() == 1
    (holder,) = served.namespace.tree.leases
    assert holder.startswith("HDFS_NameNode-")
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    assert served.namespace.tree.leases == {}


@pytest.mark.row("B24")
async def test_b24_an_open_file_outlives_a_rename_and_a_restart_and_loses_its_dead_writer() -> None:
    before, disks, block = await recovering_datanodes.half_written()
    await before.mkdirs("/d")
    await before.call("rename2", src="/f", dst="/d/g", overwriteDest=False)
    await before.call("rename2", src="/d", dst="/e", overwriteDest=False)
    settings = Settings(hard_lease_seconds=0.0)
    served = datanodes_in_memory.with_datanodes(
        namenode_in_memory.serve(settings=settings, namespace=before.log.replayed())
    )
    served.log.frames, disks.served = list(before.log.frames), served
    file = served.namespace.tree.file("/e/g")
    assert served.namespace.tree.leases == {"writer": {file.id}}
    disks.tell_all(block.blockId)
    assert await served.face.release_expired_leases() == 0, "the limit begins anew with a start"
    served.face.leases.renew("writer", time.monotonic() - 1)
    assert await served.face.release_expired_leases() == 1
    (holder,) = served.namespace.tree.leases
    assert holder.startswith("HDFS_NameNode-")
    result = disks.lead(disks.leader())
    await recovering_datanodes.commit(served, result)
    assert served.namespace.tree.leases == {}
    assert served.namespace.tree.file("/e/g").length() == 500
    assert recovering_datanodes.holders(served, block.blockId) == ["d1", "d2", "d3"]
    with pytest.raises(RemoteFault, match="File is not open for writing: /e/g"):
        await served.complete("/e/g")  # its writer comes back


async def test_a_recovery_that_failed_is_ordered_again_by_itself() -> None:
    served, disks, _ = await recovering_datanodes.half_written()
    await recovering_datanodes.recover_lease(served)
    first = disks.take_order(disks.leader())
    assert await served.face.release_expired_leases() == 0
    recovering_datanodes.at(served, 90.0)
    assert await served.face.release_expired_leases() == 1
    assert disks.take_order(disks.leader()).recovery_stamp > first.recovery_stamp


async def test_a_committed_block_waits_for_its_replica() -> None:
    served, disks, block = await recovering_datanodes.half_written()
    assert not await served.complete("/f", last=datanodes_in_memory.sized(block, 700))
    datanodes_in_memory.report(served, datanodes_in_memory.sized(block, 700), "d1")
    assert await recovering_datanodes.recover_lease(served)
    assert served.namespace.tree.file("/f").length() == 700
    assert disks.served.namespace.tree.leases == {}


@pytest.mark.row("B24")
async def test_who_may_not_write_a_file_cannot_take_it() -> None:
    served, _, _ = await recovering_datanodes.half_written()
    with pytest.raises(RemoteFault, match="Permission denied: user=carol, access=WRITE"):
        await served.call("recoverLease", src="/f", clientName="other", user="carol")
    assert set(served.namespace.tree.leases) == {"writer"}


async def test_a_look_that_takes_long_leaves_the_rest_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served = namenode_in_memory.serve(settings=Settings(hard_lease_seconds=10.0))
    for number, silent in enumerate((30.0, 50.0, 40.0)):
        await served.create(f"/f{number}", clientName=f"w{number}")
        served.face.leases.renew(f"w{number}", time.monotonic() - silent)
    monkeypatch.setattr("namenode_sim.process.client_service.LOOK_SECONDS", 0.0)
    left = []
    for _ in range(3):
        assert await served.face.release_expired_leases() == 1
        left.append(sorted(served.namespace.tree.leases))
    assert left == [["w0", "w2"], ["w0"], []]


# ---- DataNodes that died ----


@pytest.mark.parametrize(
    "state",
    [recovering_datanodes.RBW, recovering_datanodes.FINALIZED],
    ids=lambda state: state.name,
)
async def test_bytes_on_datanodes_that_are_dead_are_waited_for(state: ReplicaState) -> None:
    """Wait: what was flushed is on all of them, and no edit contains its length."""
    served, disks, block = await recovering_datanodes.half_written()
    datanodes_in_memory.joined(served.cluster, "d4")
    disks.write(block, state, d1=700, d2=700, d3=700)
    for name in ("d1", "d2", "d3"):
        node = served.cluster.nodes[name]
        node.alive = False
        for storage in node.storages.values():
            served.cluster.blocks.lose_some(storage.held, 100)
            served.cluster.blocks.empty_storage(storage.held)
    with pytest.raises(RemoteFault, match="No DataNode has told of its last block yet"):
        await recovering_datanodes.recover_lease(served)
    served.cluster.nodes["d2"].alive = True
    datanodes_in_memory.report(served, block, "d2", length=700, state=state)
    assert not await recovering_datanodes.recover_lease(served)
    await recovering_datanodes.commit(served, disks.lead("d2"))
    assert served.namespace.tree.file("/f").length() == 700


@pytest.mark.parametrize("alive", [True, False], ids=["its DataNode lives", "so is its DataNode"])
async def test_a_storage_that_failed_is_not_waited_for(*, alive: bool) -> None:
    served, _, block = await recovering_datanodes.half_written()
    for node in served.cluster.nodes.values():
        node.alive = alive
        for storage in node.storages.values():
            storage.state = StorageState.FAILED
            served.cluster.blocks.empty_storage(storage.held)
    datanodes_in_memory.joined(served.cluster, "d4")
    assert await recovering_datanodes.recover_lease(served)
    assert served.cluster.blocks.map.find(block.blockId) is None


async def test_datanodes_that_are_back_without_the_block_are_not_waited_for() -> None:
    served, _, block = await recovering_datanodes.half_written()
    for node in served.cluster.nodes.values():
        for storage in node.storages.values():
            served.cluster.blocks.empty_storage(storage.held)
            storage.held.reports, storage.held.confirmed = 1, True
    assert await recovering_datanodes.recover_lease(served)
    assert served.cluster.blocks.map.find(block.blockId) is None


async def test_a_new_pipeline_has_all_that_a_dead_datanode_had() -> None:
    served, _, block = await recovering_datanodes.half_written()
    (storage,) = served.cluster.nodes["d1"].storages.values()
    served.cluster.blocks.empty_storage(storage.held)
    slot = recovering_datanodes.slot_of(served, block.blockId)
    assert served.cluster.blocks.map.construction(slot).lost == {storage.held.number}
    served.cluster.expect(slot, served.cluster.nodes["d2"].storages.values())
    assert served.cluster.blocks.map.construction(slot).lost == frozenset()


async def test_a_standby_that_reads_of_a_new_pipeline_waits_for_no_former_one() -> None:
    served, _, block = await recovering_datanodes.half_written()
    (storage,) = served.cluster.nodes["d1"].storages.values()
    served.cluster.blocks.empty_storage(storage.held)
    slot = recovering_datanodes.slot_of(served, block.blockId)
    renewed = BlockSettled(block.blockId, 0, block.generationStamp + 1, complete=False)
    apply_edit(served.cluster.blocks, TxId(served.cluster.blocks.applied + 1), (renewed,))
    assert served.cluster.blocks.map.construction(slot).lost == frozenset()


async def test_of_a_storage_that_was_removed_nothing_is_awaited() -> None:
    """Another storage may get its number."""
    served, _, block = await recovering_datanodes.half_written()
    node = served.cluster.nodes["d1"]
    (storage,) = node.storages.values()
    served.cluster.remove_storage(node, storage)
    assert (
        served.cluster.blocks.map.construction(
            recovering_datanodes.slot_of(served, block.blockId)
        ).lost
        == frozenset()
    )


@pytest.mark.parametrize(
    ("newer", "takes_part"),
    [(None, True), (0, True), (-1, False)],
    ids=["untold", "its own", "old"],
)
async def test_a_damaged_replica_takes_part_by_its_stamp(
    newer: int | None, *, takes_part: bool
) -> None:
    served, _, block = await recovering_datanodes.half_written(d1=700)
    slot = recovering_datanodes.slot_of(served, block.blockId)
    stamp = None if newer is None else block.generationStamp + newer
    for node in served.cluster.nodes.values():
        for storage in node.storages.values():
            served.cluster.blocks.mark_corrupt(
                slot, storage.held, CorruptMark(Reason.CORRUPTION_REPORTED, stamp)
            )
    assert bool(participants(served.cluster, slot)) is takes_part

"""What a DataNode tells of a recovery counts only where this NameNode ordered it."""

from collections.abc import Callable

import pytest

from ha.rpc.errors import RemoteFault
from namenode_sim.blocks.model import Stage
from namenode_sim.blocks.safemode import enter, leave
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol.datanodes_in_memory import (
    add_block,
    with_datanodes,
)
from tests.namenode_sim.client_protocol.namenode_in_memory import serve
from tests.namenode_sim.client_protocol.recovering_datanodes import (
    RBW,
    Disks,
    Request,
    at,
    changed,
    commit,
    half_written,
    holders,
    recover_lease,
    stage,
)


@pytest.mark.row("B24")
async def test_a_result_of_another_recovery_is_refused() -> None:
    served, disks, block = await half_written()
    await recover_lease(served)
    late = disks.take_order(disks.leader())
    at(served, 90.0)
    await recover_lease(served)
    result = disks.lead(disks.leader())
    old = changed(result, newGenStamp=late.recovery_stamp)
    with pytest.raises(RemoteFault) as refused:
        await commit(served, old)
    assert refused.value.reason == (
        f"The recovery id {late.recovery_stamp} does not match current recovery id "
        f"{result.newGenStamp} for block BP-1-127.0.0.1-1:blk_{block.blockId}_"
        f"{block.generationStamp}"
    )
    await commit(served, result)


@pytest.mark.row("B9")
async def test_the_next_active_refuses_recoveries_of_the_former_one() -> None:
    served, disks, _ = await half_written()
    await recover_lease(served)
    result = disks.lead(disks.leader())
    served.cluster.blocks.demote()
    served.cluster.blocks.role = type(served.cluster.blocks.role).ACTIVE
    with pytest.raises(RemoteFault, match="does not match current recovery id 0 for block"):
        await commit(served, result)
    assert not await recover_lease(served)
    again = disks.lead(disks.leader())
    await commit(served, again)
    assert served.namespace.tree.leases == {}


def of_another_pool(result: Request) -> None:
    result.block.poolId = "BP-2"


def of_an_unknown_block(result: Request) -> None:
    result.block.blockId = 7


def with_more_nodes_than_storages(result: Request) -> None:
    result.newTargetStorages.pop()


def on_unknown_datanodes(result: Request) -> None:
    for one in result.newTaragets:
        one.datanodeUuid = "d9"


def with_an_impossible_length(result: Request) -> None:
    result.newLength = 2**63


REFUSED: dict[Callable[[Request], None], str] = {
    of_another_pool: r"Unexpected BlockPoolId BP-2 - expected BP-1-127\.0\.0\.1-1",
    of_an_unknown_block: r"Block \(=BP-1-127\.0\.0\.1-1:blk_7_\d+\) not found",
    with_more_nodes_than_storages: "Missing storageIDs",
    on_unknown_datanodes: r"on 0 storages .* needs 1 \(dfs\.namenode\.replication\.min\)",
    with_an_impossible_length: "cannot have 9223372036854775808 bytes",
}


@pytest.mark.row("B24")
@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
async def test_a_result_is_refused(change: Callable[[Request], None]) -> None:
    served, disks, _ = await half_written()
    await recover_lease(served)
    result = disks.lead(disks.leader())
    wrong = changed(result)
    change(wrong)
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match=REFUSED[change]):
        await commit(served, wrong)
    assert len(served.log.frames) == edits
    await commit(served, result)
    assert served.namespace.tree.leases == {}


@pytest.mark.row("B24")
async def test_the_file_of_a_result_may_be_gone() -> None:
    served, disks, _ = await half_written()
    await recover_lease(served)
    result = disks.lead(disks.leader())
    await served.call("delete", src="/f", recursive=False)
    with pytest.raises(RemoteFault, match=r"Block \(=.*\) not found"):
        await commit(served, result)


async def test_a_file_that_only_a_snapshot_has_is_not_closed() -> None:
    served = with_datanodes(serve())
    await served.mkdirs("/d")
    await served.call("allowSnapshot", snapshotRoot="/d")
    await served.create("/d/f")
    block = (await add_block(served, "/d/f")).b
    disks = Disks(served)
    disks.write(block, RBW, d1=10)
    await served.call("fsync", src="/d/f", client="writer", lastBlockLength=10)
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s")
    await served.call("recoverLease", src="/d/f", clientName="other")
    result = disks.lead(disks.leader())
    await served.call("delete", src="/d/f", recursive=False)
    with pytest.raises(RemoteFault, match="likely due to delayed block removal"):
        await commit(served, result)
    at(served, 90.0)
    assert await served.face.release_expired_leases() == 0


async def test_a_result_may_leave_the_file_open() -> None:
    served, disks, block = await half_written()
    await recover_lease(served)
    result = disks.lead(disks.leader())
    await commit(served, changed(result, closeFile=False))
    file = served.namespace.tree.file("/f")
    assert file.under_construction is not None
    assert file.blocks == (Block(block.blockId, 500, result.newGenStamp),)
    assert stage(served, block.blockId) is Stage.UNDER_CONSTRUCTION
    assert holders(served, block.blockId) == ["d1", "d2", "d3"]
    assert not await recover_lease(served)


async def test_a_block_is_not_deleted_while_one_who_has_it_does_not_answer() -> None:
    served, disks, block = await half_written(d1=0, d2=0, d3=500)
    disks.unreachable = {"d3"}
    await recover_lease(served)
    result = disks.lead(disks.leader())
    assert result.deleteBlock
    with pytest.raises(RemoteFault, match="is not deleted: DataNode d3 has reported 500 bytes"):
        await commit(served, result)
    node = served.cluster.nodes["d3"]
    for storage in node.storages.values():  # which is dead by now
        served.cluster.blocks.empty_storage(storage.held)
    await commit(served, result)
    assert served.cluster.blocks.index.get(block.blockId) is None


@pytest.mark.row("B24")
async def test_a_file_is_closed_where_it_was_renamed_to() -> None:
    served, disks, _ = await half_written()
    await recover_lease(served)
    await served.call("rename2", src="/f", dst="/g", overwriteDest=False)
    await commit(served, disks.lead(disks.leader()))
    assert served.namespace.tree.file("/g").under_construction is None
    assert served.namespace.tree.file("/g").length() == 500


async def test_in_safe_mode_no_result_counts() -> None:
    served, disks, _ = await half_written()
    await recover_lease(served)
    result = disks.lead(disks.leader())
    served.cluster.set_safe_mode(enter(served.cluster.safe_mode))
    text = "Cannot commitBlockSynchronization while in safe mode. Name node is in safe mode"
    with pytest.raises(RemoteFault, match=text):
        await commit(served, result)
    at(served, 90.0)
    assert await served.face.release_expired_leases() == 0
    served.cluster.set_safe_mode(leave(served.cluster.counts()))
    await commit(served, result)
    assert served.namespace.tree.leases == {}

"""Which step releases the lease of a file, what it makes of the blocks, and who holds it then."""

from collections.abc import Callable

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ALREADY_BEING_CREATED, RECOVERY_IN_PROGRESS
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.open_files import lease_release
from namenode_sim.client_protocol.open_files.lease_release import is_stalled, release_lease
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.datanodes.model import StorageState
from namenode_sim.edits.ops import Close, SetGenstampV2, UpdateBlocks
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import datanodes_in_memory, recovering_datanodes
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

NOW = 1000.0
FIRST, LAST = Block(2**30 + 1, 700, 1001), Block(2**30 + 2, 0, 1002)


def at_time(served: Served, seconds: float) -> None:
    served.face.clock = lambda: seconds


def release(served: Served) -> lease_release.Released:
    return release_lease(served.scene(), served.namespace.tree.file("/f"), "/f")


def told(block: Block) -> ExtendedBlockProto:
    return ExtendedBlockProto(
        poolId=datanodes_in_memory.POOL,
        blockId=block.block_id,
        generationStamp=block.generation_stamp,
        numBytes=block.num_bytes,
    )


async def of_two_blocks(*, holders: tuple[str, ...] = ("d1", "d2", "d3")) -> Served:
    """Return a NameNode that just took over; the last block of the open ``/f`` is unreported."""
    before = datanodes_in_memory.with_datanodes(serve())
    await before.create("/f")
    await datanodes_in_memory.add_block(before, "/f")
    datanodes_in_memory.report(before, told(FIRST), "d1", "d2", "d3")
    await datanodes_in_memory.add_block(before, "/f", told(FIRST))
    served = datanodes_in_memory.with_datanodes(serve(namespace=before.log.replayed()))
    at_time(served, NOW)
    assert served.namespace.tree.file("/f").blocks == (FIRST, LAST)
    datanodes_in_memory.report(served, told(FIRST), *holders)
    return served


# ---- the steps ----


async def test_an_untouched_last_block_goes_and_what_was_before_it_stays() -> None:
    released = release(await of_two_blocks(holders=("d1",)))
    drop, close = released.ops
    assert drop == UpdateBlocks("/f", (FIRST,))
    assert isinstance(close, Close)
    assert (close.path, close.blocks) == ("/f", (FIRST,))
    assert (released.blocks, released.closed) == ((FIRST,), True)


async def test_a_file_is_not_closed_behind_a_block_without_replicas() -> None:
    served = await of_two_blocks(holders=())
    with pytest.raises(FsError, match="waiting to be minimally replicated") as refused:
        release(served)
    assert refused.value.java_class == ALREADY_BEING_CREATED


async def test_two_blocks_at_once_are_not_written() -> None:
    served = await of_two_blocks()
    served.cluster.blocks.set_stage(
        recovering_datanodes.slot_of(served, FIRST.block_id), Stage.UNDER_CONSTRUCTION
    )
    with pytest.raises(FsError, match="but file is already closed") as refused:
        release(served)
    assert refused.value.java_class == "java.io.IOException"


async def test_of_two_blocks_the_last_one_is_recovered() -> None:
    served = await of_two_blocks()
    datanodes_in_memory.report(served, told(LAST), "d2", length=50, state=recovering_datanodes.RBW)
    released = release(served)
    assert released.ops == (SetGenstampV2(1003),)
    assert (released.blocks, released.closed) == ((FIRST, LAST), False)
    released.then()
    assert recovering_datanodes.stage(served, FIRST.block_id) is Stage.COMPLETE
    assert recovering_datanodes.stage(served, LAST.block_id) is Stage.UNDER_RECOVERY
    (order,) = served.cluster.nodes["d2"].recovery_orders
    assert (order.block_id, order.recovery_stamp) == (LAST.block_id, 1003)


async def test_while_the_last_block_is_recovered_no_other_writer_gets_the_file() -> None:
    served = await of_two_blocks()
    datanodes_in_memory.report(served, told(LAST), "d2", length=50, state=recovering_datanodes.RBW)
    assert not await recovering_datanodes.recover_lease(served)
    with pytest.raises(RemoteFault, match="another recovery is in progress by other") as refused:
        await served.call("append", src="/f", clientName="third")
    assert refused.value.java_class == RECOVERY_IN_PROGRESS


# ---- which DataNodes must have reported before an untouched block goes ----


def one_dead(served: Served) -> None:
    served.cluster.nodes["d2"].alive = False


def storage_failed(served: Served) -> None:
    served.cluster.nodes["d2"].storages["DS-d2-0"].state = StorageState.FAILED


def nothing(_: Served) -> None:
    return


def all_dead(served: Served) -> None:
    for node in served.cluster.nodes.values():
        node.alive = False


# What d2 is while it has not reported, seconds since the time to register ended, whether to wait.
TOLD: dict[str, tuple[Callable[[Served], None], float, bool]] = {
    "one that lives has not told": (nothing, 10.0, True),
    "one that is dead has not told": (one_dead, 10.0, False),
    "a storage that failed has not told": (storage_failed, 10.0, False),
    "the time to register is just over": (one_dead, 0.0, False),
    "the time to register is not over": (one_dead, -0.1, True),
    "nobody lives": (all_dead, 10.0, True),
}


@pytest.mark.parametrize(("change", "over_seconds", "waits"), TOLD.values(), ids=TOLD.keys())
async def test_who_must_have_told(
    change: Callable[[Served], None], over_seconds: float, waits: bool
) -> None:
    served = await of_two_blocks()
    served.cluster.nodes["d2"].storages["DS-d2-0"].held.confirmed = False
    served.cluster.registered_by = NOW - over_seconds
    change(served)
    if waits:
        with pytest.raises(FsError, match="not all DataNodes have told") as refused:
            release(served)
        assert refused.value.java_class == ALREADY_BEING_CREATED
    else:
        assert release(served).blocks == (FIRST,)


# ---- the file's holder ----


async def test_whoever_holds_the_file_while_a_recovery_runs_counts_as_just_renewed() -> None:
    served, _, _ = await recovering_datanodes.half_written()
    times = served.face.leases
    for later in (NOW, NOW + 10.0):  # the recovery is ordered, and then it runs
        times.renew("writer", NOW - 500.0)
        times.renew("other", NOW - 500.0)
        at_time(served, later)
        assert not await recovering_datanodes.recover_lease(served)
        heard = times.last_heard(["writer", "other"], later)
        assert heard == {"writer": NOW - 500.0, "other": later}


# ---- when a recovery is ordered again ----


async def recovering() -> tuple[Served, int]:
    """``/f``, the recovery of whose block was ordered at NOW."""
    served, _, block = await recovering_datanodes.half_written()
    at_time(served, NOW)
    assert not await recovering_datanodes.recover_lease(served)
    return served, block.blockId


@pytest.mark.parametrize(("seconds", "stalled"), [(0.0, False), (89.9, False), (90.0, True)])
async def test_a_recovery_has_its_time(seconds: float, stalled: bool) -> None:
    served, block_id = await recovering()
    at_time(served, NOW + seconds)
    assert is_stalled(served.scene(), block_id) is stalled


async def test_a_recovery_waits_where_nobody_lives_to_lead_it() -> None:
    served, block_id = await recovering()
    at_time(served, NOW + 90.0)
    all_dead(served)
    assert not is_stalled(served.scene(), block_id)


async def test_what_is_written_or_complete_is_not_stalled() -> None:
    served = await of_two_blocks()
    datanodes_in_memory.report(served, told(LAST), "d2", length=50, state=recovering_datanodes.RBW)
    assert [is_stalled(served.scene(), one.block_id) for one in (FIRST, LAST)] == [False, False]

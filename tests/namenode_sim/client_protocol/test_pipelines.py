"""A writer's pipeline breaks: new stamps, new DataNodes, and answers that were lost."""

from collections.abc import Callable

import pytest

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import SAFE_MODE_EXCEPTION
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto, LocatedBlockProto
from namenode_sim.blocks.model import ReplicaState
from namenode_sim.blocks.safemode import Off, SafeMode
from namenode_sim.client_protocol.words.errors import HADOOP_ILLEGAL_ARGUMENT
from namenode_sim.edits.ops import SetGenstampV2, UpdateBlocks
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import datanodes_in_memory as datanodes
from tests.namenode_sim.client_protocol import namenode_in_memory
from tests.namenode_sim.client_protocol.datanodes_in_memory import POOL, locations, report, sized
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve

BLOCK, STAMP = 2**30 + 1, 1001


async def writing() -> tuple[Served, LocatedBlockProto]:
    """``/f`` with a block that is being written on three of four DataNodes."""
    served = datanodes.with_datanodes(serve(), 4)
    await served.create("/f")
    return served, await datanodes.add_block(served, "/f")


async def new_stamp(served: Served, block: ExtendedBlockProto) -> ExtendedBlockProto:
    answer = await served.call("updateBlockForPipeline", block=block, clientName="writer")
    assert isinstance(answer, calls.UpdateBlockForPipelineResponseProto)
    assert not answer.block.locs
    assert answer.block.offset == 2**64 - 1
    return answer.block.b


def update(
    block: ExtendedBlockProto, new: ExtendedBlockProto, found: LocatedBlockProto, count: int = 2
) -> Fields:
    """Return updatePipeline's fields with the first DataNodes of an answer."""
    return {
        "clientName": "writer",
        "oldBlock": block,
        "newBlock": new,
        "newNodes": [place.id for place in found.locs[:count]],
        "storageIDs": list(found.storageIDs[:count]),
    }


@pytest.mark.row("B27", because="the case in which a DataNode fails while a block is written")
async def test_a_pipeline_goes_on_under_a_new_stamp() -> None:
    served, found = await writing()
    gone = found.locs[2].id.datanodeUuid
    for place in found.locs:
        report(served, found.b, place.id.datanodeUuid, state=ReplicaState.RBW)
    new = sized(await new_stamp(served, found.b), 100)
    assert new.generationStamp == STAMP + 1
    report(served, new, found.locs[0].id.datanodeUuid, state=ReplicaState.RBW)
    await served.call("updatePipeline", **update(found.b, new, found))
    assert served.log.ops()[-2:] == [
        SetGenstampV2(STAMP + 1),
        UpdateBlocks("/f", (Block(BLOCK, 100, STAMP + 1),), rpc=served.log.ops()[-1].rpc),  # type: ignore[union-attr]
    ]
    served.cluster.blocks.map.check()
    (block,) = (await locations(served, "/f")).blocks
    assert gone not in {place.id.datanodeUuid for place in block.locs}
    assert len(block.locs) == 2
    report(served, sized(new, 120), found.locs[1].id.datanodeUuid)
    assert await served.complete("/f", last=sized(new, 120))


@pytest.mark.row("B27", because="the case in which a DataNode fails at the end of a block")
async def test_a_replica_that_was_final_before_its_client_told_the_stamp_counts() -> None:
    """Finalize at a block's end under the new stamp before the client calls, as DataNodes do."""
    served, found = await writing()
    new = sized(await new_stamp(served, found.b), 100)
    for place in found.locs[:2]:
        report(served, new, place.id.datanodeUuid)
    await served.call("updatePipeline", **update(found.b, new, found))
    served.cluster.blocks.map.check()
    assert await served.complete("/f", last=new)


@pytest.mark.row("B11", because="updatePipeline is one of the calls that are repeated there")
@pytest.mark.parametrize("failed_over", [False, True], ids=["here", "after a failover"])
async def test_a_repeated_update_is_not_done_twice(*, failed_over: bool) -> None:
    served, found = await writing()
    new = sized(await new_stamp(served, found.b), 100)
    fields = update(found.b, new, found)
    await served.call("updatePipeline", call_id=900, **fields)
    if failed_over:
        served = datanodes.with_datanodes(serve(namespace=served.log.replayed()), 4)
    edits = len(served.log.frames)
    await served.call("updatePipeline", call_id=900, **fields)
    assert len(served.log.frames) == edits
    with pytest.raises(RemoteFault, match="does not have a larger generation stamp"):
        await served.call("updatePipeline", call_id=901, **fields)


def changed(**fields: int) -> Callable[[ExtendedBlockProto], ExtendedBlockProto]:
    def change(block: ExtendedBlockProto) -> ExtendedBlockProto:
        other = sized(block, block.numBytes)
        for name, number in fields.items():
            setattr(other, name, number)
        return other

    return change


NAME = f"{POOL}:blk_{BLOCK}"
IO = "java.io.IOException"
REFUSED: dict[str, tuple[Callable[[ExtendedBlockProto], ExtendedBlockProto], str, str]] = {
    "an old stamp": (
        changed(generationStamp=STAMP),
        IO,
        f"Update {NAME}_{STAMP} but the new block {NAME}_{STAMP} does not have a larger "
        f"generation stamp than the last block blk_{BLOCK}_{STAMP}",
    ),
    "a stamp that was never given out": (
        changed(generationStamp=STAMP + 9),
        IO,
        f"Update {NAME}_{STAMP} but the stamp of the new block {NAME}_{STAMP + 9} was never given "
        f"out: the last one is {STAMP + 1}",
    ),
    "less than was told before": (
        changed(generationStamp=STAMP + 1, numBytes=4),
        IO,
        f"Update {NAME}_{STAMP} (size=0) to a smaller size block {NAME}_{STAMP + 1} (size=4)",
    ),
    "another block": (
        changed(blockId=BLOCK + 1),
        "java.lang.IllegalArgumentException",
        f"{NAME}_{STAMP} and {POOL}:blk_{BLOCK + 1}_{STAMP} has different block identifier",
    ),
}


@pytest.mark.parametrize(("change", "java_class", "text"), REFUSED.values(), ids=REFUSED.keys())
async def test_an_update_is_refused(
    change: Callable[[ExtendedBlockProto], ExtendedBlockProto], java_class: str, text: str
) -> None:
    served, found = await writing()
    await served.call("fsync", src="/f", client="writer", lastBlockLength=5)
    await new_stamp(served, found.b)
    with pytest.raises(RemoteFault) as refusal:
        await served.call("updatePipeline", **update(found.b, change(found.b), found))
    assert (refusal.value.java_class, refusal.value.message) == (java_class, text)


async def test_a_stamp_is_given_to_the_writer_of_a_block_that_is_being_written_only() -> None:
    served, found = await writing()

    async def refused(**fields: object) -> str:
        with pytest.raises(RemoteFault) as refusal:
            await served.call(
                "updateBlockForPipeline",
                **{"block": found.b, "clientName": "writer", **fields},  # type: ignore[arg-type]
            )
        return refusal.value.message

    assert await refused(clientName="other") == (
        f"Lease mismatch: {NAME}_{STAMP} is accessed by a non lease holder other"
    )
    assert await refused(block=changed(blockId=77)(found.b)) == (
        f"{POOL}:blk_77_{STAMP} does not exist."
    )
    assert not await served.complete("/f", last=sized(found.b, 5))
    assert await refused() == (
        f"Unexpected BlockUCState: {NAME}_{STAMP} is COMMITTED but not UNDER_CONSTRUCTION"
    )
    assert SetGenstampV2(STAMP + 1) not in served.log.ops()


async def test_a_call_about_a_block_is_a_sign_of_life() -> None:
    served, found = await writing()
    namenode_in_memory.silent_beyond_the_soft_limit(served)
    await new_stamp(served, found.b)
    with pytest.raises(RemoteFault, match="currently owned by writer"):
        await served.call("append", src="/f", clientName="other")


def additional(found: LocatedBlockProto, wanted: int, pipeline: int = 2) -> Fields:
    """Return getAdditionalDatanode's fields for an answer's first DataNodes, without the others."""
    return {
        "src": "/f",
        "blk": found.b,
        "existings": found.locs[:pipeline],
        "existingStorageUuids": found.storageIDs[:pipeline],
        "excludes": found.locs[pipeline:],
        "numAdditionalNodes": wanted,
        "clientName": "writer",
    }


async def added(served: Served, fields: Fields) -> LocatedBlockProto:
    answer = await served.call("getAdditionalDatanode", **fields)
    assert isinstance(answer, calls.GetAdditionalDatanodeResponseProto)
    return answer.block


async def test_another_datanode_comes_behind_those_of_the_pipeline() -> None:
    served, found = await writing()
    block = await added(served, additional(found, 1))
    had = [place.id.datanodeUuid for place in found.locs]
    (fourth,) = {"d1", "d2", "d3", "d4"} - set(had)
    assert [place.id.datanodeUuid for place in block.locs] == [*had[:2], fourth]
    assert (block.b, block.offset) == (found.b, 2**64 - 1)


async def test_no_datanode_is_added_in_safe_mode() -> None:
    served, found = await writing()
    served.cluster.set_safe_mode(SafeMode(Off(), by_hand=True))
    block = f"{POOL}:blk_{found.b.blockId}_{found.b.generationStamp}"
    with pytest.raises(RemoteFault, match=f"Cannot add datanode; src=/f, blk={block}. Name") as no:
        await added(served, additional(found, 1))
    assert no.value.java_class == SAFE_MODE_EXCEPTION


@pytest.mark.parametrize(
    ("wanted", "given"), [(1, 1), (3, 3), (100, 100), (101, 100), (2**32 - 1, 100)]
)
async def test_no_more_datanodes_are_added_than_are_asked_for_and_than_the_most(
    wanted: int, given: int
) -> None:
    served = datanodes.with_datanodes(serve(), 104)
    await served.create("/f")
    block = await added(served, additional(await datanodes.add_block(served, "/f"), wanted))
    assert len(block.locs) == 2 + given


async def test_a_block_of_another_pool_is_refused() -> None:
    served, found = await writing()
    new = sized(await new_stamp(served, found.b), 9)
    strange_old, strange_new = sized(found.b, 0), sized(new, 9)
    strange_old.poolId = strange_new.poolId = "BP-2"
    for method, fields in [
        ("updateBlockForPipeline", {"block": strange_old, "clientName": "writer"}),
        ("updatePipeline", update(strange_old, new, found)),
        ("updatePipeline", update(found.b, strange_new, found)),
        ("getAdditionalDatanode", {**additional(found, 1), "blk": strange_old}),
    ]:
        with pytest.raises(RemoteFault, match=f"Unexpected BlockPoolId BP-2 - expected {POOL}"):
            await served.call(method, **fields)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_each_datanode_is_named_with_its_storage(count: int) -> None:
    """DatanodeManager.getDatanodeStorageInfos."""
    served, found = await writing()
    new = sized(await new_stamp(served, found.b), 9)
    storages = found.storageIDs[:count]
    for method, fields in {
        "updatePipeline": {**update(found.b, new, found), "storageIDs": storages},
        "getAdditionalDatanode": {**additional(found, 1), "existingStorageUuids": storages},
    }.items():
        with pytest.raises(RemoteFault) as refusal:
            await served.call(method, **fields)
        assert (refusal.value.java_class, refusal.value.message) == (
            HADOOP_ILLEGAL_ARGUMENT,
            f"Length mismatched: storageIDs.length={count} != datanodeID.length=2, src=/f",
        )


async def test_a_storage_that_its_datanode_does_not_have_is_left_out() -> None:
    served, found = await writing()
    new = sized(await new_stamp(served, found.b), 1)
    fields = update(found.b, new, found)
    fields["storageIDs"] = ["DS-x", found.storageIDs[1]]
    await served.call("updatePipeline", **fields)
    (block,) = (await locations(served, "/f")).blocks
    assert [place.id.datanodeUuid for place in block.locs] == [found.locs[1].id.datanodeUuid]


async def test_a_datanode_that_never_registered_here_is_left_out() -> None:
    served, found = await writing()
    new = sized(await new_stamp(served, found.b), 1)
    fields = update(found.b, new, found)
    stranger = hdfs_types_pb2.DatanodeIDProto(
        ipAddr="10.1.1.1", hostName="x", datanodeUuid="x", xferPort=1, infoPort=1, ipcPort=1
    )
    fields["newNodes"] = [stranger, *fields["newNodes"]]
    fields["storageIDs"] = ["DS-x", *fields["storageIDs"]]
    await served.call("updatePipeline", **fields)
    (block,) = (await locations(served, "/f")).blocks
    assert len(block.locs) == 2

"""append: an old file goes on in its last block, or behind it."""

import time

import pytest

from ha.rpc.errors import RemoteFault
from hadoop import block_tokens
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto, StorageTypeProto
from journal.model import TxId
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.open_files.open_files import close_edit
from namenode_sim.datanodes.model import AdminState
from namenode_sim.edits.ops import Append, Close
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import datanodes_in_memory, namenode_in_memory
from tests.namenode_sim.client_protocol.recovering_datanodes import stage, without_replicas

CREATE, APPEND, NEW_BLOCK = 1, 4, 32
BLOCK = 1 << 27
U64 = 1 << 64


async def append(
    served: namenode_in_memory.Served, src: str = "/f", **more: object
) -> calls.AppendResponseProto:
    answer = await served.call("append", **{"src": src, "clientName": "other", **more})  # type: ignore[arg-type]
    assert isinstance(answer, calls.AppendResponseProto)
    return answer


@pytest.mark.row("B26")
async def test_a_block_that_is_not_full_goes_on() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    first, last = await datanodes_in_memory.written(served, "/f", BLOCK, 700)
    answer = await append(served, host="10.0.0.2")
    assert (answer.block.b, answer.block.offset) == (datanodes_in_memory.sized(last, 700), BLOCK)
    assert {place.id.datanodeUuid for place in answer.block.locs} == {"d1", "d2", "d3"}
    assert len(answer.block.storageIDs) == 3
    assert answer.stat.length == BLOCK + 700
    assert (stage(served, first.blockId), stage(served, last.blockId)) == (
        Stage.COMPLETE,
        Stage.UNDER_CONSTRUCTION,
    )
    (edit,) = served.log.ops()[-1:]
    assert isinstance(edit, Append)
    assert (edit.client_name, edit.client_machine) == ("other", "10.0.0.2")
    served.cluster.blocks.map.check()


@pytest.mark.parametrize("is_on", [True, False])
async def test_each_block_comes_with_a_token_for_what_its_caller_does(*, is_on: bool) -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    ring = block_tokens.first_ring(5, time.time_ns() // 1_000_000, 10**8, 10**8, bytes)
    served.cluster.block_keys = ring if is_on else None
    await datanodes_in_memory.written(served, "/f", 700)
    read = await served.call("getBlockLocations", src="/f", offset=0, length=1)
    opened = (await append(served)).block
    stamped = await served.call("updateBlockForPipeline", block=opened.b, clientName="other")
    more = await served.call(
        "getAdditionalDatanode",
        src="/f", blk=opened.b, existings=opened.locs[:2],
        existingStorageUuids=opened.storageIDs[:2], excludes=[], numAdditionalNodes=1,
        clientName="other",
    )  # fmt: skip
    assert isinstance(read, calls.GetBlockLocationsResponseProto)
    assert isinstance(stamped, calls.UpdateBlockForPipelineResponseProto)
    assert isinstance(more, calls.GetAdditionalDatanodeResponseProto)
    await served.call(
        "create", src="/g", masked={"perm": 0o644}, clientName="other", createFlag=CREATE,
        createParent=True, replication=1, blockSize=BLOCK,
    )  # fmt: skip
    added = await datanodes_in_memory.add_block(served, "/g", clientName="other")
    modes = {
        "READ": read.locations.blocks[0], "WRITE": opened, "WRITE ": stamped.block,
        "WRITE  ": added, "COPY": more.block,
    }  # fmt: skip
    for mode, located in modes.items():
        if not is_on:
            assert located.blockToken == block_tokens.NO_TOKEN
            continue
        wanted = block_tokens.Grant(
            "", located.b.poolId, located.b.blockId,
            frozenset({block_tokens.Mode(mode.strip())}),
            tuple(StorageTypeProto.Name(one) for one in located.storageTypes),
            tuple(located.storageIDs),
        )  # fmt: skip
        now_ms = time.time_ns() // 1_000_000
        found = block_tokens.check(located.blockToken, ring.known, wanted, now_ms)
        assert (found.user, found.modes) == (namenode_in_memory.SUPERUSER, wanted.modes)
        assert (found.storage_types, found.storage_ids) == (
            wanted.storage_types, wanted.storage_ids,
        )  # fmt: skip


S = AdminState
LEAVING = {
    "none": ({}, {"d1", "d2", "d3"}),
    "one is being decommissioned": ({"d1": S.DECOMMISSION_INPROGRESS}, {"d2", "d3"}),
    "one is decommissioned": ({"d2": S.DECOMMISSIONED}, {"d1", "d3"}),
    "one is to be in maintenance": ({"d3": S.ENTERING_MAINTENANCE}, {"d1", "d2"}),
    "one is left": ({"d1": S.DECOMMISSIONED, "d2": S.DECOMMISSIONED}, {"d3"}),
    "all leave": (dict.fromkeys(("d1", "d2", "d3"), S.DECOMMISSIONED), {"d1", "d2", "d3"}),
}
"""Which DataNodes leave service, and on which a block of theirs goes on."""


@pytest.mark.parametrize(("states", "places"), LEAVING.values(), ids=LEAVING)
async def test_a_block_goes_on_where_datanodes_stay(
    states: dict[str, AdminState], places: set[str]
) -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await datanodes_in_memory.written(served, "/f", 700)
    for uuid, state in states.items():
        served.cluster.nodes[uuid].admin = state
    answer = await append(served)
    assert {place.id.datanodeUuid for place in answer.block.locs} == places


async def test_behind_a_full_block_the_writer_asks_for_a_new_one() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    (last,) = await datanodes_in_memory.written(served, "/f", BLOCK)
    assert not (await append(served)).HasField("block")
    assert stage(served, last.blockId) is Stage.COMPLETE
    added = await datanodes_in_memory.add_block(served, "/f", clientName="other")
    assert added.offset == BLOCK


@pytest.mark.parametrize("flag", [NEW_BLOCK, APPEND | NEW_BLOCK])
async def test_a_new_block_may_be_asked_for(flag: int) -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    (last,) = await datanodes_in_memory.written(served, "/f", 700)
    answer = await append(served, flag=flag)
    assert (answer.block.b, answer.block.offset) == (datanodes_in_memory.sized(last, 700), U64 - 1)
    assert not answer.block.locs
    assert stage(served, last.blockId) is Stage.COMPLETE


async def test_an_empty_file_has_no_block_to_go_on_with() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await served.touch("/f")
    assert not (await append(served)).HasField("block")


@pytest.mark.row("B26")
@pytest.mark.parametrize("flag", [0, APPEND, CREATE | APPEND])
async def test_a_repeated_call_gets_the_same_block(flag: int) -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    (last,) = await datanodes_in_memory.written(served, "/f", 700)
    first = await append(served, call_id=90, flag=flag)
    assert stage(served, last.blockId) is Stage.UNDER_CONSTRUCTION
    edits = len(served.log.frames)
    again = await append(served, call_id=90, flag=flag)
    assert len(served.log.frames) == edits
    assert (again.block.b, again.block.offset) == (first.block.b, first.block.offset)
    assert len(again.block.locs) == 3
    assert set(again.block.storageIDs) == set(first.block.storageIDs)


async def test_replicas_of_a_reopened_block_are_not_deleted() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    (last,) = await datanodes_in_memory.written(served, "/f", 700)
    slot = served.cluster.blocks.map.find(last.blockId)
    assert slot is not None
    number = served.cluster.blocks.map.storages_of(slot)[0]
    served.cluster.blocks.invalidate(number, last.blockId, last.generationStamp)
    await append(served)
    assert len(served.cluster.blocks.invalidations) == 0


@pytest.mark.parametrize(
    ("needed", "living", "replicas", "fits"),
    [
        (1, 3, 1, True),
        (1, 3, 0, False),
        (2, 3, 2, True),
        (2, 3, 1, False),
        (2, 1, 1, True),  # all that there can be
        (2, 1, 0, False),
    ],
)
async def test_the_last_block_needs_replicas(
    needed: int, living: int, replicas: int, *, fits: bool
) -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve(minimum=needed))
    (last,) = await datanodes_in_memory.written(served, "/f", 700)
    for name in ("d1", "d2", "d3")[living:]:
        served.cluster.nodes[name].alive = False
    without_replicas(served, last, *("d1", "d2", "d3")[replicas:])
    if fits:
        assert len((await append(served)).block.locs) == replicas
        return
    text = f"append: lastBlock={named(last)} of src=/f is not sufficiently replicated yet."
    assert await refusal(served) == ("java.io.IOException", text)


async def test_a_repeated_call_is_refused_as_the_first_was() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    (last,) = await datanodes_in_memory.written(served, "/f", 700)
    without_replicas(served, last, "d1", "d2", "d3")
    for _ in range(2):
        edits = len(served.log.frames)
        with pytest.raises(RemoteFault, match="is not sufficiently replicated yet"):
            await append(served, call_id=90)
        assert len(served.log.frames) == edits
        datanodes_in_memory.report(served, last, "d1")
    assert (await append(served, call_id=91)).HasField("block")


async def test_the_blocks_before_the_last_need_none() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    first, _ = await datanodes_in_memory.written(served, "/f", BLOCK, 700)
    without_replicas(served, first, "d1", "d2", "d3")
    assert (await append(served)).HasField("block")


async def test_the_file_of_a_silent_writer_is_closed_although_its_end_has_no_replica() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    (last,) = await datanodes_in_memory.written(served, "/f", 700)
    await append(served, clientName="gone", flag=NEW_BLOCK)
    namenode_in_memory.silent_beyond_the_soft_limit(served, "gone")
    without_replicas(served, last, "d1", "d2", "d3")
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault, match="is not sufficiently replicated yet"):
        await append(served)
    assert [type(op) for op in served.log.ops()[edits:]] == [Close]
    assert served.namespace.tree.leases == {}
    datanodes_in_memory.report(served, last, "d1")
    assert (await append(served)).HasField("block")


async def test_who_appends_is_alive() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await datanodes_in_memory.written(served, "/f", 700)
    await served.create("/other", clientName="other")
    served.face.leases.renew("other", time.monotonic() - 1000)
    await append(served)
    assert served.face.leases.idle_seconds("other", time.monotonic()) < 100


async def test_only_who_may_write_a_file_appends_to_it() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await datanodes_in_memory.written(served, "/f", 700)
    with pytest.raises(RemoteFault, match="Permission denied: user=carol, access=WRITE"):
        await append(served, user="carol")
    with pytest.raises(RemoteFault, match="Failed to append to non-existent file /none"):
        await append(served, "/none", user="carol")


async def test_a_committed_last_block() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await served.create("/f")
    last = (await datanodes_in_memory.add_block(served, "/f")).b
    served.namespace.apply(*closed(served, datanodes_in_memory.sized(last, 700)))
    java_class, text = await refusal(served)
    assert java_class == "org.apache.hadoop.ipc.RetriableException"
    assert text == (
        "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException: append: "
        f"lastBlock={named(last)} of src=/f is COMMITTED but not yet COMPLETE."
    )
    datanodes_in_memory.report(served, datanodes_in_memory.sized(last, 700), "d1")
    assert (await append(served)).HasField("block")


async def test_what_cannot_be_appended_to() -> None:
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await served.mkdirs("/d")
    assert await refusal(served, "/d") == (
        "org.apache.hadoop.fs.FileAlreadyExistsException",
        "Cannot append to directory /d; already exists as a directory.",
    )
    assert await refusal(served, "/none") == (
        "java.io.FileNotFoundException",
        "Failed to append to non-existent file /none for client 127.0.0.1",
    )
    await served.touch("/d/f")
    await served.call("setStoragePolicy", src="/d", policyName="LAZY_PERSIST")
    assert await refusal(served, "/d/f") == (
        "java.lang.UnsupportedOperationException",
        "Cannot append to lazy persist file /d/f",
    )
    await served.touch("/f")
    served.namespace.tree.file("/f").storage_policy_id = 15
    assert await refusal(served) == (
        "java.lang.UnsupportedOperationException",
        "Cannot append to lazy persist file /f",
    )
    served.namespace.tree.file("/f").block_type = 1
    assert await refusal(served) == (
        "java.lang.UnsupportedOperationException",
        "Cannot append to files with striped block /f",
    )


async def refusal(served: namenode_in_memory.Served, src: str = "/f") -> tuple[str, str]:
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refused:
        await append(served, src)
    assert len(served.log.frames) == edits
    return refused.value.java_class, refused.value.reason


def named(block: ExtendedBlockProto) -> str:
    return f"blk_{block.blockId}_{block.generationStamp}"


def closed(served: namenode_in_memory.Served, last: ExtendedBlockProto) -> tuple[TxId, Close]:
    """Return a former active's edit that closed the file, with an unreported last block."""
    file = served.namespace.tree.file("/f")
    op = close_edit(file, "/f", 1, (Block(last.blockId, last.numBytes, last.generationStamp),))
    return served.log.append(op), op


async def test_a_block_that_a_snapshot_has_more_behind_does_not_grow() -> None:
    """Bad schedule: a cut at the end of a short block; the snapshot reads on behind that block."""
    served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve())
    await served.mkdirs("/d")
    first, _ = await datanodes_in_memory.written(served, "/d/f", 700, 300)
    await served.take_snapshot("/d", "s")
    await served.call("truncate", src="/d/f", newLength=700, clientName="other")
    answer = await append(served, src="/d/f")
    assert (answer.HasField("block"), answer.stat.length) == (False, 700)
    (edit,) = served.log.ops()[-1:]
    assert isinstance(edit, Append)
    assert edit.new_block
    assert stage(served, first.blockId) is Stage.COMPLETE
    added = await datanodes_in_memory.add_block(
        served, "/d/f", datanodes_in_memory.sized(first, 700), clientName="other"
    )
    assert added.offset == 700
    old = await datanodes_in_memory.locations(served, "/d/.snapshot/s/f")
    assert [(one.offset, one.b.numBytes) for one in old.blocks] == [(0, 700), (700, 300)]
    await served.call("deleteSnapshot", snapshotRoot="/d", snapshotName="s")

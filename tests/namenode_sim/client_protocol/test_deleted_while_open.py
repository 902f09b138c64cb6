"""A file is deleted while it is written, and a snapshot keeps it: its writer writes no more.

An edit of it would name a path at which there is nothing, or the file of somebody else.
"""

import pytest

from ha.rpc.errors import RemoteFault
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve
from tests.namenode_sim.namespace.dump import differences

BLOCK = ExtendedBlockProto(
    poolId=datanodes_in_memory.POOL, blockId=2**30 + 1, generationStamp=1001, numBytes=10
)
NEWER = ExtendedBlockProto(
    poolId=datanodes_in_memory.POOL, blockId=2**30 + 1, generationStamp=1002, numBytes=10
)
NO_FILE = "java.io.FileNotFoundException"
IO = "java.io.IOException"
CREATE, OVERWRITE = 1, 2


async def deleted() -> tuple[Served, int]:
    """``/s/f`` had a block that has come to its DataNodes; the number is the file's id."""
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/s")
    file = await served.create("/s/f")
    one = datanodes_in_memory.sized((await datanodes_in_memory.add_block(served, "/s/f")).b, 10)
    assert one == BLOCK
    await served.call("fsync", src="/s/f", client="writer", lastBlockLength=10)
    await served.call("updateBlockForPipeline", block=one, clientName="writer")
    datanodes_in_memory.report(served, one, "d1", "d2", "d3")
    await served.take_snapshot("/s", "one")
    await served.call("delete", src="/s/f", recursive=False)
    return served, file.fileId


# By what the file is named: its id and its old path, or its last block.
BY_ID: dict[str, tuple[str, Fields]] = {
    "another block": ("addBlock", {"clientName": "writer", "previous": BLOCK}),
    "a block taken back": ("abandonBlock", {"holder": "writer", "b": BLOCK}),
    "another DataNode": (
        "getAdditionalDatanode",
        {"clientName": "writer", "blk": BLOCK, "numAdditionalNodes": 1},
    ),
    "a flush": ("fsync", {"client": "writer", "lastBlockLength": 20}),
    "its end": ("complete", {"clientName": "writer", "last": BLOCK}),
}
BY_BLOCK: dict[str, tuple[str, Fields]] = {
    "a new stamp": ("updateBlockForPipeline", {"clientName": "writer", "block": BLOCK}),
    "a new pipeline": (
        "updatePipeline",
        {"clientName": "writer", "oldBlock": BLOCK, "newBlock": NEWER},
    ),
}


async def refused(served: Served, method: str, fields: Fields) -> tuple[str, str]:
    edits = len(served.log.frames)
    with pytest.raises(RemoteFault) as refusal:
        await served.call(method, **fields)
    assert len(served.log.frames) == edits
    return refusal.value.java_class, refusal.value.message


@pytest.mark.parametrize("again", [False, True], ids=["nothing is there", "another is there"])
@pytest.mark.parametrize(("method", "fields"), BY_ID.values(), ids=BY_ID.keys())
async def test_its_writer_is_told_that_it_is_deleted(
    method: str, fields: Fields, again: bool
) -> None:
    served, number = await deleted()
    if again:
        await served.create("/s/f", clientName="other")
    java_class, message = await refused(served, method, {**fields, "src": "/s/f", "fileId": number})
    assert java_class == NO_FILE
    assert message.startswith(f"File is deleted: /s/f (inode {number}) ")


@pytest.mark.parametrize("again", [False, True], ids=["nothing is there", "another is there"])
@pytest.mark.parametrize(("method", "fields"), BY_BLOCK.values(), ids=BY_BLOCK.keys())
async def test_its_block_has_no_file_that_is_written(
    method: str, fields: Fields, again: bool
) -> None:
    served, _ = await deleted()
    if again:
        await served.create("/s/f", clientName="other")
    assert await refused(served, method, fields) == (
        IO,
        f"The file blk_{BLOCK.blockId}_{BLOCK.generationStamp} belonged to does not exist or it is "
        "not under construction.",
    )


async def test_the_lease_of_its_writer_ends_with_it() -> None:
    served, _ = await deleted()
    assert served.namespace.tree.leases == {}
    assert differences(served.namespace, served.log.replayed()) == []


async def test_one_that_was_only_moved_away_is_written_on() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/s")
    await served.mkdirs("/t")
    file = await served.create("/s/f")
    await served.take_snapshot("/s", "one")
    await served.call("rename2", src="/s/f", dst="/t/g", overwriteDest=False)
    block = datanodes_in_memory.sized(
        (await datanodes_in_memory.add_block(served, "/s/f", fileId=file.fileId)).b, 10
    )
    datanodes_in_memory.report(served, block, "d1", "d2", "d3")
    assert await served.complete("/s/f", last=block, fileId=file.fileId)
    assert served.namespace.tree.file("/t/g").length() == 10


GOING: dict[str, tuple[str, Fields]] = {
    "deleted": ("delete", {"src": "/s/f", "recursive": False}),
    "replaced": ("rename2", {"src": "/other", "dst": "/s/f", "overwriteDest": True}),
    "created over": (
        "create",
        {
            "src": "/s/f",
            "masked": {"perm": 0o644},
            "clientName": "other",
            "createFlag": CREATE | OVERWRITE,
            "createParent": True,
            "replication": 3,
            "blockSize": 1 << 27,
        },
    ),
}


@pytest.mark.parametrize(("method", "fields"), GOING.values(), ids=GOING.keys())
async def test_its_empty_last_block_goes_and_datanodes_are_told(
    method: str, fields: Fields
) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.mkdirs("/s")
    await served.touch("/other")
    await served.create("/s/f")
    last = (await datanodes_in_memory.add_block(served, "/s/f")).b
    await served.take_snapshot("/s", "one")
    await served.call(method, **fields)
    blocks = served.cluster.blocks
    blocks.map.check()
    assert blocks.map.find(last.blockId) is None
    told = {blocks.map.storages.at(number).node for number, *_ in blocks.invalidations}
    assert told == {"d1", "d2", "d3"}

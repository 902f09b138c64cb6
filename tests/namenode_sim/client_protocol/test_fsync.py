"""fsync: which length of the last block it records."""

import pytest

from namenode_sim.blocks.model import Stage
from namenode_sim.edits.ops import UpdateBlocks
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol import datanodes_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import Fields, Served, serve
from tests.namenode_sim.client_protocol.recovering_datanodes import stage


async def recorded(served: Served, **fields: object) -> list[int]:
    more: Fields = {"src": "/f", "client": "writer", **fields}
    await served.call("fsync", **more)
    (edit,) = served.log.ops()[-1:]
    assert isinstance(edit, UpdateBlocks)
    assert served.namespace.tree.file("/f").blocks == edit.blocks
    return [block.num_bytes for block in edit.blocks]


@pytest.mark.parametrize(
    ("fields", "length"),
    [
        ({"lastBlockLength": 500}, 500),
        ({"lastBlockLength": 1}, 1),
        ({"lastBlockLength": 0}, 300),
        ({"lastBlockLength": -1}, 300),
        ({}, 300),
    ],
)
async def test_a_length_that_is_none_leaves_the_one_recorded_before(
    fields: dict[str, int], length: int
) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/f")
    first = datanodes_in_memory.sized((await datanodes_in_memory.add_block(served, "/f")).b, 700)
    await datanodes_in_memory.add_block(served, "/f", first)
    assert await recorded(served, lastBlockLength=300) == [700, 300]
    assert await recorded(served, **fields) == [700, length]


async def test_a_file_without_blocks_has_no_length_to_record() -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/f")
    assert await recorded(served, lastBlockLength=300) == []


@pytest.mark.parametrize("told_by", [[], ["d1"]], ids=["COMMITTED", "COMPLETE"])
async def test_a_length_that_comes_behind_the_final_one_is_not_recorded(told_by: list[str]) -> None:
    served = datanodes_in_memory.with_datanodes(serve())
    await served.create("/f")
    block = (await datanodes_in_memory.add_block(served, "/f")).b
    assert await recorded(served, lastBlockLength=300) == [300]
    last = datanodes_in_memory.sized(block, 700)
    assert not await served.complete("/f", last=last)
    datanodes_in_memory.report(served, last, *told_by)
    assert stage(served, block.blockId) is (Stage.COMPLETE if told_by else Stage.COMMITTED)
    assert await recorded(served, lastBlockLength=500) == [300]
    datanodes_in_memory.report(served, last, "d2")
    assert await served.complete("/f", last=last)
    assert served.namespace.tree.file("/f").blocks == (
        Block(last.blockId, 700, last.generationStamp),
    )

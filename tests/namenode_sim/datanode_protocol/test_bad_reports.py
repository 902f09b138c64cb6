"""Reports with blocks that are listed twice, or that no file has: only these are to go."""

import pytest

from tests.log_lines import captured
from tests.namenode_sim.datanode_protocol import scripted

UNKNOWN = -9
"""A block that was given out long ago, by its distance to the first that there is."""


async def deletions(datanode: scripted.DataNode) -> list[list[int]]:
    with captured("datanodes.command") as lines:
        datanode.heartbeat()
    return [line["blocks"] for line in lines]


@pytest.mark.parametrize("listed", ["in full", "one by one"])
async def test_of_blocks_listed_twice_and_unknown_ones_only_the_unknown_are_deleted(
    listed: str,
) -> None:
    made, datanode = await scripted.with_blocks(3)
    if listed == "in full":
        lease = datanode.heartbeat(wants_lease=True).lease
        rows = [scripted.whole(number, scripted.STAMP + number) for number in (0, 1, 1, 2, 2)]
        old = [
            scripted.whole(1, scripted.STAMP),
            scripted.whole(UNKNOWN, 900),
            scripted.whole(UNKNOWN, 901),
        ]
        assert await datanode.report(*old, *rows, lease=lease)
    else:
        known = [scripted.received(number, scripted.STAMP + number) for number in (0, 1, 1, 2, 2)]
        await datanode.tell(
            scripted.received(UNKNOWN, 901), *known, scripted.received(UNKNOWN, 901)
        )
    for number in range(3):
        assert made.holders(scripted.FIRST + number) == ["DS-a"]
    blocks = made.cluster.blocks
    assert (blocks.map.corrupt_count(), len(blocks.postponed_reports)) == (0, 0)
    told = [(block_id, stamp) for _, block_id, stamp, _ in blocks.invalidations]
    assert told == [(scripted.FIRST + UNKNOWN, 901)]
    assert await deletions(datanode) == [[scripted.FIRST + UNKNOWN]]
    for number in range(3):
        assert made.holders(scripted.FIRST + number) == ["DS-a"]

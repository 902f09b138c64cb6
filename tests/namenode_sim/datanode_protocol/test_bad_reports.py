"""Reports with blocks that are listed twice, or that no file has: only these are to go."""

import pytest
import structlog.testing

from tests.namenode_sim.datanode_protocol.scripted import (
    FIRST,
    STAMP,
    DataNode,
    received,
    whole,
    with_blocks,
)

UNKNOWN = -9
"""A block that was given out long ago, by its distance to the first that there is."""


async def deletions(datanode: DataNode) -> list[list[int]]:
    """The blocks of each deletion that leaves, as the log tells them."""
    with structlog.testing.capture_logs() as lines:
        datanode.heartbeat()
    return [line["blocks"] for line in lines if line["event"] == "datanodes.command"]


@pytest.mark.parametrize("listed", ["in full", "one by one"])
async def test_of_blocks_listed_twice_and_unknown_ones_only_the_unknown_are_deleted(
    listed: str,
) -> None:
    made, datanode = await with_blocks(3)
    if listed == "in full":
        lease = datanode.heartbeat(wants_lease=True).lease
        rows = [whole(number, STAMP + number) for number in (0, 1, 1, 2, 2)]
        old = [whole(1, STAMP), whole(UNKNOWN, 900), whole(UNKNOWN, 901)]
        assert await datanode.report(*old, *rows, lease=lease)
    else:
        known = [received(number, STAMP + number) for number in (0, 1, 1, 2, 2)]
        await datanode.tell(received(UNKNOWN, 901), *known, received(UNKNOWN, 901))
    for number in range(3):
        assert made.holders(FIRST + number) == ["DS-a"]
    blocks = made.cluster.blocks
    assert (blocks.corrupt, len(blocks.waiting)) == ({}, 0)
    told = [(block_id, stamp) for _, block_id, stamp, _ in blocks.invalidations]
    assert told == [(FIRST + UNKNOWN, 901)]
    assert await deletions(datanode) == [[FIRST + UNKNOWN]]
    for number in range(3):
        assert made.holders(FIRST + number) == ["DS-a"]

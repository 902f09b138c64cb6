"""Blocks and DataNodes between their messages and our words."""

import pytest

from hadoop.blocks import Block, BlockId, GenerationStamp
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto.datanode_types_pb2 import BlockProto
from hadoop.wire.block_messages import address_of, block_of, checked_block, extended, plain
from hadoop.wire.errors import MalformedTransfer
from tests.datanode.block_client import Place
from tests.datanode.stores import POOL, block

IDS = {
    "the lowest": (-(1 << 63), 1 << 63),
    "below zero": (-1, (1 << 64) - 1),
    "above zero": (1, 1),
    "the highest": ((1 << 63) - 1, (1 << 63) - 1),
}


@pytest.mark.parametrize(("block_id", "number"), IDS.values(), ids=IDS)
def test_an_id_that_was_drawn_may_be_negative(block_id: int, number: int) -> None:
    named = Block(BlockId(block_id), GenerationStamp(1001))
    assert plain(named, 5) == BlockProto(blockId=number, genStamp=1001, numBytes=5)
    assert extended(named, POOL.pool, 5) == hdfs.ExtendedBlockProto(
        poolId=POOL.pool, blockId=number, generationStamp=1001, numBytes=5
    )
    assert block_of(plain(named)) == named == checked_block(extended(named, POOL.pool), POOL.pool)


def test_a_block_alone_has_no_length() -> None:
    assert (plain(block()).numBytes, extended(block(), POOL.pool).numBytes) == (0, 0)


def message(pool: str = POOL.pool, stamp: int = 1001, length: int = 5) -> hdfs.ExtendedBlockProto:
    return hdfs.ExtendedBlockProto(poolId=pool, blockId=1, generationStamp=stamp, numBytes=length)


CANNOT_BE = "^a generation stamp or a length that cannot be$"
REFUSED = {
    "a pool that is not here": (
        message(pool="BP" * 200), f"^'{'BP' * 128}' is not the pool {POOL.pool} that is here$"
    ),
    "a stamp that cannot be": (message(stamp=1 << 63), CANNOT_BE),
    "a length that cannot be": (message(length=(1 << 48) + 1), CANNOT_BE),
}  # fmt: skip


@pytest.mark.parametrize(("named", "why"), REFUSED.values(), ids=REFUSED)
def test_blocks_that_no_peer_may_name(named: hdfs.ExtendedBlockProto, why: str) -> None:
    with pytest.raises(MalformedTransfer, match=why):
        checked_block(named, POOL.pool)


def test_the_highest_numbers_are_taken() -> None:
    highest = (1 << 63) - 1
    named = message(stamp=highest, length=1 << 48)
    assert checked_block(named, POOL.pool) == Block(BlockId(1), GenerationStamp(highest))


def test_the_address_of_a_data_node() -> None:
    assert address_of(Place(9866).info) == "127.0.0.1:9866"

"""How a block is named between a client and the NameNode, and when its writer may end it."""

from dataclasses import replace

import pytest

from namenode_sim.client_protocol.words import client_blocks
from namenode_sim.client_protocol.words.block_locations import extended
from namenode_sim.client_protocol.words.client_blocks import committed
from namenode_sim.client_protocol.words.errors import FsError
from namenode_sim.edits.values import Block
from tests.namenode_sim.client_protocol.datanodes_in_memory import POOL, with_datanodes, written
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve
from tests.namenode_sim.client_protocol.recovering_datanodes import half_written, recover_lease

ONE = Block(7, 100, 1001)

# As the wire has it, without a sign, and as the edits have it.
NUMBERS = {0: 0, 2**63 - 1: 2**63 - 1, 2**63: -(2**63), 2**64 - 1: -1}


@pytest.mark.parametrize(("on_the_wire", "number"), NUMBERS.items(), ids=map(hex, NUMBERS))
def test_a_block_s_number_has_a_sign(on_the_wire: int, number: int) -> None:
    told = extended(serve().scene(), Block(number, 100, 1001))
    assert told.blockId == on_the_wire
    assert client_blocks.block_from_message(told) == Block(number, 100, 1001)


SAME: dict[str, tuple[Block | None, Block | None, bool]] = {
    "itself": (ONE, ONE, True),
    "with more bytes": (ONE, Block(7, 200, 1001), True),
    "another": (ONE, Block(8, 100, 1001), False),
    "with another stamp": (ONE, Block(7, 100, 1002), False),
    "none beside one": (None, ONE, False),
    "one beside none": (ONE, None, False),
    "none": (None, None, True),
}


@pytest.mark.parametrize(("one", "other", "answer"), SAME.values(), ids=SAME.keys())
def test_blocks_are_told_apart_by_number_and_stamp(
    one: Block | None, other: Block | None, answer: bool
) -> None:
    assert client_blocks.same(one, other) is answer


def test_a_block_has_the_names_that_hadoop_prints() -> None:
    scene = serve().scene()
    assert (client_blocks.name_of(ONE), client_blocks.name_of(None)) == ("blk_7_1001", "null")
    assert (client_blocks.pooled_name(scene, ONE), client_blocks.pooled_name(scene, None)) == (
        f"{POOL}:blk_7_1001",
        "null",
    )


async def test_only_a_block_that_is_being_written_is_expected_somewhere() -> None:
    served, _, told = await half_written()
    places = client_blocks.expected_places(served.scene(), client_blocks.block_from_message(told))
    assert sorted(node.id.uuid for node, _ in places) == ["d1", "d2", "d3"]
    served = with_datanodes(serve())
    (whole,) = await written(served, "/f", 10)
    assert (
        client_blocks.expected_places(served.scene(), client_blocks.block_from_message(whole)) == []
    )


# ---- which last block with which length a writer may send ----


def tell(served: Served, told: Block | None) -> Block | None:
    return committed(served.scene(), served.namespace.tree.file("/f"), told)


async def flushed() -> tuple[Served, Block]:
    """Let the writer of ``/f`` report that a hundred bytes are in its only block."""
    served, _, told = await half_written()
    await served.call("fsync", src="/f", client="writer", lastBlockLength=100)
    return served, replace(client_blocks.block_from_message(told), num_bytes=100)


@pytest.mark.parametrize("length", [100, 101])
async def test_the_last_block_may_grow(length: int) -> None:
    served, last = await flushed()
    longer = replace(last, num_bytes=length)
    assert tell(served, longer) == longer


REFUSED: dict[str, tuple[int, int, int, str]] = {
    "of another stamp": (0, 1, 100, "mismatching GS"),
    "another block": (1, 0, 100, "inconsistent block"),
    "with fewer bytes": (0, 0, 99, "less than the stored one 99 vs. 100"),
}


@pytest.mark.parametrize(("off", "later", "length", "why"), REFUSED.values(), ids=REFUSED.keys())
async def test_nothing_else_ends_the_last_block(
    off: int, later: int, length: int, why: str
) -> None:
    served, last = await flushed()
    told = Block(last.block_id + off, length, last.generation_stamp + later)
    with pytest.raises(FsError, match=why) as refused:
        tell(served, told)
    assert refused.value.java_class == "java.io.IOException"


async def test_a_block_under_recovery_is_ended_by_nobody_else() -> None:
    served, last = await flushed()
    assert not await recover_lease(served)
    with pytest.raises(FsError, match="whereas it is under recovery"):
        tell(served, last)


async def test_a_block_that_is_committed_is_not_committed_again() -> None:
    served, _, told = await half_written()
    last = replace(client_blocks.block_from_message(told), num_bytes=700)
    assert not await served.complete("/f", last=extended(served.scene(), last))
    assert tell(served, replace(last, num_bytes=900)) is None


async def test_a_file_without_blocks_has_none_to_end() -> None:
    served = serve()
    await served.create("/f")
    assert tell(served, ONE) is None
    served, _, _ = await half_written()
    assert tell(served, None) is None

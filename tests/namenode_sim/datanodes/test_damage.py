"""Which reports about damaged replicas count."""

import pytest

from namenode_sim.blocks.model import CorruptMark, Reason
from namenode_sim.datanodes.damage import Damaged, check_known, note_damage
from namenode_sim.datanodes.errors import UnknownDatanode
from namenode_sim.namespace.changes import BlockAdded
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

ELSEWHERE = BLOCK + 7
"""A block that is not in the map."""

GROUP = -16
"""A striped block group; what is said of its units does not count."""


def _few() -> Few:
    """One block on a and b, and a striped one; c has none."""
    few = Few("abc")
    few.block("ab", 2)
    few.edit(BlockAdded(1, GROUP, LENGTH, STAMP, 1, complete=True))
    few.received("a", GROUP)
    return few


@pytest.mark.parametrize(
    ("block_id", "datanode", "is_refused"),
    [
        pytest.param(BLOCK, "a", False, id="both are known"),
        pytest.param(BLOCK, "c", False, id="it has no replica"),
        pytest.param(BLOCK, "x", True, id="the DataNode is not known"),
        pytest.param(ELSEWHERE, "x", False, id="nothing is known"),
        pytest.param(ELSEWHERE, "a", False, id="the block is not known"),
    ],
)
def test_a_datanode_that_never_registered_has_no_replica_of_a_known_block(
    block_id: int, datanode: str, *, is_refused: bool
) -> None:
    few, damaged = _few(), Damaged(block_id, STAMP, datanode)
    if not is_refused:
        check_known(few.cluster, damaged)
        return
    with pytest.raises(UnknownDatanode, match=f"blk_{block_id}_{STAMP} .* 'x' does not exist"):
        check_known(few.cluster, damaged)


@pytest.mark.parametrize(
    ("damaged", "counts"),
    [
        pytest.param(Damaged(BLOCK, STAMP, "a"), True, id="a replica"),
        pytest.param(Damaged(BLOCK, STAMP, "b"), True, id="another replica"),
        pytest.param(Damaged(BLOCK, STAMP - 1, "a"), False, id="an older stamp: it is late"),
        pytest.param(Damaged(BLOCK, STAMP + 1, "a"), False, id="a newer stamp"),
        pytest.param(Damaged(BLOCK, STAMP, "c"), False, id="the DataNode has no replica"),
        pytest.param(Damaged(BLOCK, STAMP, "x"), False, id="the DataNode is not known"),
        pytest.param(Damaged(ELSEWHERE, STAMP, "a"), False, id="the block is not known"),
        pytest.param(Damaged(GROUP, STAMP, "a"), False, id="a striped group"),
    ],
)
def test_a_replica_with_the_present_stamp_is_noted_and_told(
    damaged: Damaged, *, counts: bool
) -> None:
    few, told = _few(), list[tuple[int, int, str]]()
    few.cluster.on_damage = lambda *one: told.append(one)
    note_damage(few.cluster, damaged)
    marks = {
        (few.state.map.block(slot).id, few.cluster.place(number)[0].id.uuid): mark
        for _, slot in few.state.map.items()
        for number, mark in few.state.map.corrupt_marks(slot).items()
    }
    if counts:
        mark = CorruptMark(Reason.CORRUPTION_REPORTED, STAMP)
        assert marks == {(BLOCK, damaged.datanode): mark}
        assert told == [(BLOCK, STAMP, damaged.datanode)]
    else:
        assert (marks, told) == ({}, [])


def test_a_replica_that_is_known_to_be_corrupt_is_not_told_again() -> None:
    few, told = _few(), list[tuple[int, int, str]]()
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    few.damaged(slot, "a", stamp=STAMP - 1)
    few.cluster.on_damage = lambda *one: told.append(one)
    note_damage(few.cluster, Damaged(BLOCK, STAMP, "a"))
    assert told == []
    assert few.state.map.corrupt_marks(slot)[few.storages["a"].held.number].stamp == STAMP - 1

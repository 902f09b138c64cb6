"""All blocks are scanned when an active begins, and which of them are passed over."""

from collections.abc import Callable
from typing import Final

import numpy as np
import pytest

from namenode_sim.blocks import incremental_reports
from namenode_sim.blocks.model import Slot
from namenode_sim.blocks.needed import Priority
from namenode_sim.namespace.changes import BlockAdded, BlocksGone
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few
from tests.namenode_sim.datanodes.redundancy_world import a_node

STRIPED_GROUP: Final = -(2**63) + 16


def begin_term(few: Few) -> None:
    few.state.demote()
    incremental_reports.activate(few.state)


def to_judge(few: Few) -> int:
    assert few.state.rechecks.is_started()
    return len(few.state.rechecks)


def deleted(few: Few) -> None:
    few.block("a", expected=2)
    few.edit(BlocksGone((BLOCK,)))


def striped(few: Few) -> None:
    few.edit(BlockAdded(1, STRIPED_GROUP, LENGTH, STAMP, 2, complete=True))


BLOCKS: Final[dict[str, tuple[str, Callable[[Few], object], bool]]] = {
    "enough": ("abcd", lambda few: few.block("ab", expected=2), False),
    "too few": ("abcd", lambda few: few.block("a", expected=2), True),
    "too many": ("abcd", lambda few: few.block("abc", expected=2), True),
    "one is damaged": ("abcd", lambda few: few.damaged(few.block("ab", expected=2), "b"), True),
    "the lowest id": ("abcd", lambda few: few.block("a", expected=2, number=1), True),
    "a deleted one": ("abcd", deleted, False),
    "a striped group": ("abcd", striped, False),
    "two on two racks": ("ab/cd", lambda few: few.block("ac", expected=2), False),
    "two on one of two racks": ("ab/cd", lambda few: few.block("ab", expected=2), True),
    "two on the second rack": ("ab/cd", lambda few: few.block("cd", expected=2), True),
    "three on two racks": ("ab/cd", lambda few: few.block("acd", expected=3), False),
    "one alone where racks are": ("ab/cd", lambda few: few.block("c", expected=1), False),
}
"""DataNodes rack by rack, a block, and whether a new active judges it."""


@pytest.mark.parametrize(("racks", "block", "judged"), BLOCKS.values(), ids=BLOCKS)
def test_what_is_obviously_as_it_should_be_is_passed_over(
    racks: str, block: Callable[[Few], object], judged: bool
) -> None:
    first, _, second = racks.partition("/")
    few = Few(first + second, dict.fromkeys(second, "/other"))
    block(few)
    begin_term(few)
    assert few.redundancy.work(few.now) is judged
    assert to_judge(few) == judged


@pytest.mark.parametrize(
    ("row", "turn"), [(0, 1), (19_999, 1), (20_000, 2), (39_999, 2), (40_000, 3)]
)
def test_twenty_thousand_blocks_are_scanned_in_a_turn(row: int, turn: int) -> None:
    few, count = Few("a"), 40_001
    expected = np.zeros(count, np.uint16)
    expected[row] = 1
    same = np.ones(count, np.int64)
    few.state.add_complete_blocks(np.arange(1, count + 1), same, same, same, expected)
    begin_term(few)
    turns = 1
    while few.redundancy.work(few.now) and to_judge(few) == 0:
        turns += 1
    assert (turns, to_judge(few)) == (turn, 1)
    while few.redundancy.work(few.now):
        pass
    assert few.state.needed.listed(Priority.MISSING) == [row]


@pytest.mark.row("B14")
def test_all_blocks_are_scanned_when_the_first_datanode_on_a_second_rack_comes() -> None:
    few = Few("ab")
    slot = few.block("ab", expected=2)
    few.round()
    assert (slot, few.state.needed.priority(slot)) == (Slot(0), None)
    few.nodes["c"], few.storages["c"] = a_node(few.cluster, "c", "/other")
    few.nodes["c"].alive = False
    few.round()
    assert few.state.needed.priority(slot) is Priority.BADLY_DISTRIBUTED


def test_racks_are_seen_before_the_first_round() -> None:
    few = Few("ab")
    slot = few.block("ab", expected=2)
    few.nodes["c"], few.storages["c"] = a_node(few.cluster, "c", "/other")
    begin_term(few)
    few.work()
    assert few.state.needed.priority(slot) is Priority.BADLY_DISTRIBUTED


def test_racks_that_are_known_have_no_block_scanned_again() -> None:
    few = Few("abc", {"c": "/other"})
    few.nodes["c"].alive = False
    few.block("ab", expected=2)
    few.round()
    few.redundancy.begin_round(few.now)
    assert not few.redundancy.work(few.now)
    assert to_judge(few) == 0

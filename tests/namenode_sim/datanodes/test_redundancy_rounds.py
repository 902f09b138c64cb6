"""What a round does, and how its work is spread over turns of the event loop."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import pytest

from journal.model import TxId
from namenode_sim.blocks import incremental_reports, safemode
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.recheck_queue import DeleteHint, Recheck
from namenode_sim.datanode_protocol.upkeep import Upkeep
from namenode_sim.datanodes.redundancy import Redundancy, note_hint
from namenode_sim.datanodes.redundancy_check import RedundancyRules
from namenode_sim.namespace.changes import BlockSettled, BlocksGone, ReplicationSet
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

FEW_TURNS: Final = 10
"""A limit of judgements with which one copy is ordered in a turn."""


def short_blocks(few: Few, on: str, count: int) -> None:
    """Add ``count`` blocks on each of these DataNodes that are to have one more replica."""
    for index, name in enumerate(on):
        for number in range(count):
            few.block(name, expected=2, number=BLOCK + index * count + number)
    few.work()


def copied(few: Few) -> list[int]:
    orders = (order for node in few.nodes.values() for order in node.copy_orders)
    return [order.block_id - BLOCK for order in orders]


# ---- how much ----

BUDGETS: Final = {
    "two for each DataNode": ("", RedundancyRules(), 8),
    "a dead one does not count": ("d", RedundancyRules(), 6),
    "one as the settings say": ("", RedundancyRules(work_per_node=1), 4),
    "three as the settings say": ("d", RedundancyRules(work_per_node=3), 9),
}
"""Dead ones of four DataNodes, the settings, and how many copies a round orders."""


@pytest.mark.parametrize(("dead", "rules", "ordered"), BUDGETS.values(), ids=BUDGETS)
def test_copies_of_one_round(dead: str, rules: RedundancyRules, ordered: int) -> None:
    few = Few("abcd")
    few.redundancy = Redundancy(few.cluster, rules)
    short_blocks(few, "abc", 4)
    for name in dead:
        few.dies(name)
    few.round()
    assert len(copied(few)) == ordered


@pytest.mark.parametrize(
    ("limit", "copies"),
    [
        (1, [1, 1, 1, 1, 1, 1]),
        (9, [1, 1, 1, 1, 1, 1]),
        (19, [1, 1, 1, 1, 1, 1]),
        (20, [2, 2, 2]),
        (39, [3, 3]),
        (40, [4, 2]),
        (500, [6]),
    ],
)
def test_a_copy_takes_a_turn_as_long_as_ten_judgements(limit: int, copies: list[int]) -> None:
    few = Few("abc")
    short_blocks(few, "ab", 4)
    few.redundancy.begin_round(few.now)
    found, more = [0], True
    while more and len(found) < 20:
        more = few.redundancy.work(few.now, limit)
        found.append(len(copied(few)))
    assert [after - before for before, after in pairwise(found)] == copies


def test_all_touched_blocks_are_judged_before_any_is_copied() -> None:
    few = Few("ab")
    for number in range(4):
        few.block("a", expected=2, number=BLOCK + number)
    few.redundancy.begin_round(few.now)
    assert few.redundancy.work(few.now, 3)
    assert (len(few.state.needed), copied(few)) == (3, [])
    few.redundancy.work(few.now, 3)
    assert (len(few.state.needed), copied(few)) == (3, [0])


REREAD: Final = {2: [1, 2], 2399: [1, 2], 2400: [0, 1]}
"""By the number of the round, the blocks that it copies, where the first was in vain in round 1."""


@pytest.mark.parametrize(("number", "blocks"), REREAD.items(), ids=map(str, REREAD))
def test_queues_are_read_anew_each_2400_rounds(number: int, blocks: list[int]) -> None:
    few = Few("ab")
    few.redundancy = Redundancy(few.cluster, RedundancyRules(work_per_node=1))
    short_blocks(few, "a", 4)
    few.nodes["b"].alive = False
    few.round()
    assert copied(few) == [], "there is no DataNode for it"
    few.nodes["b"].alive = True
    for _ in range(number - 2):
        few.redundancy.begin_round(few.now)
    few.round()
    assert copied(few) == blocks


def test_a_round_repeats_a_thousand_deletions() -> None:
    few = Few("ab")
    for number in range(1001):
        few.block("ab", expected=1, number=BLOCK + number)
    few.work()
    for storage in few.storages.values():
        few.state.invalidations.take_due(storage.held.number, TxId(few.txid), 2000)
    few.now += 3601
    few.redundancy.begin_round(few.now)
    assert len(few.ordered()) == 1000
    few.redundancy.begin_round(few.now)
    assert len(few.ordered()) == 1001


async def test_rounds_are_three_seconds_apart() -> None:
    few = Few("ab")
    upkeep = Upkeep(few.redundancy, few.state.map, lambda: few.now)
    await upkeep.look()
    few.block("a", expected=2)
    few.now = 2.9
    await upkeep.look()
    assert copied(few) == []
    few.now = 3.0
    await upkeep.look()
    assert copied(few) == [0]


# ---- what changes between turns ----

CHANGES: Final[dict[str, Callable[[Few], object]]] = {
    "it is deleted": lambda few: few.edit(BlocksGone((BLOCK + 1,))),
    "it is written again": lambda few: few.edit(
        BlockSettled(BLOCK + 1, LENGTH, STAMP + 1, complete=False)
    ),
    "it is to have one": lambda few: few.edit(ReplicationSet((BLOCK + 1,), 1)),
    "it has come": lambda few: few.received("b", BLOCK + 1),
    "it is lost": lambda few: few.deleted("a", BLOCK + 1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_block_that_needs_no_copy_when_its_turn_comes(change: Callable[[Few], object]) -> None:
    few = Few("abc")
    short_blocks(few, "a", 2)
    few.redundancy.begin_round(few.now)
    assert few.redundancy.work(few.now, FEW_TURNS)
    change(few)
    few.work()
    assert copied(few) == [0]


def test_a_block_whose_datanode_has_moved_to_another_rack_is_spread() -> None:
    few = Few("abc", {"c": "/other"})
    few.nodes["c"].alive = False
    slot = few.block("ab", expected=2)
    few.round()
    assert few.state.needed.priority(slot) is Priority.BADLY_DISTRIBUTED
    few.nodes["b"].rack, few.nodes["c"].rack = "/other", "/third"
    few.nodes["c"].alive = True
    few.round()
    assert (few.state.needed.priority(slot), copied(few)) == (None, [])


LEFT_OVER: Final[dict[str, Callable[[Few], object]]] = {
    "a round that was only begun": lambda few: None,
    "copies that were not ordered yet": lambda few: few.redundancy.work(few.now, FEW_TURNS),
}


@pytest.mark.parametrize("work", LEFT_OVER.values(), ids=LEFT_OVER)
def test_a_new_term_does_nothing_that_is_left_of_the_last(work: Callable[[Few], object]) -> None:
    few = Few("ab")
    short_blocks(few, "a", 4)
    few.redundancy.begin_round(few.now)
    work(few)
    few.nodes["a"].copy_orders.clear()
    few.state.demote()
    incremental_reports.activate(few.state)
    few.cluster.safe_mode = safemode.enter(few.cluster.safe_mode)
    few.redundancy.begin_round(few.now)
    few.block("a", expected=2, number=BLOCK + 9)
    while few.redundancy.work(few.now, FEW_TURNS):
        pass
    assert (copied(few), len(few.redundancy.pending)) == ([], 0)


def test_who_begins_amid_a_term_scans_all_blocks_and_copies_in_its_first_round() -> None:
    few = Few("ab")
    slot = few.block("a", expected=2)
    few.work()
    few.state.needed.put(slot, None)
    few.redundancy = Redundancy(few.cluster)
    few.work()
    assert few.state.needed.priority(slot) is Priority.HIGHEST
    assert copied(few) == []
    few.round()
    assert copied(few) == [0]


def test_no_term_begins_in_the_safe_mode_of_the_start() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.state.demote()
    few.state.set_starting(starting=True)
    incremental_reports.activate(few.state)
    for _ in range(2):
        few.round()
    assert (few.state.rechecks.is_started(), copied(few)) == (False, [])


@pytest.mark.parametrize("block_id", [BLOCK, BLOCK + 1], ids=["a block", "no block"])
@pytest.mark.parametrize("active", [True, False], ids=["the active", "a standby"])
def test_a_hint_is_kept_by_the_active_for_its_blocks(active: bool, block_id: int) -> None:
    few = Few("ab")
    slot = few.block("ab", expected=2)
    few.work()
    if not active:
        few.state.demote()
    hint = DeleteHint("a", "b")
    note_hint(few.cluster, block_id, hint)
    touch = few.state.rechecks.pop()
    kept = Recheck(slot, hint, ()) if active and block_id == BLOCK else None
    assert touch == kept


# ---- copies that will not come ----


def test_only_the_copies_to_a_dead_datanode_are_looked_at_again() -> None:
    few = Few("abcd")
    short_blocks(few, "a", 4)
    few.round()
    places = [few.redundancy.pending.places(BLOCK + number) for number in range(4)]
    dead = places[0][0][0]
    to_dead = sum(node is dead for ((node, _),) in places)
    few.dies(dead.id.uuid)
    few.redundancy.begin_round(few.now)
    assert few.state.rechecks.is_started()
    assert len(few.state.rechecks) == to_dead < 4


def test_of_two_copies_the_one_to_a_dead_datanode_is_ordered_again() -> None:
    few = Few("abcd")
    few.block("a", expected=3)
    few.round()
    (first, _), (second, _) = few.redundancy.pending.places(BLOCK)
    few.nodes["a"].copy_orders.clear()
    few.dies(first.id.uuid)
    few.round()
    (other,) = set("bcd") - {first.id.uuid, second.id.uuid}
    assert few.targets() == [other]


def test_copies_of_a_deleted_block_are_given_up_and_no_block_is_judged() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.round()
    few.edit(BlocksGone((BLOCK,)))
    few.now += 300
    few.redundancy.begin_round(few.now)
    assert (few.redundancy.timeouts, len(few.redundancy.pending)) == (1, 0)
    assert few.state.rechecks.is_started()
    assert few.state.rechecks.pop() is None

"""The queues of blocks that need copies."""

from random import Random
from typing import Final

import pytest

from namenode_sim.blocks.columns import CORRUPT, NEEDED, BlockColumns
from namenode_sim.blocks.model import Slot
from namenode_sim.blocks.needed import COPIED, Needed, Priority
from namenode_sim.datanodes.reconstruction import priority

URGENCY: Final = {
    "enough": (3, 0, 3, True, None),
    "more than enough": (4, 0, 3, True, None),
    "on one rack": (3, 0, 3, False, Priority.BADLY_DISTRIBUTED),
    "on one rack, one more is coming": (3, 1, 3, False, None),
    "one left": (1, 0, 3, True, Priority.HIGHEST),
    "one left, one is coming": (1, 1, 3, True, Priority.HIGHEST),
    "one left, all are coming": (1, 2, 3, True, None),
    "two of three": (2, 0, 3, True, Priority.LOW),
    "three of ten": (3, 0, 10, True, Priority.VERY_LOW),
    "a third": (3, 0, 9, True, Priority.LOW),
    "none": (0, 0, 3, True, Priority.MISSING),
    "none, some are coming": (0, 3, 3, True, Priority.MISSING),
}


@pytest.mark.row("B15")
@pytest.mark.parametrize(
    ("live", "coming", "expected", "spread", "wanted"), URGENCY.values(), ids=URGENCY
)
def test_urgency(
    live: int, coming: int, expected: int, spread: bool, wanted: Priority | None
) -> None:
    assert priority(live, coming, expected, spread=spread) is wanted


def queues(blocks: int, columns: BlockColumns | None = None) -> tuple[Needed, list[Slot]]:
    columns = BlockColumns() if columns is None else columns
    slots = [columns.add(number, 1, 1, 1, 3, 0) for number in range(1, blocks + 1)]
    return Needed(columns), slots


@pytest.mark.row("B15")
def test_urgent_blocks_come_first_and_each_round_goes_on() -> None:
    needed, slots = queues(6)
    for slot in slots[:3]:
        needed.put(slot, Priority.LOW)
    for slot in slots[3:5]:
        needed.put(slot, Priority.HIGHEST)
    needed.put(slots[5], Priority.MISSING)
    assert needed.take(3) == [slots[3], slots[4], slots[0]]
    assert needed.take(1) == [slots[1]]
    assert needed.take(5) == [slots[2]]
    assert needed.take(5) == [slots[3], slots[4], *slots[:3]]


def test_blocks_that_nobody_can_copy_do_not_hold_up_the_others() -> None:
    needed, slots = queues(5)
    for slot in slots[:4]:
        needed.put(slot, Priority.HIGHEST)
    needed.put(slots[4], Priority.LOW)
    taken = [slot for _ in range(3) for slot in needed.take(2)]
    assert slots[4] in taken


def test_queues_are_what_sets_are() -> None:
    chance = Random(1)
    columns = BlockColumns()
    needed, slots = queues(300, columns)
    model: dict[Slot, Priority] = {}
    seen: set[Slot] = set()
    for step in range(20_000):
        slot, into = chance.choice(slots), chance.choice([None, *Priority])
        needed.put(slot, into)
        seen.update(needed.take(chance.randint(0, 3)))
        model.pop(slot, None)
        if into is not None:
            model[slot] = into
        if step % 500 == 0:
            for one in Priority:
                assert set(needed.listed(one)) == {s for s, p in model.items() if p is one}
                assert needed.size(one) == len(needed.listed(one))
            assert len(needed) == len(model)
            copied = {slot for slot, one in model.items() if one in COPIED}
            assert copied <= {slot for _ in range(400) for slot in needed.take(3)}
    assert len(seen) == len(slots)
    needed.clear()
    assert (len(needed), needed.take(10)) == (0, [])
    assert not any(columns.flags[slot] & NEEDED for slot in slots)


def test_only_missing_blocks_that_were_to_have_one_replica_count_as_such() -> None:
    columns = BlockColumns()
    needed, slots = queues(6, columns)
    for slot, expected in zip(slots, (1, 1, 2, 3, 1, 1), strict=True):
        columns.expected[slot] = expected
    for slot in slots[:5]:
        needed.put(slot, Priority.MISSING)
    columns.set_flag(slots[0], CORRUPT, on=True)
    needed.put(slots[4], Priority.HIGHEST)
    needed.put(slots[5], Priority.HIGHEST)
    assert needed.missing_single() == 2
    needed.put(slots[0], None)
    assert needed.missing_single() == 1
    needed.put(slots[0], Priority.MISSING)
    assert needed.missing_single() == 2


def test_a_block_that_is_put_where_it_is_keeps_its_place_and_is_taken_once() -> None:
    needed, slots = queues(2)
    for slot in (*slots, slots[0]):
        needed.put(slot, Priority.LOW)
    assert needed.take(9) == slots


def test_a_queue_that_sheds_dead_entries_loses_no_block_and_goes_on_where_it_was_read() -> None:
    needed, (first, restless, gone, *others) = queues(6)
    for slot in (first, restless, gone, *others[:2]):
        needed.put(slot, Priority.LOW)
    for slot in (restless, gone):
        needed.put(slot, None)
    assert needed.take(2) == [first, others[0]]
    for _ in range(5000):
        needed.put(restless, Priority.LOW)
        needed.put(restless, None)
    needed.put(others[2], Priority.LOW)
    assert needed.listed(Priority.LOW) == [first, *others]
    assert needed.take(9) == others[1:]
    assert needed.take(9) == [first, *others]


def test_queues_that_were_cleared_begin_anew() -> None:
    needed, (one, other) = queues(2)
    for slot in (one, other):
        needed.put(slot, Priority.LOW)
    assert needed.take(1) == [one]
    needed.clear()
    for slot in (other, one):
        needed.put(slot, Priority.LOW)
    assert needed.take(1) == [other]
    assert needed.listed(Priority.LOW) == [other, one]


def test_a_block_that_left_and_came_back_takes_no_other_ones_turn() -> None:
    needed, slots = queues(2)
    for slot, where in ((0, Priority.LOW), (0, None), (0, Priority.LOW), (1, Priority.LOW)):
        needed.put(slots[slot], where)
    assert needed.take(2) == slots

"""Touched blocks are judged once each, in their order, with what was said of them since."""

from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.touched import Touch, Touched

FIRST, SECOND, THIRD = Slot(7), Slot(3), Slot(5)
STORAGES = (StorageNumber(2), StorageNumber(4))


def popped(touched: Touched) -> list[Touch]:
    """All that is to be judged."""
    found: list[Touch] = []
    while (touch := touched.pop()) is not None:
        found.append(touch)
    return found


def test_blocks_are_judged_in_the_order_in_which_they_were_touched_first() -> None:
    touched = Touched()
    touched.add(FIRST)
    touched.update([SECOND, THIRD, FIRST])
    touched.add(FIRST)
    assert len(touched) == 3
    assert popped(touched) == [Touch(slot, None, ()) for slot in (FIRST, SECOND, THIRD)]
    assert len(touched) == 0


def test_a_block_that_was_judged_can_be_touched_again() -> None:
    touched = Touched()
    for slot in (FIRST, FIRST, SECOND):
        touched.add(slot)
    assert touched.pop() == Touch(FIRST, None, ())
    assert len(touched) == 1
    touched.add(FIRST)
    assert popped(touched) == [Touch(SECOND, None, ()), Touch(FIRST, None, ())]


def test_what_was_said_of_a_block_is_told_once() -> None:
    touched = Touched()
    touched.hint(FIRST, "n1")
    touched.hint(FIRST, "n2")
    touched.wait_for(SECOND, STORAGES)
    assert len(touched) == 2
    assert popped(touched) == [Touch(FIRST, "n2", ()), Touch(SECOND, None, STORAGES)]
    touched.update([FIRST, SECOND])
    assert popped(touched) == [Touch(FIRST, None, ()), Touch(SECOND, None, ())]


def test_of_a_block_that_is_gone_nothing_is_left_for_the_next_one_in_its_place() -> None:
    touched = Touched()
    touched.hint(FIRST, "n1")
    touched.wait_for(FIRST, STORAGES)
    touched.add(SECOND)
    touched.forget(FIRST)
    touched.forget(THIRD)
    assert len(touched) == 1
    assert touched.pop() == Touch(SECOND, None, ())
    touched.add(FIRST)
    assert popped(touched) == [Touch(FIRST, None, ())]

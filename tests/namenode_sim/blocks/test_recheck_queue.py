"""Blocks that have changed are judged once each, in their order, with what was said of them."""

from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.recheck_queue import DeleteHint, Recheck, RecheckQueue

FIRST, SECOND, THIRD = Slot(7), Slot(3), Slot(5)
STORAGES = (StorageNumber(2), StorageNumber(4))
HINT, OTHER = DeleteHint("n1", "n3"), DeleteHint("n2", "n3")


def started() -> RecheckQueue:
    """Build a queue of an active that is out of the safe mode of its start."""
    queue = RecheckQueue()
    queue.start()
    return queue


def popped(touched: RecheckQueue) -> list[Recheck]:
    found: list[Recheck] = []
    while (touch := touched.pop()) is not None:
        found.append(touch)
    return found


def test_blocks_are_judged_in_the_order_in_which_they_were_touched_first() -> None:
    touched = started()
    touched.add(FIRST)
    touched.update([SECOND, THIRD, FIRST])
    touched.add(FIRST)
    assert len(touched) == 3
    assert popped(touched) == [Recheck(slot, None, ()) for slot in (FIRST, SECOND, THIRD)]
    assert len(touched) == 0


def test_a_block_that_was_judged_can_be_touched_again() -> None:
    touched = started()
    for slot in (FIRST, FIRST, SECOND):
        touched.add(slot)
    assert touched.pop() == Recheck(FIRST, None, ())
    assert len(touched) == 1
    touched.add(FIRST)
    assert popped(touched) == [Recheck(SECOND, None, ()), Recheck(FIRST, None, ())]


def test_what_was_said_of_a_block_is_told_once() -> None:
    touched = started()
    touched.hint(FIRST, HINT)
    touched.hint(FIRST, OTHER)
    touched.wait_for(SECOND, STORAGES)
    assert len(touched) == 2
    assert popped(touched) == [Recheck(FIRST, OTHER, ()), Recheck(SECOND, None, STORAGES)]
    touched.update([FIRST, SECOND])
    assert popped(touched) == [Recheck(FIRST, None, ()), Recheck(SECOND, None, ())]


def test_of_a_block_that_is_gone_nothing_is_left_for_the_next_one_in_its_place() -> None:
    touched = started()
    touched.hint(FIRST, HINT)
    touched.wait_for(FIRST, STORAGES)
    touched.add(SECOND)
    touched.forget(FIRST)
    touched.forget(THIRD)
    assert len(touched) == 1
    assert touched.pop() == Recheck(SECOND, None, ())
    touched.add(FIRST)
    assert popped(touched) == [Recheck(FIRST, None, ())]


def test_a_standby_is_to_judge_nothing() -> None:
    queue = started()
    queue.hint(FIRST, HINT)
    queue.wait_for(SECOND, STORAGES)
    queue.postpone(THIRD)
    queue.stop()
    queue.hint(FIRST, HINT)
    queue.wait_for(SECOND, STORAGES)
    queue.add(THIRD)
    assert (len(queue), queue.pop(), list(queue.postponed)) == (0, None, [])
    queue.start()
    queue.update([FIRST, SECOND])
    assert popped(queue) == [Recheck(FIRST, None, ()), Recheck(SECOND, None, ())]

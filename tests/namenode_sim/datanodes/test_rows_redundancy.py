"""Rows about replicas: takeovers with deletions on their way, lost replicas, open blocks."""

import pytest

from namenode_sim.blocks import incremental_reports
from namenode_sim.blocks.model import Reason, ReplicaState, Reported, Slot
from namenode_sim.namespace.changes import BlockAdded, BlockSettled, BlocksGone, StampGiven
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

MANY = 30


def good(few: Few, number: int = BLOCK) -> str:
    state, slot = few.state, few.state.map.find(number)
    assert slot is not None
    held = state.map.storages_of(slot)
    names = (few.cluster.place(one)[0].id.uuid for one in held if state.map.is_good(slot, one))
    return "".join(sorted(names))


def told(few: Few, name: str, state: ReplicaState, stamp: int, length: int) -> None:
    news = [(BLOCK, Reported(state, stamp, length))]
    incremental_reports.receive(few.state, few.storages[name].held, news, few.now)


@pytest.mark.row("B2")
def test_b2_one_that_was_restarted_before_its_takeover_deletes_what_is_left_to_delete() -> None:
    """Each block is to have one replica and has three; the former active orders other deletions."""
    few = Few("abc")
    few.state.demote()
    numbers = range(BLOCK, BLOCK + MANY)
    for number in numbers:
        few.block("abc", expected=1, number=number)
    few.work()
    assert few.ordered() == [], "a standby queues nothing"
    incremental_reports.activate(few.state)
    few.work()
    assert few.ordered() == [], "nothing goes on the word of reports to a standby"
    assert len(few.state.rechecks.postponed) == MANY
    for number in numbers:  # what the former active had ordered; of each third block nothing left
        kept = "abc"[number % 3]
        for name in "abc":
            if name != kept and number % 3:
                few.deleted(name, number)
    for name in "abc":
        few.confirm(name)
    few.work()
    assert len(few.state.rechecks.postponed) == 0
    for number in numbers:
        ordered = [name for name, block_id, _ in few.ordered() if block_id == number]
        assert len(ordered) == (0 if number % 3 else 2)
        assert len(set(good(few, number)) - set(ordered)) == 1


@pytest.mark.row("B2")
def test_b2_deletions_of_an_earlier_term_do_not_leave_in_a_later_one() -> None:
    few = Few("ab")
    numbers = range(BLOCK, BLOCK + MANY)
    for number in numbers:
        few.block("ab", expected=1, number=number)
    few.work()
    assert len(few.ordered()) == MANY
    few.state.demote()
    for number in numbers:  # the other active has deleted the replicas that we meant to keep
        (ours,) = {"a", "b"} - {good(few, number)[number % 2]}
        few.deleted(ours, number)
    incremental_reports.activate(few.state)
    for name in "ab":
        few.confirm(name)
    few.work()
    assert few.ordered() == []
    assert all(len(good(few, number)) == 1 for number in numbers)


@pytest.mark.row("B12")
def test_b12_a_block_that_is_being_written_is_not_missing() -> None:
    few = Few("ab")
    few.edit(BlockAdded(1, BLOCK, 0, STAMP, 2, complete=False))
    told(few, "a", ReplicaState.RBW, STAMP, 0)
    few.dies("a")
    few.round()
    assert (len(few.state.needed), few.copies()) == (0, {})
    few.edit(BlockSettled(BLOCK, LENGTH, STAMP, complete=True))  # committed, and without a replica
    few.round()
    assert len(few.state.needed) == 0
    few.received("b")
    few.round()
    assert (good(few), few.state.needed.priority(slot_of(few)) is not None) == ("b", True)


def slot_of(few: Few) -> Slot:
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    return slot


@pytest.mark.row("B15")
def test_b15_what_was_deleted_while_a_datanode_was_away_goes_when_it_reports() -> None:
    few = Few("ab")
    few.block("ab", expected=2)
    few.dies("b")
    few.edit(BlocksGone((BLOCK,)))
    few.work()
    assert few.losing() == "a"
    few.nodes["b"].alive = True
    few.state.registered("b")
    few.received("b")
    few.work()
    assert few.ordered() == [("a", BLOCK, STAMP), ("b", BLOCK, STAMP)]


@pytest.mark.row("B17")
@pytest.mark.parametrize("when", ["while it is written", "once it is closed"])
def test_b17_a_replica_that_waits_for_recovery_gives_way_to_the_one_that_was_written_on(
    when: str,
) -> None:
    """DataNode b dies in the pipeline, a goes on under a new stamp; then b comes back."""
    few = Few("ab")
    few.edit(BlockAdded(1, BLOCK, 0, STAMP, 2, complete=False))
    for name in "ab":
        told(few, name, ReplicaState.RBW, STAMP, 0)
    few.edit(StampGiven(STAMP + 1))
    few.edit(BlockSettled(BLOCK, 50, STAMP + 1, complete=False))
    if when == "while it is written":
        told(few, "b", ReplicaState.RWR, STAMP, 50)
    few.received("a", stamp=STAMP + 1)
    few.edit(BlockSettled(BLOCK, LENGTH, STAMP + 1, complete=True))
    if when == "once it is closed":
        told(few, "b", ReplicaState.RWR, STAMP, 50)
    few.work()
    assert good(few) == "a"
    marks = few.state.map.corrupt_marks(slot_of(few)).values()
    assert [mark.reason for mark in marks] == [Reason.GENSTAMP_MISMATCH]
    assert few.ordered() == [("b", BLOCK, STAMP)]
    few.deleted("b")
    few.round(600.0)
    assert few.copies() == {"a": ["b"]}


@pytest.mark.row("B17")
def test_b17_a_replica_that_was_lost_while_it_was_written_is_copied_from_the_other() -> None:
    few = Few("ab")
    few.edit(BlockAdded(1, BLOCK, 0, STAMP, 2, complete=False))
    for name in "ab":
        told(few, name, ReplicaState.RBW, STAMP, 0)
    few.state.registered("b")
    few.confirm("b")  # its full report lacks the replica
    few.received("a")
    few.edit(BlockSettled(BLOCK, LENGTH, STAMP, complete=True))
    few.work()
    few.round(600.0)
    assert (good(few), few.copies(), few.state.map.corrupt_count()) == ("a", {"a": ["b"]}, 0)
    few.received("b")
    few.round()
    assert (good(few), few.losing()) == ("ab", "")

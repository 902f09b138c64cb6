"""Copies and deletions, one scenario each."""

from typing import Final

import pytest

from journal.model import TxId
from namenode_sim.blocks import incremental_reports, safemode
from namenode_sim.blocks.model import CorruptMark, Reason
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.model import Room
from namenode_sim.namespace import changes
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few

TIMEOUT: Final = 300.0


# ---- copies ----


def test_a_block_with_too_few_replicas_is_copied_once() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.round()
    assert few.copies() == {"a": ["b"]}
    assert few.scheduled("b") == 1
    few.round()
    assert few.copies() == {"a": ["b"]}, "the copy is on its way"
    few.received("b")
    few.round()
    assert few.copies() == {"a": ["b"]}
    assert len(few.redundancy.pending) == 0


def test_a_copy_rests_on_the_edits_that_were_applied() -> None:
    few = Few("abc")
    few.block("a", expected=2)
    few.round()
    (order,) = few.nodes["a"].copy_orders
    assert (order.block_id, order.cause) == (BLOCK, TxId(1))


@pytest.mark.row("B15")
def test_a_copy_that_does_not_come_is_ordered_again() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.round()
    few.nodes["a"].copy_orders.clear()
    few.round(TIMEOUT - 1)
    assert few.copies() == {}
    few.round(1)
    assert few.copies() == {"a": ["b"]}
    assert (few.redundancy.timeouts, few.scheduled("b")) == (1, 1)


@pytest.mark.row("B15")
def test_a_replica_with_another_stamp_is_not_the_one_on_its_way() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.round()
    few.received("b", stamp=STAMP - 1)
    few.work()
    assert len(few.redundancy.pending) == 1


@pytest.mark.parametrize("replaced", [False, True], ids=["dead", "its address is another's now"])
def test_a_copy_to_a_datanode_that_is_gone_is_not_waited_for(replaced: bool) -> None:
    few = Few("abc")
    few.block("a", expected=2)
    few.round()
    (first,) = few.targets()
    few.nodes["a"].copy_orders.clear()
    few.dies(first)
    if replaced:
        del few.cluster.nodes[first]
    few.round()
    assert few.targets() == ["b" if first == "c" else "c"]


def test_a_written_block_waits_for_the_rest_of_its_pipeline() -> None:
    few = Few("abc")
    few.edit(changes.BlockAdded(1, BLOCK, 0, STAMP, 3, complete=False))
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    few.cluster.expect(slot, [few.storages[name] for name in "abc"])
    few.received("a")
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP, complete=True))
    few.work()
    few.round()
    assert (few.copies(), len(few.redundancy.pending)) == ({}, 1)
    few.received("b")
    few.round(TIMEOUT)
    assert few.copies() in ({"a": ["c"]}, {"b": ["c"]}), "the third one never came"


@pytest.mark.row("B12")
def test_a_busy_datanode_is_no_source_but_for_the_last_replica() -> None:
    few = Few("abcd")
    for number in range(3):
        few.block("ab", expected=3, number=BLOCK + number)
    for number in range(3, 9):
        few.block("a", expected=2, number=BLOCK + number)
    for _ in range(9):
        few.round()
    assert len(few.nodes["a"].copy_orders) == 4
    assert len(few.nodes["b"].copy_orders) == 2


@pytest.mark.row("B12")
def test_nothing_is_copied_in_safe_mode() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.cluster.safe_mode = safemode.enter(few.cluster.safe_mode)
    few.round()
    assert few.copies() == {}


@pytest.mark.row("B14")
def test_a_block_on_one_rack_is_copied_to_another_and_then_leaves_the_first() -> None:
    few = Few("abc", {"c": "/other"})
    slot = few.block("ab", expected=2)
    few.round()
    assert few.state.needed.priority(slot) is None
    assert few.targets() == ["c"]
    few.received("c")
    few.round()
    assert few.losing() in {"a", "b"}


def test_a_missing_block_is_counted_and_not_copied() -> None:
    few = Few("ab")
    slot = few.block("a", expected=2)
    few.dies("a")
    few.round()
    assert few.state.needed.priority(slot) is Priority.MISSING
    assert few.copies() == {}


def test_a_deleted_block_is_in_no_queue() -> None:
    few = Few("ab")
    few.block("a", expected=2)
    few.work()
    few.edit(changes.BlocksGone((BLOCK,)))
    few.round()
    assert (len(few.state.needed), few.copies()) == (0, {})


# ---- the role ----


def test_a_standby_judges_nothing() -> None:
    few = Few("ab")
    few.state.demote()
    few.block("a", expected=2)
    few.round()
    assert (len(few.state.needed), few.copies(), few.state.rechecks.is_started()) == (0, {}, False)


def test_nothing_is_judged_in_the_safe_mode_of_the_start() -> None:
    few = Few("ab")
    few.state.demote()
    few.state.set_starting(starting=True)
    incremental_reports.activate(few.state)
    slot = few.block("a", expected=2)
    few.round()
    assert few.copies() == {}
    few.state.set_starting(starting=False)
    few.round()
    few.round()
    assert few.copies() == {"a": ["b"]}
    assert few.state.needed.priority(slot) is None


@pytest.mark.row("B2")
def test_a_new_active_scans_all_blocks_and_forgets_the_former_orders() -> None:
    few = Few("abc")
    few.block("abc", expected=1)
    short = few.block("a", expected=2, number=BLOCK + 1)
    few.work()
    assert len(few.losing()) == 2
    few.state.demote()
    assert (few.losing(), len(few.state.needed), *few.state.map.pending_deletions) == ("", 0)
    incremental_reports.activate(few.state)
    few.work()
    assert few.state.needed.priority(short) is Priority.HIGHEST
    assert few.losing() == "", "nothing goes on the word of unconfirmed storages"
    for name in "abc":
        few.confirm(name)
    few.work()
    assert len(few.losing()) == 2


# ---- excess ----


def test_a_lower_replication_deletes_at_once() -> None:
    few = Few("abc")
    slot = few.block("abc", expected=3)
    few.work()
    few.edit(changes.ReplicationSet((BLOCK,), 1))
    few.work()
    assert len(few.losing()) == 2
    assert few.state.needed.priority(slot) is None
    few.round()
    assert len(few.losing()) == 2, "what is to go counts no more"


def test_what_is_to_go_does_not_count() -> None:
    few = Few("abc")
    slot = few.block("abc", expected=3)
    few.edit(changes.ReplicationSet((BLOCK,), 2))
    few.work()
    few.dies("a" if few.losing() != "a" else "b")
    few.work()
    assert few.state.needed.priority(slot) is Priority.HIGHEST


def test_confirmed_storages_that_suffice_need_not_wait_for_the_others() -> None:
    few = Few("abcd")
    slot = few.block("abcd", expected=2)
    few.unconfirmed("d")
    few.work()
    assert len(few.losing()) == 1
    assert "d" not in few.losing()
    assert slot in few.state.rechecks.postponed
    few.confirm("d")
    few.work()
    assert len(few.losing()) == 2
    assert slot not in few.state.rechecks.postponed


def test_a_full_report_that_lacks_the_replica_settles_a_postponed_block() -> None:
    few = Few("ab")
    slot = few.block("ab", expected=1)
    few.unconfirmed("b")
    few.work()
    assert (few.losing(), slot in few.state.rechecks.postponed) == ("", True)
    few.deleted("b")
    few.confirm("b")
    few.work()
    assert (few.losing(), slot in few.state.rechecks.postponed) == ("", False)


@pytest.mark.row("B15")
def test_an_order_that_is_not_carried_out_is_repeated() -> None:
    few = Few("ab")
    few.block("ab", expected=1)
    few.work()
    name = few.losing()
    number = few.storages[name].held.number
    assert few.state.invalidations.take_due(number, TxId(1), 10) == [(BLOCK, STAMP)]
    few.round(3600)
    assert few.losing() == ""
    assert not few.storages[name].held.needs_full_report
    few.round(1)
    assert few.losing() == name
    # Where there is nothing to delete the DataNode sends nothing: only a report says so.
    assert few.storages[name].held.needs_full_report


@pytest.mark.row("B15")
def test_a_datanode_that_registers_anew_gets_its_orders_again() -> None:
    few = Few("ab")
    few.block("ab", expected=1)
    few.work()
    name = few.losing()
    few.state.invalidations.take_due(few.storages[name].held.number, TxId(1), 10)
    few.state.registered(name)
    few.work()
    assert few.losing() == name


def test_an_append_takes_orders_back() -> None:
    few = Few("ab")
    slot = few.block("ab", expected=1)
    few.work()
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP + 1, complete=False))
    few.work()
    found = few.losing(), few.state.needed.priority(slot), *few.state.map.pending_deletions
    assert found == ("", None)


# ---- corrupt replicas ----

CORRUPT: Final = {
    "enough others": ("abcd", 3, "abcd", "d", "d"),
    "a copy must come first": ("abcd", 3, "abc", "c", ""),
    "there is no other DataNode": ("abc", 3, "abc", "c", "c"),
    "there is no other DataNode, and one goes at a time": ("abcd", 4, "abcd", "cd", "c"),
    "the last good one of two": ("ab", 2, "ab", "b", "b"),
    "one good one, and another damaged one stays": ("abc", 3, "abc", "bc", "b"),
    "more than enough in all": ("abcdef", 3, "abcd", "cd", "c"),
    "none is good": ("abc", 3, "abc", "abc", ""),
    "only one, and bad": ("abc", 1, "a", "a", ""),
}
"""DataNodes, expected, where the block is, damaged ones, and those to be deleted."""


@pytest.mark.row("B17")
@pytest.mark.parametrize(
    ("nodes", "expected", "on", "damaged", "deleted"), CORRUPT.values(), ids=CORRUPT
)
def test_corrupt_replicas(nodes: str, expected: int, on: str, damaged: str, deleted: str) -> None:
    few = Few(nodes)
    slot = few.block(on, expected)
    few.damaged(slot, *damaged)
    few.work()
    assert few.losing() == deleted


@pytest.mark.row("B17")
def test_a_corrupt_replica_goes_when_its_copy_has_come() -> None:
    few = Few("abcd")
    slot = few.block("abc", expected=3)
    few.damaged(slot, "c")
    few.round()
    assert (few.losing(), few.targets()) == ("", ["d"])
    few.received("d")
    few.work()
    assert few.losing() == "c"


def test_a_replica_that_fell_out_of_the_pipeline_goes_at_once() -> None:
    few = Few("abcd")
    slot = few.block("ab", expected=3)
    few.state.mark_corrupt(
        slot, few.storages["c"].held, CorruptMark(Reason.GENSTAMP_MISMATCH, STAMP - 1)
    )
    few.work()
    assert few.ordered() == [("c", BLOCK, STAMP - 1)]


def test_a_corrupt_replica_makes_room_once_the_last_datanode_without_one_is_dead() -> None:
    few = Few("abcd")
    slot = few.block("abc", expected=3)
    few.storages["d"].room = Room()
    few.damaged(slot, "c")
    few.round()
    assert few.losing() == ""
    few.dies("d")
    few.round()
    assert few.losing() == "c"


def test_a_damaged_replica_goes_by_the_stamp_that_a_recovery_gave_it() -> None:
    """A DataNode deletes no replica that is newer than in its order."""
    few = Few("abcd")
    slot = few.block("abc", expected=3)
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP, complete=False))
    few.damaged(slot, "a")
    few.edit(changes.BlockSettled(BLOCK, LENGTH, STAMP + 1, complete=True))
    for name in "abc":
        few.received(name, stamp=STAMP + 1)
    few.round()
    few.received("d", stamp=STAMP + 1)
    few.work()
    assert few.ordered() == [("a", BLOCK, STAMP + 1)]


@pytest.mark.row("B12")
def test_a_corrupt_replica_waits_for_unconfirmed_storages() -> None:
    few = Few("abcd")
    slot = few.block("abcd", expected=3)
    few.unconfirmed("a")
    few.damaged(slot, "d")
    few.work()
    assert (few.losing(), slot in few.state.rechecks.postponed) == ("", True)
    few.confirm("a")
    few.work()
    assert few.losing() == "d"


def test_a_replica_that_is_good_again_stays() -> None:
    few = Few("abcd")
    slot = few.block("abc", expected=3)
    mark = CorruptMark(Reason.GENSTAMP_MISMATCH, STAMP - 1)
    few.state.mark_corrupt(slot, few.storages["d"].held, mark)
    few.work()
    assert few.losing() == "d"
    few.dies("a")
    few.received("d")
    few.work()
    assert len(few.state.map.pending_deletions) == 0
    assert few.state.needed.priority(slot) is None

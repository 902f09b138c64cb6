"""What becomes of a block whose replica a balancer or a mover has moved."""

import pytest

from journal.model import TxId
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.datanodes.redundancy import note_hint
from tests.namenode_sim.datanodes.few_nodes import BLOCK, STAMP, Few


@pytest.mark.row("B12")
def test_the_datanode_that_a_balancer_relieves_loses_its_replica() -> None:
    few = Few("abcd")
    few.block("abc", expected=3)
    few.work()
    few.received("d")
    note_hint(few.cluster, BLOCK, DeleteHint("b", "d"))
    few.work()
    assert few.losing() == "b"


def test_a_hint_deletes_nothing_before_the_new_replica_counts() -> None:
    few = Few("abcd")
    few.block("abc", expected=3)
    few.work()
    note_hint(few.cluster, BLOCK, DeleteHint("b", "d"))
    few.work()
    assert few.losing() == ""
    few.received("d", stamp=STAMP - 1)
    note_hint(few.cluster, BLOCK, DeleteHint("b", "d"))
    few.work()
    assert "b" not in few.losing(), "the new one is not good"


@pytest.mark.parametrize("sent", [True, False], ids=["its order was sent", "it was not"])
def test_a_replica_that_is_to_be_deleted_stays_so_on_another_storage(sent: bool) -> None:
    """Let a mover put it onto another storage before the order comes to its DataNode."""
    few = Few("ab")
    slot = few.block("ab", expected=1)
    few.work()
    name = few.losing()
    other = few.cluster.add_storage(few.nodes[name], f"DS-{name}-2")
    other.held.confirmed = True
    if sent:
        number = few.storages[name].held.number
        assert few.state.invalidations.take_due(number, TxId(9), 10) == [(BLOCK, STAMP)]
    few.storages[name] = other
    few.received(name)
    few.work()
    assert few.state.map.is_pending_deletion(slot, other.held.number)
    assert few.losing() == ("" if sent else name), "no other replica goes in its place"
    few.deleted(name)
    few.work()
    assert len(few.state.map.storages_of(slot)) == 1
    assert len(list(few.state.map.pending_deletions)) == 0


def test_a_copy_that_comes_while_an_older_replica_is_to_be_deleted_stays() -> None:
    """Let the order name the older stamp: the new copy on another storage is none of its."""
    few = Few("abc")
    slot = few.block("ab", expected=3)
    few.work()
    few.received("c", stamp=STAMP - 1)
    few.work()
    old = few.storages["c"]
    assert few.state.map.is_pending_deletion(slot, old.held.number)
    other = few.cluster.add_storage(few.nodes["c"], "DS-c-2")
    other.held.confirmed = True
    few.storages["c"] = other
    few.received("c")
    few.work()
    assert not few.state.map.is_pending_deletion(slot, other.held.number)
    assert len(few.state.map.storages_of(slot)) == 3
    assert len(list(few.state.map.pending_deletions)) == 0

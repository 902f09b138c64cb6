"""Which DataNode sends a block, and which ones get it."""

import pytest

from journal.model import TxId
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.model import CopyOrder, Room, StorageType
from tests.namenode_sim.datanodes.few_nodes import BLOCK, Few


def test_all_replicas_that_lack_are_made_by_one_order() -> None:
    few = Few("abc")
    few.block("a", expected=3)
    few.round()
    assert few.copies() in ({"a": ["bc"]}, {"a": ["cb"]})


def test_a_copy_goes_to_the_type_of_storage_that_stands_in_for_the_policys() -> None:
    """A new block would not: hot data is written to disks alone, and copied to archives."""
    few = Few("ab")
    few.storages["b"].type = StorageType.ARCHIVE
    few.block("a", expected=2)
    few.round()
    assert few.copies() == {"a": ["b"]}


def test_nothing_is_ordered_where_no_datanode_has_room() -> None:
    few = Few("ab")
    few.storages["b"].room = Room()
    few.block("a", expected=2)
    few.round()
    assert few.copies() == {}


@pytest.mark.row("B14")
def test_a_block_that_lacks_only_a_rack_is_not_copied_within_its_rack() -> None:
    few = Few("abcd", {"d": "/other"})
    slot = few.block("ab", expected=2)
    few.dies("d")
    few.round()
    assert few.state.needed.priority(slot) is Priority.BADLY_DISTRIBUTED
    assert few.copies() == {}


def test_a_datanode_that_is_to_delete_its_replica_gets_no_copy() -> None:
    few = Few("ab")
    slot = few.block("ab", expected=2)
    few.state.order_deletion(slot, few.storages["b"].held.number, few.now)
    few.round()
    assert few.state.needed.priority(slot) is Priority.HIGHEST
    assert few.copies() == {}


def test_a_dead_datanode_is_no_source() -> None:
    """Its replicas are forgotten piece by piece."""
    few = Few("abc")
    slot = few.block("a", expected=2)
    few.nodes["a"].alive = False
    few.round()
    assert few.state.needed.priority(slot) is Priority.HIGHEST
    assert few.copies() == {}


def test_the_third_replica_goes_to_the_rack_of_the_one_that_is_copied() -> None:
    few = Few("abcd", {"b": "/s", "d": "/s"})
    few.block("ab", expected=3)
    few.nodes["a"].copy_orders.extend([CopyOrder(0, (), TxId(0))] * 2)  # it is busy
    few.round()
    assert few.copies()["b"] == ["d"]


@pytest.mark.row("B15")
def test_an_order_that_has_not_left_in_time_is_taken_back() -> None:
    """Its DataNode is busy with others; another one may make the copy."""
    few = Few("ab")
    few.block("a", expected=2)
    few.round()
    other = CopyOrder(BLOCK + 1, (), TxId(0))
    few.nodes["a"].copy_orders.append(other)
    few.round(300.0)
    first, second = few.nodes["a"].copy_orders
    assert (first, second.block_id) == (other, BLOCK)

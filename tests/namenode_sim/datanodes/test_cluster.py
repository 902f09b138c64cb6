"""What a cluster knows when it begins, belongs to a namespace, or loses a storage."""

from random import Random

import pytest

from journal.model import TxId
from namenode_sim.blocks.model import Location, ReplicaState
from namenode_sim.blocks.safemode import Off, Pending, SafeMode, SafeModeRules
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.storage_policies import BY_NAME
from namenode_sim.edits import ops
from namenode_sim.namespace.changes import BlockAdded
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.datanodes.few_nodes import BLOCK, LENGTH, STAMP, Few
from tests.namenode_sim.namespace.given_edits import B1, B2, B3, add, after, file, mkdir


def cluster(rules: SafeModeRules | None = None) -> Cluster:
    return Cluster("BP-1", BlockState(), Random(1), rules)


def namespace() -> Namespace:
    """Build a namespace with a closed file of two blocks and an open one without any."""
    return after(mkdir("/cold"), file("/f", B1, B2), add("/cold/open"))


def test_a_new_cluster_has_a_pool_and_nothing_else() -> None:
    made = cluster()
    assert (made.pool, made.term, made.registered_by) == ("BP-1", 0, 0.0)
    assert (made.nodes, made.is_active()) == ({}, False)
    made.on_damage(BLOCK, STAMP, "a")


@pytest.mark.parametrize(
    ("rules", "startup"),
    [
        pytest.param(None, Off(), id="by default nothing but blocks is waited for"),
        pytest.param(SafeModeRules(min_datanodes=1), Pending(), id="a DataNode is waited for"),
    ],
)
def test_safe_mode_begins_by_the_rules(rules: SafeModeRules | None, startup: Off | Pending) -> None:
    made = cluster(rules)
    assert made.safe_mode == SafeMode(startup)
    made.begin_safe_mode()
    assert made.safe_mode == SafeMode(startup)
    assert made.blocks.is_starting() == isinstance(startup, Pending)


def test_edits_that_are_to_come_are_waited_for_though_nothing_is_known_of_them() -> None:
    made = cluster()
    made.await_edits()
    assert made.safe_mode == SafeMode(Pending())
    assert made.blocks.is_starting()
    made.set_safe_mode(SafeMode(Off()))
    assert (made.safe_mode.is_on(), made.blocks.is_starting()) == (False, False)


def known(made: Cluster) -> set[int]:
    return {block_id for block_id, _ in made.blocks.map.items()}


def test_a_cluster_has_the_blocks_of_its_namespace_and_follows_its_edits() -> None:
    made, names = cluster(), namespace()
    assert not made.safe_mode.is_on()
    made.belong_to(names)
    assert known(made) == {B1.block_id, B2.block_id}
    assert made.safe_mode == SafeMode(Pending())
    names.apply(TxId(names.last_applied + 1), ops.AddBlock("/cold/open", None, B3))
    assert known(made) == {B1.block_id, B2.block_id, B3.block_id}
    assert made.blocks.applied == names.last_applied


def test_blocks_are_placed_by_the_policy_of_their_file() -> None:
    made, names = cluster(), namespace()
    names.apply(TxId(names.last_applied + 1), ops.SetStoragePolicy("/cold", 2))
    cold, hot = names.tree.node("/cold/open").id, names.tree.node("/f").id
    assert made.policy_of(cold) == BY_NAME["HOT"]  # it has no namespace yet
    made.belong_to(names)
    policies = [made.policy_of(number).name for number in (cold, hot, hot + 1000)]
    assert policies == ["COLD", "HOT", "HOT"]


def test_a_storage_that_is_removed_holds_nothing_and_its_number_is_given_again() -> None:
    few = Few("abc")
    slot = few.block("ab", 2)
    node, gone, left = few.nodes["b"], few.storages["b"], few.storages["a"]
    assert few.cluster.find_place(gone.held.number) == (node, gone)
    few.cluster.remove_storage(node, gone)
    assert list(few.state.map.storages_of(slot)) == [left.held.number]
    assert few.cluster.find_place(gone.held.number) is None
    assert node.storages == {}
    new = few.cluster.add_storage(node, "DS-new")
    assert new.held.number == gone.held.number
    assert few.cluster.place(new.held.number) == (node, new)
    assert few.cluster.add_storage(node, "DS-new") is new


def test_what_is_expected_of_a_block_is_empty_replicas_of_its_stamp() -> None:
    few = Few("abc")
    few.edit(BlockAdded(1, BLOCK, LENGTH, STAMP, 2, complete=False))
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    for names in ("ab", "c"):
        places = [few.storages[name] for name in names]
        few.cluster.expect(slot, places)
        assert few.state.map.construction(slot).locations == tuple(
            Location(place.held.number, ReplicaState.RBW, STAMP, 0) for place in places
        )

"""Replicas on DataNodes that leave service: counted, copied, and never given up too early."""

from typing import Final

import pytest

from namenode_sim.blocks.model import Location, ReplicaState
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanode_protocol.leaving import Leaving, LeavingRules, Progress
from namenode_sim.datanodes.model import AdminState, Room
from namenode_sim.namespace.changes import BlockAdded
from tests.namenode_sim.datanodes.few_nodes import BLOCK, STAMP, Few

D_ING, D_ED = AdminState.DECOMMISSION_INPROGRESS, AdminState.DECOMMISSIONED
M_ING, M_IN = AdminState.ENTERING_MAINTENANCE, AdminState.IN_MAINTENANCE


def is_done(few: Few, name: str, *, replication: int = 3, least: int = 1) -> bool:
    """Look at a DataNode's blocks, and return whether it may go."""
    rules = LeavingRules(replication=replication, maintained_least=least)
    leaving, progress = Leaving(few.cluster, few.redundancy, rules), Progress()
    for _ in leaving.look(few.nodes[name], progress):
        pass
    return leaving.may_go(few.nodes[name], progress)


def shown(progress: Progress) -> tuple[int | None, bool]:
    return progress.left, progress.clean


def sets(few: Few, state: AdminState, *names: str) -> None:
    for name in names:
        few.cluster.set_admin(few.nodes[name], state)
    few.work()


@pytest.mark.row("B21")
def test_a_replica_of_one_that_is_decommissioned_is_copied_elsewhere_and_stays() -> None:
    few = Few("abcd")
    slot = few.block("abc", expected=3)
    sets(few, D_ING, "a")
    assert few.state.needed.priority(slot) is Priority.LOW
    assert not is_done(few, "a")
    few.round()
    assert few.copies() == {"a": ["d"]}
    few.received("d")
    few.work()
    assert few.state.needed.priority(slot) is None
    assert few.losing() == ""
    assert is_done(few, "a")


@pytest.mark.row("B21")
def test_it_is_excess_once_its_datanode_serves_again() -> None:
    few = Few("abcd")
    few.block("abcd", expected=4)
    sets(few, D_ING, "a")
    slot = few.block("abcd", expected=3, number=BLOCK + 1)
    few.work()
    assert few.losing() == ""
    sets(few, AdminState.NORMAL, "a")
    assert few.losing() in set("abcd")
    assert few.state.needed.priority(slot) is None


@pytest.mark.parametrize("state", [D_ING, M_ING])
def test_one_that_leaves_is_the_source_before_others(state: AdminState) -> None:
    few = Few("abcd")
    few.block("abc", expected=4)
    sets(few, state, "b")
    few.round()
    assert few.copies() == {"b": ["d"]}


def test_one_that_has_left_is_the_last_source() -> None:
    few = Few("abc")
    few.block("ab", expected=2)
    sets(few, D_ED, "b")
    few.round()
    assert few.copies() == {"a": ["c"]}


@pytest.mark.row("B21")
def test_the_last_replica_on_one_that_has_left_is_copied_first_of_all() -> None:
    few = Few("ab")
    slot = few.block("a", expected=1)
    sets(few, D_ED, "a")
    assert few.state.needed.priority(slot) is Priority.HIGHEST
    few.round()
    assert few.copies() == {"a": ["b"]}


@pytest.mark.parametrize("state", [D_ING, D_ED, M_ING, M_IN])
def test_one_that_is_out_of_service_gets_no_copy(state: AdminState) -> None:
    few = Few("abc")
    few.block("a", expected=2)
    sets(few, state, "b")
    few.round()
    assert few.copies() == {"a": ["c"]}


@pytest.mark.row("B21")
def test_maintenance_copies_only_what_would_be_nowhere_else() -> None:
    few = Few("abc")
    slot, alone = few.block("ab", expected=2), few.block("a", expected=1, number=BLOCK + 1)
    sets(few, M_ING, "a")
    assert few.state.needed.priority(slot) is None
    assert few.state.needed.priority(alone) is Priority.HIGHEST
    assert not is_done(few, "a")
    few.round()
    few.received(few.targets()[0], BLOCK + 1)
    few.work()
    assert is_done(few, "a")


@pytest.mark.row("B21")
def test_the_replicas_of_one_that_dies_in_maintenance_are_waited_for() -> None:
    few = Few("abc")
    slot = few.block("abc", expected=3)
    sets(few, M_IN, "a")
    few.nodes["a"].alive = False
    few.cluster.recheck(few.nodes["a"])
    few.round()
    assert few.state.needed.priority(slot) is None
    assert few.copies() == {}
    few.dies("b")
    few.round()
    assert few.state.needed.priority(slot) is Priority.HIGHEST


def test_one_in_maintenance_is_no_source() -> None:
    few = Few("abc")
    few.block("a", expected=2)
    sets(few, M_IN, "a")
    few.round()
    assert few.copies() == {}


def test_a_corrupt_replica_makes_room_where_only_leaving_datanodes_are_without_one() -> None:
    few = Few("abc")
    slot = few.block("ab", expected=2)
    few.received("c")
    few.damaged(slot, "b")
    sets(few, D_ED, "c")
    few.work()
    assert few.losing() == "b" or few.copies() != {}


@pytest.mark.row("B21")
def test_no_replica_is_deleted_that_only_a_leaving_one_makes_superfluous() -> None:
    few = Few("abcd")
    sets(few, D_ING, "a")
    few.block("abcd", expected=3)
    few.work()
    assert few.losing() == ""


@pytest.mark.row("B21")
def test_a_replica_on_an_unconfirmed_storage_makes_none_safe() -> None:
    """A former active may have ordered its deletion."""
    few = Few("abc")
    few.block("abc", expected=2)
    sets(few, D_ING, "a")
    few.unconfirmed("b", "c")
    assert not is_done(few, "a")
    few.confirm("b")
    assert not is_done(few, "a")
    few.confirm("c")
    assert is_done(few, "a")


def test_one_that_has_not_reported_all_storages_does_not_go() -> None:
    few = Few("abc")
    few.block("bc", expected=2)
    sets(few, D_ING, "a")
    few.unconfirmed("a")
    assert not is_done(few, "a")
    few.confirm("a")
    assert is_done(few, "a")


def test_more_replicas_than_the_default_are_not_waited_for() -> None:
    few = Few("abcd")
    few.block("abcd", expected=4)
    sets(few, D_ING, "a")
    assert is_done(few, "a", replication=3)
    assert not is_done(few, "a", replication=4)


RACKS: Final = {"a": "/x", "b": "/x", "c": "/x", "d": "/y", "e": "/y"}


@pytest.mark.row("B14")
def test_the_last_replica_on_a_rack_is_waited_for_while_the_rack_has_others() -> None:
    few = Few("abcde", RACKS)
    few.block("abd", expected=2)
    few.deleted("a")
    few.work()
    sets(few, D_ING, "d")
    few.received("c")
    few.work()
    assert not is_done(few, "d")
    few.received("e")
    few.work()
    assert is_done(few, "d")


def test_where_the_rack_has_no_other_there_is_no_waiting_for_it() -> None:
    few = Few("abcd", RACKS)
    few.block("abd", expected=3)
    sets(few, D_ING, "d")
    few.received("c")
    few.work()
    assert is_done(few, "d", replication=4)


@pytest.mark.row("B21")
def test_an_open_block_needs_the_least_number_of_others_in_its_pipeline() -> None:
    few = Few("ab", minimum=1)
    few.edit(BlockAdded(1, BLOCK, 0, STAMP, 2, complete=False))
    slot = few.state.map.find(BLOCK)
    assert slot is not None

    def expect(*names: str) -> None:
        few.state.expect(
            slot,
            tuple(
                Location(few.storages[name].held.number, ReplicaState.RBW, STAMP, 0)
                for name in names
            ),
        )

    expect("a")
    sets(few, D_ING, "a")
    assert not is_done(few, "a")
    expect("a", "b")
    assert is_done(few, "a")
    few.nodes["b"].alive = False
    assert not is_done(few, "a")


@pytest.mark.row("B21")
def test_a_dead_one_goes_once_nothing_lacks_replicas() -> None:
    few = Few("abc")
    few.block("ab", expected=2)
    few.storages["c"].room = Room()
    sets(few, D_ING, "a")
    few.dies("a")
    few.round()
    assert not is_done(few, "a")
    few.received("c")
    few.work()
    assert is_done(few, "a")


def test_what_was_not_safe_is_looked_at_first_and_everything_once_more_at_the_end() -> None:
    few = Few("abc")
    few.block("ab", expected=2)
    few.block("a", expected=2, number=BLOCK + 1)
    sets(few, D_ING, "a")
    rules, progress = LeavingRules(replication=1), Progress()
    leaving = Leaving(few.cluster, few.redundancy, rules)
    assert sum(leaving.look(few.nodes["a"], progress)) == 2
    assert shown(progress) == (1, False)
    assert sum(leaving.look(few.nodes["a"], progress)) == 1
    few.received("c", BLOCK + 1)
    few.deleted("b")  # what was safe is so no more
    few.work()
    assert sum(leaving.look(few.nodes["a"], progress)) == 1 + 2
    assert shown(progress) == (1, False)
    few.received("b")
    few.confirm("b")  # its news might be older than that of the deletion
    few.work()
    sum(leaving.look(few.nodes["a"], progress))
    assert shown(progress) == (0, True)


def test_a_block_whose_replica_is_not_there_any_more_needs_no_look() -> None:
    few = Few("ab")
    few.block("a", expected=1)
    sets(few, D_ING, "a")
    leaving, progress = Leaving(few.cluster, few.redundancy, LeavingRules()), Progress()
    sum(leaving.look(few.nodes["a"], progress))
    assert progress.left == 1
    few.deleted("a")
    few.work()
    sum(leaving.look(few.nodes["a"], progress))
    assert progress.clean


def test_after_a_takeover_the_blocks_of_those_that_leave_are_checked() -> None:
    """By their number of replicas alone they look as they should."""
    few = Few("abc")
    slot = few.block("ab", expected=2)
    few.state.demote()
    few.cluster.set_admin(few.nodes["a"], D_ING)
    few.state.activate()
    for name in "abc":
        few.confirm(name)
    few.work()
    assert few.state.needed.priority(slot) is Priority.HIGHEST


def test_nothing_is_copied_or_deleted_before_it_is_known_who_leaves() -> None:
    few = Few("abc")
    few.state.demote()
    few.cluster.hosts_known = False
    few.state.activate()
    for name in "abc":
        few.confirm(name)
    few.block("abc", expected=2)
    few.work()
    assert few.losing() == ""
    assert not few.state.rechecks.is_started()
    few.cluster.hosts_known = True
    few.work()
    assert len(few.losing()) == 1


def test_counts_of_what_is_required() -> None:
    few = Few("abcde")
    slot = few.block("abcde", expected=5)
    few.cluster.set_admin(few.nodes["a"], D_ING)
    few.cluster.set_admin(few.nodes["b"], D_ED)
    few.cluster.set_admin(few.nodes["c"], M_ING)
    few.cluster.set_admin(few.nodes["d"], M_IN)
    found = few.redundancy.assess(slot).counts
    names = {
        what: [few.cluster.place(number)[0].id.uuid for number in getattr(found, what)]
        for what in ("live", "leaving", "left", "maintained", "away")
    }
    assert names == {
        "live": ["e"], "leaving": ["a"], "left": ["b"], "maintained": ["c"], "away": ["d"],
    }  # fmt: skip
    assert [found.required(expected, 1) for expected in (1, 2, 3, 5)] == [1, 1, 1, 3]
    assert [found.required(expected, 2) for expected in (1, 2, 3)] == [1, 2, 2]
    assert found.required(2, 0) == 0
    few.nodes["c"].alive = False
    assert len(few.redundancy.assess(slot).counts.away) == 2


def test_a_replica_that_is_to_be_deleted_does_not_come_back_after_a_maintenance() -> None:
    few = Few("abc")
    slot = few.block("ab", expected=2)
    few.state.order_deletion(slot, few.storages["a"].held.number, few.now)
    sets(few, M_IN, "a")
    assert few.state.needed.priority(slot) is Priority.HIGHEST
    few.round()
    assert few.copies() == {"b": ["c"]}


def test_what_fell_out_of_a_pipeline_makes_an_open_block_not_safe() -> None:
    few = Few("ab")
    few.edit(BlockAdded(1, BLOCK, 0, STAMP, 2, complete=False))
    slot = few.state.map.find(BLOCK)
    assert slot is not None
    few.state.expect(
        slot,
        tuple(
            Location(few.storages[name].held.number, ReplicaState.RBW, stamp, 0)
            for name, stamp in (("a", STAMP), ("b", STAMP - 1))
        ),
    )
    sets(few, D_ING, "a")
    assert not is_done(few, "a")


@pytest.mark.row("B21")
@pytest.mark.parametrize("comes_again", [False, True])
def test_what_is_reported_after_the_look_is_looked_at_before_it_goes(comes_again: bool) -> None:
    """It has registered and is looked at, and its first report brings the only replica."""
    few = Few("ab")
    few.edit(BlockAdded(1, BLOCK, 100, STAMP, 1, complete=True))
    sets(few, D_ING, "a")
    leaving, progress = Leaving(few.cluster, few.redundancy, LeavingRules()), Progress()
    if not comes_again:
        few.unconfirmed("a")
    assert all(leaving.look(few.nodes["a"], progress))
    assert leaving.may_go(few.nodes["a"], progress) is comes_again
    if comes_again:
        few.state.registered("a")
        few.nodes["a"].registrations += 1
    few.received("a")
    few.confirm("a")
    assert not leaving.may_go(few.nodes["a"], progress)
    assert all(leaving.look(few.nodes["a"], progress))
    assert progress.left == 1

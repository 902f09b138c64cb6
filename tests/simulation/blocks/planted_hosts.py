"""Bugs of racks, hosts files, decommissioning and maintenance."""

from dataclasses import replace
from typing import Any, Final

from journal.model import TxId
from namenode_sim.blocks.model import Slot
from namenode_sim.datanode_protocol import hosts
from namenode_sim.datanode_protocol.hosts import Hosts
from namenode_sim.datanode_protocol.keeper import Keeper
from namenode_sim.datanode_protocol.leaving import Leaving, Progress
from namenode_sim.datanodes import reconstruction, redundancy_check
from namenode_sim.datanodes.membership.admin import AFTER
from namenode_sim.datanodes.model import AdminState, Node
from namenode_sim.datanodes.redundancy import Redundancy
from tests.simulation.engine.mutants import Planted, replacing

_TESTS: Final = "tests/namenode_sim/datanode_protocol/"
_ALL_DURABLE: Final = TxId(1 << 62)
bug: Final = Planted(2_000)

bug.add(
    "replicas on DataNodes that leave count as live",
    replacing(reconstruction, "_service", lambda _node: "live"),
)
bug.add(
    "a DataNode goes by edits that are not durable",
    replacing(Keeper, "_durable", lambda _self: _ALL_DURABLE),
    killer=_TESTS + "test_hosts.py::test_a_datanode_does_not_go_by_an_edit_that_is_not_durable",
    why="files must come to want less in the second in which the active cannot write",
)


@bug.killed_by(
    _TESTS + "test_hosts.py::test_a_new_active_reads_the_files_before_it_copies_or_deletes",
    why="few worlds have a takeover in the seconds in which it matters",
)
@bug.replacing("the hosts files are not read at a takeover", Hosts, "activated")
def files_not_read(really: Any, self: Hosts) -> None:
    read, self.read = self.read, None
    really(self)
    self.read = read


bug.add(
    "what a former active had proven is not proven anew",
    replacing(hosts, "unproven_state", lambda state, **_: state),
)


@bug.killed_by(
    _TESTS + "test_leaving.py::test_a_replica_on_an_unconfirmed_storage_makes_none_safe",
    why="few worlds have a takeover in the seconds in which it matters",
)
@bug.replacing("replicas of unconfirmed storages make blocks safe", Leaving, "_stays")
def unconfirmed_stays(self: Leaving, number: Any) -> bool:
    node, _ = self.cluster.place(number)
    return node.alive and node.admin is AdminState.NORMAL


@bug.killed_by(
    _TESTS + "test_leaving.py::test_an_open_block_needs_the_least_number_of_others_in_its_pipeline",
    why="few blocks are written on one DataNode as it leaves",
)
@bug.replacing("a DataNode goes with what is written on it alone", Leaving, "_is_safe")
def open_blocks_are_safe(really: Any, self: Leaving, node: Node, slot: Slot) -> bool:
    is_open = self.cluster.blocks.map.find_construction(slot) is not None
    return is_open or really(self, node, slot)


@bug.replacing("a DataNode goes once it was looked at", Leaving, "may_go")
def looked_at_may_go(_self: Leaving, _node: Node, progress: Progress) -> bool:
    return progress.unsafe is not None


bug.add(
    "racks do not count",
    replacing(Redundancy, "_see_racks", lambda _self: None),
)


@bug.replacing("one that has served again is trusted at once", Hosts, "_set")
def trusted_at_once(self: Hosts, node: Node, state: AdminState) -> None:
    if state is not node.admin:
        self.progress.pop(node.id.uuid, None)
        self._cluster.set_admin(node, state)


@bug.killed_by(
    _TESTS + "test_hosts.py::"
    "test_one_that_a_former_active_let_go_proves_nothing_when_it_serves_again",
    why="it serves again in the seconds that its proof takes, and reports only after deletions",
)
@bug.replacing("one that another active let go is trusted at once", Hosts, "_set")
def trusted_in_progress(really: Any, self: Hosts, node: Node, state: AdminState) -> None:
    if state is AdminState.NORMAL and node.admin in AFTER:
        trusted_at_once(self, node, state)
    else:
        really(self, node, state)


bug.add(
    "one that was let go counts as kept as soon as maintenance is asked",
    replacing(Hosts, "_may_lack_replicas", lambda _self, _node: False),
    killer=_TESTS + "test_asked_to_stay.py::test_it_counts_as_kept_once_it_has_reported",
    why="few machines are asked into maintenance that were taken away",
)


@bug.replacing("a leaving replica makes another excess", redundancy_check, "count")
def leaving_is_spare(really: Any, cluster: Any, slot: Slot) -> Any:

    found = really(cluster, slot)
    return replace(found, live=(*found.live, *found.leaving), leaving=())


@bug.replacing("the replicas of a dead one stay after its maintenance", hosts, "asked_state")
def dead_stays_maintained(really: Any, state: AdminState, kind: Any, **more: bool) -> AdminState:
    found = really(state, kind, **more)
    assert isinstance(found, AdminState)
    return state if not more["alive"] and state.is_maintained else found

"""Bugs of moves for balancers and movers."""

from typing import Any, Final

from namenode_sim.blocks.model import Slot, Storage
from namenode_sim.blocks.recheck_queue import DeleteHint
from namenode_sim.blocks.replicas import StoredReplicas
from namenode_sim.datanode_protocol import intake
from namenode_sim.datanodes import excess_choice
from namenode_sim.datanodes.cluster import Cluster
from tests.simulation.engine.mutants import Planted

_TESTS: Final = "tests/namenode_sim/datanodes/"
bug: Final = Planted(2_000)


@bug.replacing("an order to delete ends with a change of volume", StoredReplicas, "add")
def order_ends_with_its_volume(self: StoredReplicas, slot: Slot, storage: Storage) -> None:
    if not self.cells.holds(slot, storage.number):
        self.leave_others(slot, storage)
        self.cells.add(slot, storage)


@bug.replacing("a hint is obeyed whatever else there is", intake, "note_hint")
def hint_obeyed_at_once(cluster: Cluster, block_id: int, hint: DeleteHint) -> None:
    slot = cluster.blocks.map.find(block_id)
    for number in () if slot is None else cluster.blocks.map.storages_of(slot):
        if slot is not None and cluster.place(number)[0].id.uuid == hint.to_free:
            cluster.blocks.order_deletion(slot, number, 0.0)


@bug.killed_by(
    _TESTS + "test_excess_choice.py::test_one_goes"
    "[not the only one of three racks for another of a rack]",
    why="of two racks the last replica stays by another rule, and three are more than it takes",
)
@bug.replacing("a move may cost a rack", excess_choice, "_choose_moved")
def move_costs_a_rack(fit: Any, _left: Any, hint: DeleteHint | None) -> Any:
    return next((one for one in fit if hint is not None and one.node == hint.to_free), None)

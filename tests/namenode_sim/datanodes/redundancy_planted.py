"""Bugs planted into the upkeep of replicas, each of which a random world must show."""

from dataclasses import dataclass, replace
from typing import Final

from namenode_sim.blocks import incremental_reports
from namenode_sim.blocks.blocks_map import BlocksMap
from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.recheck_queue import RecheckQueue
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes import redundancy_check
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.reconstruction import Counts, count
from namenode_sim.datanodes.redundancy import Redundancy
from tests.namenode_sim.datanodes.redundancy_world import World
from tests.simulation.engine.mutants import Planting, replacing


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and how to put it into the product."""

    name: str
    plant: Planting


def _nothing(*_arguments: object, **_named: object) -> None: ...


_activate = incremental_reports.activate


def _activate_confirmed(state: BlockState) -> None:
    confirmed = [storage for storage in state.map.storages if storage.confirmed]
    _activate(state)
    for storage in confirmed:
        storage.confirmed = True


def _only_not_checked(state: BlockState) -> None:
    postponed = list(state.rechecks.postponed)
    state.rechecks.stop()
    for slot in postponed:
        state.rechecks.postpone(slot)


def _excess_lives(cluster: Cluster, slot: Slot) -> Counts:
    counts = count(cluster, slot)
    return replace(counts, live=(*counts.live, *counts.excess))


def _corrupt_is_excess(cluster: Cluster, slot: Slot) -> Counts:
    counts = count(cluster, slot)
    return replace(counts, live=(*counts.live, *counts.corrupt))


def _goes_at_once(
    blocks: BlockState, _slot: Slot, _number: StorageNumber, live: int, _corrupt: int
) -> bool:
    return blocks.map.has_minimum(live)


def _goes_always(*_arguments: object) -> bool:
    return True


def _stamp_of_the_block(blocks: BlocksMap, slot: Slot, _number: StorageNumber) -> int:
    return blocks.block(slot).stamp


def _expected_silently(state: BlockState, slot: Slot, expected: int) -> None:
    state._columns.expected[slot] = expected


def _skips(redundancy: Redundancy) -> None:
    redundancy._scanned = redundancy._slots()


BUGS: Final = (
    Bug("replicas are deleted on the word of unconfirmed storages",
        replacing(redundancy_check, "_doubtful", lambda *_: frozenset())),
    Bug("storages stay confirmed over an activation",
        replacing(incremental_reports, "activate", _activate_confirmed)),
    Bug("a DataNode that has still to obey the former active confirms",
        replacing(World, "is_drained", _goes_always)),
    Bug("queues and orders of the former term are kept",
        replacing(BlockState, "_clear_orders", _only_not_checked)),
    Bug("excess replicas count twice", replacing(redundancy_check, "count", _excess_lives)),
    Bug("corrupt replicas count", replacing(redundancy_check, "count", _corrupt_is_excess)),
    Bug("a corrupt replica goes before its copy has come",
        replacing(redundancy_check, "_is_superfluous", _goes_at_once)),
    Bug("a corrupt replica goes though no good one is left",
        replacing(redundancy_check, "_is_superfluous", _goes_always)),
    Bug("room is made at any price", replacing(redundancy_check, "_makes_room", _goes_always)),
    Bug("room is never made", replacing(redundancy_check, "_makes_room", lambda *_: False)),
    Bug("a replica is ordered to be deleted by the block's stamp",
        replacing(BlocksMap, "own_stamp", _stamp_of_the_block)),
    Bug("another replication has no effect",
        replacing(BlockState, "expect_replicas", _expected_silently)),
    Bug("what a report or a scan touches is not judged",
        replacing(RecheckQueue, "update", _nothing)),
    Bug("nothing is scanned after a takeover", replacing(Redundancy, "_scan", _skips)),
    Bug("copies that do not come are waited for",
        replacing(Redundancy, "_give_up_copies", _nothing)),
)  # fmt: skip

"""Bugs planted into the upkeep of replicas, each of which a random world must show."""

from dataclasses import dataclass, replace
from typing import Final

from namenode_sim.blocks import incoming
from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.redundancy import Counts, count
from namenode_sim.blocks.state import BlockState
from namenode_sim.blocks.touched import Touched
from namenode_sim.datanodes import judging
from namenode_sim.datanodes.redundancy import Redundancy
from tests.namenode_sim.datanodes.redundancy_world import World
from tests.simulation.engine.mutants import Planting, replacing


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and how to put it into the product."""

    name: str
    plant: Planting


def _nothing(*_arguments: object, **_named: object) -> None:
    """A step that is left out."""


_activate = incoming.activate


def _activate_confirmed(state: BlockState) -> None:
    confirmed = [storage for storage in state.storages if storage.confirmed]
    _activate(state)
    for storage in confirmed:
        storage.confirmed = True


def _only_not_touched(state: BlockState) -> None:
    state.touched = None


def _excess_lives(state: BlockState, slot: Slot) -> Counts:
    counts = count(state, slot)
    return replace(counts, live=(*counts.live, *counts.excess))


def _corrupt_is_excess(state: BlockState, slot: Slot) -> Counts:
    counts = count(state, slot)
    return replace(counts, live=(*counts.live, *counts.corrupt))


def _goes_at_once(
    blocks: BlockState, _slot: Slot, _number: StorageNumber, live: int, _corrupt: int
) -> bool:
    return live >= blocks.minimum


def _goes_always(*_arguments: object) -> bool:
    return True


def _stamp_of_the_block(state: BlockState, slot: Slot, _number: StorageNumber) -> int:
    return state.columns.stamps[slot]


def _expected_silently(state: BlockState, slot: Slot, expected: int) -> None:
    state.columns.expected[slot] = expected


def _skips(redundancy: Redundancy, _touched: Touched) -> None:
    redundancy._scanned = redundancy._slots()


BUGS: Final = (
    Bug("replicas are deleted on the word of unconfirmed storages",
        replacing(judging, "_doubtful", lambda *_: frozenset())),
    Bug("storages stay confirmed over an activation",
        replacing(incoming, "activate", _activate_confirmed)),
    Bug("a DataNode that has still to obey the former active confirms",
        replacing(World, "is_drained", _goes_always)),
    Bug("queues and orders of the former term are kept",
        replacing(BlockState, "judge_nothing", _only_not_touched)),
    Bug("excess replicas count twice", replacing(judging, "count", _excess_lives)),
    Bug("corrupt replicas count", replacing(judging, "count", _corrupt_is_excess)),
    Bug("a corrupt replica goes before its copy has come",
        replacing(judging, "_is_superfluous", _goes_at_once)),
    Bug("a corrupt replica goes though no good one is left",
        replacing(judging, "_is_superfluous", _goes_always)),
    Bug("room is made at any price", replacing(judging, "_makes_room", _goes_always)),
    Bug("room is never made", replacing(judging, "_makes_room", lambda *_: False)),
    Bug("a replica is ordered to be deleted by the block's stamp",
        replacing(BlockState, "_own_stamp", _stamp_of_the_block)),
    Bug("another replication has no effect",
        replacing(BlockState, "expect_replicas", _expected_silently)),
    Bug("what a report or a scan touches is not judged", replacing(Touched, "update", _nothing)),
    Bug("nothing is scanned after a takeover", replacing(Redundancy, "_scan", _skips)),
    Bug("copies that do not come are waited for",
        replacing(Redundancy, "_give_up_copies", _nothing)),
)  # fmt: skip

"""A writer reports the length of its block, which is complete once enough replicas have it."""

from typing import Final

import pytest

from namenode_sim.blocks import incremental_reports
from namenode_sim.blocks.apply_edits import commit, would_complete
from namenode_sim.blocks.model import Reason, ReplicaState, Reported, Slot, Stage
from namenode_sim.blocks.state import BlockState
from tests.namenode_sim.blocks import test_reports


def being_written(
    minimum: int, *replicas: tuple[ReplicaState, int, int]
) -> tuple[BlockState, Slot]:
    """Build an active's map with one block of stamp 1001, with these reported replicas."""
    state = BlockState(minimum=minimum)
    test_reports.after(state, test_reports.added())
    incremental_reports.activate(state)
    for number, (replica, stamp, length) in enumerate(replicas):
        storage = state.add_storage(f"n{number}", "a")
        test_reports.told(state, storage, (test_reports.B, Reported(replica, stamp, length)))
    slot = state.map.find(test_reports.B)
    assert slot is not None
    return state, slot


WHOLE: Final = test_reports.FINALIZED, 1001, 700
ENOUGH: Final = {
    "one whole replica of one": (1, [WHOLE], True),
    "one whole replica of two": (2, [WHOLE], False),
    "two whole replicas of two": (2, [WHOLE, WHOLE], True),
    "none": (1, [], False),
    "one that is being written": (1, [(test_reports.RBW, 1001, 700)], False),
    "one that a restart cut off": (1, [(test_reports.RWR, 1001, 700)], False),
    "one with a newer stamp": (1, [(test_reports.FINALIZED, 1002, 700)], False),
    "one that is shorter": (1, [(test_reports.FINALIZED, 1001, 699)], False),
    "one that is longer": (1, [(test_reports.FINALIZED, 1001, 701)], False),
    "a whole one beside a shorter one": (1, [(test_reports.FINALIZED, 1001, 699), WHOLE], True),
}


@pytest.mark.parametrize(("minimum", "replicas", "enough"), ENOUGH.values(), ids=ENOUGH)
def test_a_block_would_be_complete_with_enough_whole_replicas(
    minimum: int, replicas: list[tuple[ReplicaState, int, int]], enough: bool
) -> None:
    """``would_complete`` foretells it and changes nothing; ``commit`` then does it."""
    state, slot = being_written(minimum, *replicas)
    assert would_complete(state, slot, 700) is enough
    assert test_reports.stage_of(state) is Stage.UNDER_CONSTRUCTION
    commit(state, slot, 700)
    assert test_reports.stage_of(state) is (Stage.COMPLETE if enough else Stage.COMMITTED)


def test_replicas_are_judged_by_the_length_that_the_writer_tells() -> None:
    state, slot = being_written(1, WHOLE, (test_reports.FINALIZED, 1001, 600))
    commit(state, slot, 700)
    assert state.map.block(slot).length == 700
    assert (test_reports.good(state), test_reports.corrupt(state)) == (
        ["n0"],
        [Reason.SIZE_MISMATCH],
    )


def test_a_replica_that_comes_after_the_length_is_judged_by_it() -> None:
    state, slot = being_written(1)
    commit(state, slot, 700)
    short, whole = (state.add_storage(node, "a") for node in ("short", "whole"))
    test_reports.told(state, short, (test_reports.B, Reported(test_reports.FINALIZED, 1001, 600)))
    assert (test_reports.stage_of(state), test_reports.corrupt(state)) == (
        Stage.COMMITTED,
        [Reason.SIZE_MISMATCH],
    )
    test_reports.told(state, whole, (test_reports.B, Reported(test_reports.FINALIZED, 1001, 700)))
    assert (test_reports.stage_of(state), test_reports.good(state)) == (Stage.COMPLETE, ["whole"])

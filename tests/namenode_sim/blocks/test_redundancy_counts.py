"""How many replicas of a block count, and how urgent another one is."""

from random import Random
from typing import Final

import pytest

from namenode_sim.blocks.model import CorruptMark, Reason, Reported
from namenode_sim.blocks.needed import Priority
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.reconstruction import Counts, count, priority
from tests.namenode_sim.blocks.test_map_blocks import slot_of
from tests.namenode_sim.blocks.test_reports import FINALIZED, B, a_map, told, written

HIGHEST, VERY_LOW, LOW = Priority.HIGHEST, Priority.VERY_LOW, Priority.LOW
BADLY_DISTRIBUTED, MISSING = Priority.BADLY_DISTRIBUTED, Priority.MISSING

URGENT: Final = {
    "none is live": (0, 0, 3, True, MISSING),
    "none is live, and enough are on their way": (0, 3, 3, True, MISSING),
    "none is live, and none is expected": (0, 0, 0, True, MISSING),
    "one of one": (1, 0, 1, True, None),
    "one of one, on one rack": (1, 0, 1, False, BADLY_DISTRIBUTED),
    "one of two": (1, 0, 2, True, HIGHEST),
    "one of two, and another is on its way": (1, 1, 2, False, None),
    "one of three, and another is on its way": (1, 1, 3, False, HIGHEST),
    "two of three": (2, 0, 3, True, LOW),
    "two of five": (2, 0, 5, True, LOW),
    "two of six, which are a third": (2, 0, 6, True, LOW),
    "two of seven, which are less than a third": (2, 0, 7, True, VERY_LOW),
    "two of seven, and others on their way": (2, 4, 7, True, VERY_LOW),
    "three of three": (3, 0, 3, True, None),
    "three of three, on one rack": (3, 0, 3, False, BADLY_DISTRIBUTED),
    "three of three, and one on its way to another rack": (3, 1, 3, False, None),
    "four of three": (4, 0, 3, True, None),
    "four of three, on one rack": (4, 0, 3, False, BADLY_DISTRIBUTED),
}
"""Live replicas, those on their way, those expected, whether on enough racks, and the queue."""


@pytest.mark.parametrize(
    ("live", "coming", "expected", "spread", "queue"), URGENT.values(), ids=URGENT
)
def test_a_copy_is_as_urgent_as_few_replicas_are_live(
    live: int, coming: int, expected: int, queue: Priority | None, *, spread: bool
) -> None:
    assert priority(live, coming, expected, spread=spread) is queue


def test_each_replica_is_live_or_excess_or_corrupt_and_may_be_unconfirmed() -> None:
    """One is as it should be, one is to be deleted, one is corrupt, and one both; one is old."""
    state, one, other = a_map(*written(), *written(B + 1))
    third, fourth, fifth, empty = (state.add_storage(f"n{n}", "a") for n in range(3, 7))
    slot = slot_of(state)
    for storage in (one, other, third, fourth, fifth):
        told(state, storage, (B, Reported(FINALIZED, 1001, 700)))
    for storage in (third, fourth):
        state.mark_corrupt(slot, storage, CorruptMark(Reason.CORRUPTION_REPORTED, 1001))
    for storage in (other, fourth):
        state.order_deletion(slot, storage.number, now=1.0)
    for storage in (one, third):
        storage.confirmed = True
    empty.confirmed = False
    cluster = Cluster("BP-1", state, Random(1))
    assert count(cluster, slot) == Counts(
        live=(one.number, fifth.number),
        excess=(other.number,),
        corrupt=(third.number, fourth.number),
        unconfirmed=frozenset({other.number, fourth.number, fifth.number}),
    )
    assert count(cluster, slot_of(state, B + 1)) == Counts((), (), (), frozenset())

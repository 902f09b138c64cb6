"""The replicas that storages are to delete: ordered, and not reported to be gone yet."""

from typing import Final

import pytest

from journal.model import TxId
from namenode_sim.blocks.deletion_orders import Invalidations, PendingDeletions
from namenode_sim.blocks.model import Slot, StorageNumber

ONE, OTHER, EMPTY = StorageNumber(1), StorageNumber(2), StorageNumber(3)
Replica = tuple[StorageNumber, int]
"""A storage and a block."""

ORDERED: Final[set[Replica]] = {(ONE, 7), (ONE, 8), (OTHER, 7)}
FORGOTTEN: Final[dict[str, tuple[list[Replica], set[Replica]]]] = {
    "one of two of a storage": ([(ONE, 7)], {(ONE, 8), (OTHER, 7)}),
    "the only one of a storage": ([(OTHER, 7)], {(ONE, 7), (ONE, 8)}),
    "one twice": ([(OTHER, 7), (OTHER, 7)], {(ONE, 7), (ONE, 8)}),
    "a block that was not ordered": ([(ONE, 9)], ORDERED),
    "a storage without orders": ([(EMPTY, 7)], ORDERED),
    "all": (sorted(ORDERED), set()),
}
forgotten = pytest.mark.parametrize(("gone", "left"), FORGOTTEN.values(), ids=FORGOTTEN)


@forgotten
def test_only_the_replica_that_is_gone_is_doomed_no_more(
    gone: list[Replica], left: set[Replica]
) -> None:
    doomed = PendingDeletions()
    for number, slot in sorted(ORDERED):
        doomed.add(Slot(slot), number, 1.0)
    for number, slot in gone:
        doomed.forget(Slot(slot), number)
    assert {(number, slot) for slot, number in doomed} == left
    assert len(doomed) == len(left)


@forgotten
def test_only_the_order_that_is_taken_back_is_gone(gone: list[Replica], left: set[Replica]) -> None:
    invalidations = Invalidations()
    for number, block_id in sorted(ORDERED):
        invalidations.add(number, block_id, 1001, TxId(1))
    for number, block_id in gone:
        invalidations.forget(number, block_id)
    assert {(number, block_id) for number, block_id, _, _ in invalidations} == left
    assert len(invalidations) == len(left)


OVERDUE: Final = {
    "none is old enough": (10.0, 9, []),
    "those before the time": (11.0, 9, [(7, ONE)]),
    "of each storage": (13.0, 9, [(7, ONE), (8, ONE), (7, OTHER)]),
    "as many as asked for": (13.0, 2, [(7, ONE), (8, ONE)]),
}


@pytest.mark.parametrize(("before", "limit", "found"), OVERDUE.values(), ids=OVERDUE)
def test_deletions_are_overdue_that_were_ordered_before_a_time(
    before: float, limit: int, found: list[tuple[int, StorageNumber]]
) -> None:
    doomed = PendingDeletions()
    for slot, number, at in ((7, ONE, 10.0), (8, ONE, 11.0), (9, ONE, 13.0), (7, OTHER, 12.0)):
        doomed.add(Slot(slot), number, at)
    assert doomed.overdue(before, limit) == found


def test_a_deletion_that_is_ordered_again_does_not_hide_older_ones() -> None:
    doomed = PendingDeletions()
    for slot, at in ((7, 1.0), (8, 2.0), (7, 5.0)):
        doomed.add(Slot(slot), ONE, at)
    assert doomed.overdue(3.0, 9) == [(8, ONE)]

"""How many replicas of a block count, and how urgent another one is.

See docs/reference/blocks.md#judging-redundancy.
"""

from dataclasses import dataclass
from typing import Final

from namenode_sim.blocks.model import Slot, StorageNumber
from namenode_sim.blocks.needed import Priority
from namenode_sim.blocks.state import BlockState

VERY_LOW_SHARE: Final = 3
"""A block is very low on replicas with less than one in this many of them."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The storages of a block's replicas; each is in one of the first three.

    ``live``: good, and to stay.  ``excess``: good, and ordered to be deleted.  ``corrupt``.
    ``unconfirmed``: those of all on storages whose word is older than this active.
    """

    live: tuple[StorageNumber, ...]
    excess: tuple[StorageNumber, ...]
    corrupt: tuple[StorageNumber, ...]
    unconfirmed: frozenset[StorageNumber]


def count(state: BlockState, slot: Slot) -> Counts:
    """Sort the replicas of a block."""
    held, marks = state.map.storages_of(slot), state.map.corrupt_marks(slot)
    good = [one for one in held if one not in marks]
    return Counts(
        live=tuple(one for one in good if not state.map.is_pending_deletion(slot, one)),
        excess=tuple(one for one in good if state.map.is_pending_deletion(slot, one)),
        corrupt=tuple(marks),
        unconfirmed=frozenset(one for one in held if not state.map.storages.at(one).confirmed),
    )


def priority(live: int, coming: int, expected: int, *, spread: bool) -> Priority | None:
    """Return how urgent another replica is, or None if there are enough.

    ``coming`` copies are on their way; ``spread``: the live ones stand on enough racks.
    """
    if live == 0:
        return Priority.MISSING
    if live + coming >= expected:
        return None if coming or spread else Priority.BADLY_DISTRIBUTED
    if live == 1:
        return Priority.HIGHEST
    return Priority.VERY_LOW if live * VERY_LOW_SHARE < expected else Priority.LOW

"""The single steps by which a replica comes to a storage and goes, with all that hangs on it.

See docs/reference/blocks.md#the-map.
"""

from typing import Final

import numpy as np

from namenode_sim.blocks.blocks_map import Mask
from namenode_sim.blocks.columns import CELLS
from namenode_sim.blocks.index import Slots
from namenode_sim.blocks.model import NO_STORAGE, Slot, Storage
from namenode_sim.blocks.parts import Parts

NO_NODE: Final = 2**32 - 1


class StoredReplicas:
    """A replica has a cell, perhaps a corrupt mark and an order to be deleted, and goes with them.

    A DataNode has one replica of a block, on one of its storages.
    """

    __slots__ = ("_columns", "_constructions", "_corrupt", "_deletions", "_replicas", "_storages")

    def __init__(self, parts: Parts) -> None:
        self._columns = parts.columns
        self._constructions = parts.constructions
        self._corrupt = parts.corrupt
        self._deletions = parts.pending_deletions
        self._replicas = parts.replicas
        self._storages = parts.storages

    def add(self, slot: Slot, storage: Storage) -> None:
        """Note that a storage holds a block, if it does not yet."""
        if not self._replicas.holds(slot, storage.number):
            self.leave_others(slot, storage)
            self._replicas.add(slot, storage)

    def leave_others(self, slot: Slot, storage: Storage) -> None:
        """Drop a block from the other storages of a storage's DataNode."""
        for other in self._storages.others(storage):
            self.remove(slot, other)
            self._constructions.drop(slot, other.number)

    def remove(self, slot: Slot, storage: Storage) -> None:
        """Note that a storage does not hold a block, if it does."""
        if self._replicas.holds(slot, storage.number):
            self._corrupt.forget(slot, storage.number)
            self._deletions.forget(slot, storage.number)
            self._replicas.remove(slot, storage)

    def remove_all(self, slot: Slot) -> None:
        """Note that no storage holds a block."""
        for number in self._replicas.storages(slot):
            self.remove(slot, self._storages.at(number))

    def extend(self, slots: Slots, storage: Storage) -> tuple[Mask, Slots]:
        """Note that a storage holds blocks that it did not hold.

        Return which were added, and how many replicas each had before.  The others have no free
        cell, or are on another storage of the same DataNode.
        """
        cells = np.frombuffer(self._columns.storages, np.uint16).reshape(-1, CELLS)[slots]
        counts = (cells != NO_STORAGE).sum(axis=1)
        node_of = np.full(int(NO_STORAGE) + 1, NO_NODE, np.uint32)
        known = np.frombuffer(self._storages.node_of, np.uint32)
        node_of[: len(known)] = known
        fits: Mask = counts < CELLS
        fits &= (node_of[cells] != node_of[storage.number]).all(axis=1)
        self._replicas.extend(slots[fits], storage)
        return fits, counts

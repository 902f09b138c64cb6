"""Which storage holds a replica of which block, kept from both sides, and which are corrupt.

A block's row has up to three cells: a storage, and the block's position in that storage's list.
A removal moves the last of the list to the free position, so that nothing is searched.
See docs/reference/blocks.md#the-map and docs/reference/blocks.md#corrupt-replicas.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from ha.record import dataclass
from namenode_sim.blocks.columns import CELLS, CORRUPT, MORE, BlockColumns
from namenode_sim.blocks.constructions import Constructions
from namenode_sim.blocks.deletion_orders import PendingDeletions
from namenode_sim.blocks.index import Mask, Slots
from namenode_sim.blocks.model import NO_STORAGE, CorruptMark, Slot, Storage, StorageNumber
from namenode_sim.blocks.storages import Storages

NO_NODE: Final = 2**32 - 1
_NONE: Final[Mapping[StorageNumber, CorruptMark]] = MappingProxyType({})


class Replicas:
    """The cells of all blocks.  ``more`` holds those of a block beyond the third."""

    def __init__(self, columns: BlockColumns) -> None:
        self._columns = columns
        self.more: dict[Slot, dict[StorageNumber, int]] = {}

    def storages(self, slot: Slot) -> list[StorageNumber]:
        first = slot * CELLS
        row = self._columns.storages[first : first + CELLS]
        found = [StorageNumber(number) for number in row if number != NO_STORAGE]
        return found + list(self.more[slot]) if slot in self.more else found

    def count(self, slot: Slot) -> int:
        return len(self.storages(slot))

    def holds(self, slot: Slot, number: StorageNumber) -> bool:
        return self._cell(slot, number) is not None or number in self.more.get(slot, ())

    def _cell(self, slot: Slot, number: int) -> int | None:
        storages, first = self._columns.storages, slot * CELLS
        for cell in range(first, first + CELLS):
            if storages[cell] == number:
                return cell
        return None

    def position(self, slot: Slot, number: StorageNumber) -> int | None:
        """Return a block's place in a storage's list; None if the row does not name the storage."""
        cell = self._cell(slot, number)
        return (
            self.more.get(slot, {}).get(number) if cell is None else self._columns.positions[cell]
        )

    def add(self, slot: Slot, storage: Storage) -> None:
        """Note that a storage holds a block that it did not hold."""
        position = len(storage.slots)
        storage.slots.append(slot)
        cell = self._cell(slot, NO_STORAGE)
        if cell is None:
            self.more.setdefault(slot, {})[storage.number] = position
            self._columns.set_flag(slot, MORE, on=True)
        else:
            self._columns.storages[cell] = storage.number
            self._columns.positions[cell] = position

    def extend(self, slots: Slots, counts: Slots, storage: Storage) -> None:
        """Note that a storage holds blocks that it did not hold, each with a free cell.

        ``counts`` says for each block how many of its cells are taken.
        """
        columns, base = self._columns, len(storage.slots)
        storage.slots.frombytes(slots.astype(np.uint32).tobytes())
        cells = slots * CELLS + counts
        np.frombuffer(columns.storages, np.uint16)[cells] = storage.number
        positions = np.arange(base, base + len(slots), dtype=np.uint32)
        np.frombuffer(columns.positions, np.uint32)[cells] = positions

    def remove(self, slot: Slot, storage: Storage) -> None:
        position = self._take_out(slot, storage.number)
        last = Slot(storage.slots.pop())
        if last == slot:
            return
        storage.slots[position] = last
        cell = self._cell(last, storage.number)
        if cell is None:
            self.more[last][storage.number] = position
        else:
            self._columns.positions[cell] = position

    def _take_out(self, slot: Slot, number: StorageNumber) -> int:
        """Empty a storage's cell, close the gap in the row, and return the position."""
        storages, positions = self._columns.storages, self._columns.positions
        cell, more = self._cell(slot, number), self.more.get(slot)
        if cell is None:
            assert more is not None
            position = more.pop(number)
        else:
            position = positions[cell]
            end = slot * CELLS + CELLS
            storages[cell : end - 1] = storages[cell + 1 : end]
            positions[cell : end - 1] = positions[cell + 1 : end]
            storages[end - 1] = NO_STORAGE
            if more:
                moved = next(iter(more))
                storages[end - 1], positions[end - 1] = moved, more.pop(moved)
        if more is not None and not more:
            del self.more[slot]
            self._columns.set_flag(slot, MORE, on=False)
        return position


class CorruptMarks:
    """By block and storage; a block that has one has the flag CORRUPT."""

    def __init__(self, columns: BlockColumns) -> None:
        self._columns = columns
        self._by_slot: dict[Slot, dict[StorageNumber, CorruptMark]] = {}

    def __len__(self) -> int:
        return len(self._by_slot)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._by_slot)

    def of(self, slot: Slot) -> Mapping[StorageNumber, CorruptMark]:
        return self._by_slot.get(slot, _NONE)

    def put(self, slot: Slot, number: StorageNumber, mark: CorruptMark) -> None:
        self._by_slot.setdefault(slot, {})[number] = mark
        self._columns.set_flag(slot, CORRUPT, on=True)

    def forget(self, slot: Slot, number: StorageNumber) -> None:
        """Note that a replica is gone, or is not corrupt any more."""
        marks = self._by_slot.get(slot)
        if marks is not None and marks.pop(number, None) is not None and not marks:
            del self._by_slot[slot]
            self._columns.set_flag(slot, CORRUPT, on=False)


@dataclass(frozen=True, slots=True, eq=False)
class StoredReplicas:
    """A replica has a cell, perhaps a corrupt mark and an order to be deleted, and goes with them.

    A DataNode has one replica of a block, on one of its storages.
    """

    cells: Replicas
    columns: BlockColumns
    constructions: Constructions
    corrupt: CorruptMarks
    deletions: PendingDeletions
    storages: Storages

    def add(self, slot: Slot, storage: Storage) -> None:
        """Note that a storage holds a block, if it does not yet.

        The order to delete the DataNode's replica is about this one, too: it names no storage.  The
        bad schedule: a mover has the replica put on another storage before the order comes; it
        counts again, another is deleted in its place, and then the order is carried out.  An order
        about a corrupt replica is not: no mover moves it, so this one is a new copy.
        """
        if self.cells.holds(slot, storage.number):
            return
        corrupt = self.corrupt.of(slot)
        ordered = [
            self.deletions.when(slot, other.number)
            for other in self.storages.others(storage)
            if other.number not in corrupt
        ]
        self.leave_others(slot, storage)
        self.cells.add(slot, storage)
        for when in ordered:
            if when is not None:
                self.deletions.add(slot, storage.number, when)

    def leave_others(self, slot: Slot, storage: Storage) -> None:
        """Drop a block from the other storages of a storage's DataNode."""
        for other in self.storages.others(storage):
            self.remove(slot, other)
            self.constructions.drop(slot, other.number)

    def remove(self, slot: Slot, storage: Storage) -> None:
        """Note that a storage does not hold a block, if it does."""
        if self.cells.holds(slot, storage.number):
            self.corrupt.forget(slot, storage.number)
            self.deletions.forget(slot, storage.number)
            self.cells.remove(slot, storage)

    def remove_all(self, slot: Slot) -> None:
        for number in self.cells.storages(slot):
            self.remove(slot, self.storages.at(number))

    def extend(self, slots: Slots, storage: Storage) -> tuple[Mask, Slots]:
        """Note that a storage holds blocks that it did not hold.

        Return which were added, and how many replicas each had before.  The others have no free
        cell, or are on another storage of the same DataNode.
        """
        rows = np.frombuffer(self.columns.storages, np.uint16).reshape(-1, CELLS)
        cells = np.ascontiguousarray(rows.take(slots, axis=0).T)  # long axes are summed faster
        counts = (cells != NO_STORAGE).sum(axis=0)
        node_of = np.full(int(NO_STORAGE) + 1, NO_NODE, np.uint32)
        known = np.frombuffer(self.storages.node_of, np.uint32)
        node_of[: len(known)] = known
        fits: Mask = counts < CELLS
        fits &= (node_of[cells] != node_of[storage.number]).all(axis=0)
        self.cells.extend(slots[fits], counts[fits], storage)
        return fits, counts

"""Which storage holds a replica of which block, kept from both sides.

A block's row has up to three cells: a storage, and the block's position in that storage's list.
A removal moves the last of the list to the free position, so that nothing is searched.
"""

from typing import Final

import numpy as np

from namenode_sim.blocks.columns import CELLS, MORE, BlockColumns
from namenode_sim.blocks.index import Slots
from namenode_sim.blocks.model import NO_STORAGE, Slot, Storage, StorageNumber

_EMPTY: Final = (NO_STORAGE,) * CELLS


class Replicas:
    """The cells of all blocks.  ``more`` holds those of a block beyond the third."""

    __slots__ = ("_columns", "more")

    def __init__(self, columns: BlockColumns) -> None:
        self._columns = columns
        self.more: dict[Slot, dict[StorageNumber, int]] = {}

    def storages(self, slot: Slot) -> list[StorageNumber]:
        """Return the numbers of the storages that hold a block."""
        first = slot * CELLS
        row = self._columns.storages[first : first + CELLS]
        found = [StorageNumber(number) for number in row if number != NO_STORAGE]
        return found + list(self.more[slot]) if slot in self.more else found

    def count(self, slot: Slot) -> int:
        """Return how many storages hold a block."""
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

    def extend(self, slots: Slots, storage: Storage) -> None:
        """Note that a storage holds blocks that it did not hold, each with a free cell."""
        columns, base = self._columns, len(storage.slots)
        storage.slots.frombytes(slots.astype(np.uint32).tobytes())
        taken = np.frombuffer(columns.storages, np.uint16).reshape(len(columns.ids), CELLS)
        cells = slots * CELLS + (taken[slots] != NO_STORAGE).sum(axis=1)
        np.frombuffer(columns.storages, np.uint16)[cells] = storage.number
        positions = np.arange(base, base + len(slots), dtype=np.uint32)
        np.frombuffer(columns.positions, np.uint32)[cells] = positions

    def remove(self, slot: Slot, storage: Storage) -> None:
        """Note that a storage no longer holds a block."""
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

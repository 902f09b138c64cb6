"""Which replicas are known to be corrupt, and why.

See docs/reference/blocks.md#corrupt-replicas.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from namenode_sim.blocks.columns import CORRUPT, BlockColumns
from namenode_sim.blocks.model import CorruptMark, Slot, StorageNumber

_NONE: Final[Mapping[StorageNumber, CorruptMark]] = MappingProxyType({})


class CorruptMarks:
    """By block and storage; a block that has one has the flag CORRUPT."""

    __slots__ = ("_by_slot", "_columns")

    def __init__(self, columns: BlockColumns) -> None:
        self._columns = columns
        self._by_slot: dict[Slot, dict[StorageNumber, CorruptMark]] = {}

    def __len__(self) -> int:
        """Return how many blocks have corrupt replicas."""
        return len(self._by_slot)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._by_slot)

    def of(self, slot: Slot) -> Mapping[StorageNumber, CorruptMark]:
        """Return why replicas of a block are corrupt, by their storages."""
        return self._by_slot.get(slot, _NONE)

    def put(self, slot: Slot, number: StorageNumber, mark: CorruptMark) -> None:
        """Note that a replica is corrupt."""
        self._by_slot.setdefault(slot, {})[number] = mark
        self._columns.set_flag(slot, CORRUPT, on=True)

    def forget(self, slot: Slot, number: StorageNumber) -> None:
        """Note that a replica is gone, or is not corrupt any more."""
        marks = self._by_slot.get(slot)
        if marks is not None and marks.pop(number, None) is not None and not marks:
            del self._by_slot[slot]
            self._columns.set_flag(slot, CORRUPT, on=False)

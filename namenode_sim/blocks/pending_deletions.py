"""Replicas of blocks that were ordered to be deleted, until their storages say that they are gone.

See docs/reference/blocks.md#excess.
"""

from collections.abc import Iterator

from namenode_sim.blocks.model import Slot, StorageNumber


class PendingDeletions:
    """By storage and block, the time of the order; the oldest order of a storage comes first."""

    __slots__ = ("_by_storage",)

    def __init__(self) -> None:
        self._by_storage: dict[StorageNumber, dict[Slot, float]] = {}

    def __len__(self) -> int:
        """Return how many replicas are to go."""
        return sum(map(len, self._by_storage.values()))

    def __iter__(self) -> Iterator[tuple[Slot, StorageNumber]]:
        """Yield every replica that is to go."""
        for number, slots in self._by_storage.items():
            for slot in slots:
                yield slot, number

    def add(self, slot: Slot, number: StorageNumber, now: float) -> None:
        """Note that a replica is to go; an earlier order about it is forgotten."""
        slots = self._by_storage.setdefault(number, {})
        slots.pop(slot, None)
        slots[slot] = now

    def has(self, slot: Slot, number: StorageNumber) -> bool:
        """Return whether a replica is to go."""
        return slot in self._by_storage.get(number, ())

    def of(self, number: StorageNumber) -> list[Slot]:
        """Return the blocks whose replicas on a storage are to go."""
        return list(self._by_storage.get(number, ()))

    def forget(self, slot: Slot, number: StorageNumber) -> None:
        """Note that a replica is gone, or is to stay."""
        slots = self._by_storage.get(number)
        if slots is not None and slots.pop(slot, None) is not None and not slots:
            del self._by_storage[number]

    def overdue(self, ordered_before: float, limit: int) -> list[tuple[Slot, StorageNumber]]:
        """Return replicas that were to go long ago and that are not reported to be gone."""
        found: list[tuple[Slot, StorageNumber]] = []
        for number, slots in self._by_storage.items():
            for slot, ordered in slots.items():
                if ordered >= ordered_before or len(found) == limit:
                    break
                found.append((slot, number))
        return found

    def clear(self) -> None:
        """Forget all of them."""
        self._by_storage.clear()

"""Replicas that storages are to delete, and those whose deletion is not reported yet.

See docs/reference/blocks.md#orders and docs/reference/blocks.md#excess.
"""

from collections.abc import Iterator

from journal.model import TxId
from namenode_sim.blocks.model import Slot, StorageNumber


class Invalidations:
    """By storage and block: the stamp, and the edit that must be durable before it is sent."""

    def __init__(self) -> None:
        self._by_storage: dict[StorageNumber, dict[int, tuple[int, TxId]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_storage.values()))

    def __iter__(self) -> Iterator[tuple[StorageNumber, int, int, TxId]]:
        """Yield every order: storage, block, stamp, and the edit that it rests on."""
        for number, orders in self._by_storage.items():
            for block_id, (stamp, cause) in orders.items():
                yield number, block_id, stamp, cause

    def add(self, number: StorageNumber, block_id: int, stamp: int, cause: TxId) -> None:
        """Have a replica deleted; it takes the place of an earlier order about the block."""
        orders = self._by_storage.setdefault(number, {})
        orders.pop(block_id, None)
        orders[block_id] = (stamp, cause)

    def has(self, number: StorageNumber, block_id: int, stamp: int) -> bool:
        """Return whether a storage is to delete a replica with this stamp."""
        found = self._by_storage.get(number, {}).get(block_id)
        return found is not None and found[0] == stamp

    def blocks_of(self, number: StorageNumber) -> frozenset[int]:
        return frozenset(self._by_storage.get(number, ()))

    def forget(self, number: StorageNumber, block_id: int) -> None:
        """Take an order back, or note that it was carried out."""
        orders = self._by_storage.get(number)
        if orders is not None and orders.pop(block_id, None) is not None and not orders:
            del self._by_storage[number]

    def drop_storage(self, number: StorageNumber) -> None:
        self._by_storage.pop(number, None)

    def clear(self) -> None:
        self._by_storage.clear()

    def take_due(self, number: StorageNumber, durable: TxId, limit: int) -> list[tuple[int, int]]:
        """Take out the oldest orders whose edits are durable: return block and stamp of each."""
        due: list[tuple[int, int]] = []
        # Orders lie in the order of their edits, since a newer one goes to the end.
        for block_id, (stamp, cause) in self._by_storage.get(number, {}).items():
            if cause > durable or len(due) == limit:
                break
            due.append((block_id, stamp))
        for block_id, _ in due:
            self.forget(number, block_id)
        return due


class PendingDeletions:
    """By storage and block: when the deletion was ordered; a storage's oldest comes first."""

    def __init__(self) -> None:
        self._by_storage: dict[StorageNumber, dict[Slot, float]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_storage.values()))

    def __iter__(self) -> Iterator[tuple[Slot, StorageNumber]]:
        for number, slots in self._by_storage.items():
            for slot in slots:
                yield slot, number

    def add(self, slot: Slot, number: StorageNumber, now: float) -> None:
        """Note that a replica is to go; an earlier order about it is forgotten."""
        slots = self._by_storage.setdefault(number, {})
        slots.pop(slot, None)
        slots[slot] = now

    def has(self, slot: Slot, number: StorageNumber) -> bool:
        return slot in self._by_storage.get(number, ())

    def when(self, slot: Slot, number: StorageNumber) -> float | None:
        """Return when the deletion of a replica was ordered; None if it was not."""
        return self._by_storage.get(number, {}).get(slot)

    def of(self, number: StorageNumber) -> list[Slot]:
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
        self._by_storage.clear()

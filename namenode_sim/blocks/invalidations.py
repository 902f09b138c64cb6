"""Replicas that storages are to delete, each with the edit that must be durable before.

See docs/reference/blocks.md#orders.
"""

from collections.abc import Iterator

from journal.model import TxId
from namenode_sim.blocks.model import StorageNumber


class Invalidations:
    """By storage and block: the replica's stamp, and the last edit that the order rests on."""

    __slots__ = ("_by_storage",)

    def __init__(self) -> None:
        self._by_storage: dict[StorageNumber, dict[int, tuple[int, TxId]]] = {}

    def __len__(self) -> int:
        """Return how many replicas are to be deleted."""
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
        """Return the blocks of which a storage is to delete its replica."""
        return frozenset(self._by_storage.get(number, ()))

    def forget(self, number: StorageNumber, block_id: int) -> None:
        """Take an order back, or note that it was carried out."""
        orders = self._by_storage.get(number)
        if orders is not None and orders.pop(block_id, None) is not None and not orders:
            del self._by_storage[number]

    def drop_storage(self, number: StorageNumber) -> None:
        """Take back all orders for a storage."""
        self._by_storage.pop(number, None)

    def clear(self) -> None:
        """Take back all orders."""
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

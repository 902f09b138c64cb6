"""Reports that a standby cannot judge yet: at most one for each block and storage, the newest.

See docs/reference/blocks.md#waiting-reports.
"""

from collections.abc import Iterator
from typing import Final

from namenode_sim.blocks.model import Deleted, Reported, StorageNumber

POSTPONED_LIMIT: Final = 1_000_000

ReplicaReport = Reported | Deleted


class PostponedReports:
    """Reports by block id, in the order in which ids came; of each block by storage."""

    def __init__(self, limit: int = POSTPONED_LIMIT) -> None:
        self.limit = limit
        self._by_block: dict[int, dict[StorageNumber, ReplicaReport]] = {}
        self._by_storage: dict[StorageNumber, set[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[int, StorageNumber, ReplicaReport]]:
        for block_id, reports in self._by_block.items():
            for number, told in reports.items():
                yield block_id, number, told

    def waiting(self, block_id: int, number: StorageNumber) -> ReplicaReport | None:
        """Return what waits for a block and a storage."""
        return self._by_block.get(block_id, {}).get(number)

    def put(self, block_id: int, number: StorageNumber, told: ReplicaReport) -> set[StorageNumber]:
        """Let a report wait; returns the storages whose reports had to go for want of room."""
        self.forget(block_id, number)
        self._by_block.setdefault(block_id, {})[number] = told
        self._by_storage.setdefault(number, set()).add(block_id)
        self._count += 1
        lost: set[StorageNumber] = set()
        while self._count > self.limit:
            lost.update(number for number, _ in self.pop(next(iter(self._by_block))))
        return lost

    def forget(self, block_id: int, number: StorageNumber) -> None:
        """Drop what waits for a block and a storage, if anything does."""
        reports = self._by_block.get(block_id)
        if reports is None or number not in reports:
            return
        del reports[number]
        if not reports:
            del self._by_block[block_id]
        self._left(block_id, number)

    def _left(self, block_id: int, number: StorageNumber) -> None:
        blocks = self._by_storage[number]
        blocks.remove(block_id)
        if not blocks:
            del self._by_storage[number]
        self._count -= 1

    def pop(self, block_id: int) -> list[tuple[StorageNumber, ReplicaReport]]:
        """Take out what waits for a block, in the order in which it came."""
        found = list(self._by_block.pop(block_id, {}).items())
        for number, _ in found:
            self._left(block_id, number)
        return found

    def pop_all(self) -> list[tuple[int, StorageNumber, ReplicaReport]]:
        """Take out everything, the oldest blocks first."""
        found = list(self)
        self._by_block.clear()
        self._by_storage.clear()
        self._count = 0
        return found

    def blocks_of(self, number: StorageNumber) -> frozenset[int]:
        return frozenset(self._by_storage.get(number, ()))

    def drop_storage(self, number: StorageNumber) -> None:
        for block_id in self.blocks_of(number):
            self.forget(block_id, number)

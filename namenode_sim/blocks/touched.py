"""Blocks whose replicas have changed since somebody last looked whether they are enough.

See docs/reference/blocks.md#judging-redundancy.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from namenode_sim.blocks.model import Slot, StorageNumber


@dataclass(frozen=True, slots=True)
class Touch:
    """One block to judge.

    ``hint`` is the DataNode that may lose its replica, as the one that got a new one was told.
    ``awaited`` are the storages that the block was written to and that have not reported it yet.
    """

    slot: Slot
    hint: str | None
    awaited: tuple[StorageNumber, ...]


class Touched:
    """The blocks in the order in which they were touched.

    ``_order`` may name a block twice, or one that is no longer to be judged.
    """

    __slots__ = ("_awaited", "_hints", "_order", "_slots")

    def __init__(self) -> None:
        self._slots: set[Slot] = set()
        self._order: deque[Slot] = deque()
        self._hints: dict[Slot, str] = {}
        self._awaited: dict[Slot, tuple[StorageNumber, ...]] = {}

    def __len__(self) -> int:
        """How many blocks are to be judged."""
        return len(self._slots)

    def add(self, slot: Slot) -> None:
        """Have a block judged."""
        if slot not in self._slots:
            self._slots.add(slot)
            self._order.append(slot)

    def update(self, slots: Iterable[int]) -> None:
        """Have blocks judged."""
        for slot in slots:
            self.add(Slot(slot))

    def hint(self, slot: Slot, node: str) -> None:
        """Have a block judged, of which a DataNode may lose its replica."""
        self.add(slot)
        self._hints[slot] = node

    def wait_for(self, slot: Slot, storages: tuple[StorageNumber, ...]) -> None:
        """Have a block judged whose replicas on some storages are on their way."""
        self.add(slot)
        self._awaited[slot] = storages

    def forget(self, slot: Slot) -> None:
        """A block is gone."""
        self._slots.discard(slot)
        self._hints.pop(slot, None)
        self._awaited.pop(slot, None)

    def pop(self) -> Touch | None:
        """The block that was touched first."""
        while self._order:
            slot = self._order.popleft()
            if slot in self._slots:
                self._slots.remove(slot)
                return Touch(slot, self._hints.pop(slot, None), self._awaited.pop(slot, ()))
        return None

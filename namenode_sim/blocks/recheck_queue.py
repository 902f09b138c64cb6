"""Blocks whose replicas have changed since somebody last looked whether they are enough.

See docs/reference/blocks.md#judging-redundancy.
"""

from collections import deque
from collections.abc import Collection, Iterable

import numpy as np

from ha.record import dataclass
from namenode_sim.blocks.model import Slot, Storage, StorageNumber


@dataclass(frozen=True, slots=True)
class DeleteHint:
    """A balancer's move: ``to_free`` may lose its replica, as ``added`` has got one (uuids)."""

    to_free: str
    added: str


@dataclass(frozen=True, slots=True)
class Recheck:
    """One block to check.

    ``hint`` is what the DataNode that got a new replica has reported. ``awaited`` are the storages
    that the block was written to and that have not reported it yet.
    """

    slot: Slot
    hint: DeleteHint | None
    awaited: tuple[StorageNumber, ...]


class RecheckQueue:
    """The blocks to check, in the order in which they changed.

    There are none before ``start`` and after ``stop``: a standby checks none, nor does an active in
    the safe mode of its start.  ``_order`` may name a block twice, or one that is no longer to be
    checked.  ``_postponed`` blocks have too many replicas, or corrupt ones, and an unconfirmed
    storage.
    """

    def __init__(self) -> None:
        self._started = False
        self._postponed: dict[Slot, None] = {}
        self._slots: set[Slot] = set()
        self._order: deque[Slot] = deque()
        self._hints: dict[Slot, DeleteHint] = {}
        self._awaited: dict[Slot, tuple[StorageNumber, ...]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def is_started(self) -> bool:
        return self._started

    def start(self) -> None:
        self._started = True

    def stop(self) -> None:
        """Check no blocks any more, and forget which were to be checked."""
        self._started = False
        for part in (self._slots, self._order, self._hints, self._awaited, self._postponed):
            part.clear()

    def add(self, slot: Slot) -> None:
        if self._started and slot not in self._slots:
            self._slots.add(slot)
            self._order.append(slot)

    def update(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self.add(Slot(slot))

    def hint(self, slot: Slot, hint: DeleteHint) -> None:
        """Have a block checked, of which a DataNode may lose its replica."""
        self.add(slot)
        if self._started:
            self._hints[slot] = hint

    def wait_for(self, slot: Slot, storages: tuple[StorageNumber, ...]) -> None:
        """Have a block checked whose replicas on some storages are on their way."""
        self.add(slot)
        if self._started:
            self._awaited[slot] = storages

    @property
    def postponed(self) -> Collection[Slot]:
        """The blocks whose deletions wait for reports."""
        return self._postponed.keys()

    def postpone(self, slot: Slot) -> None:
        """Have a block checked again once a storage that it is on is confirmed."""
        self._postponed[slot] = None

    def settle(self, slot: Slot) -> None:
        """Note that a block was checked, and does not wait for a storage."""
        self._postponed.pop(slot, None)

    def update_postponed(self, storage: Storage) -> None:
        """Have the postponed blocks checked that a storage holds, which is confirmed now."""
        if self._postponed:
            held = np.frombuffer(storage.slots, np.uint32)
            postponed = np.fromiter(self._postponed, np.uint32, len(self._postponed))
            self.update(np.intersect1d(held, postponed).tolist())

    def forget(self, slot: Slot) -> None:
        self._postponed.pop(slot, None)
        self._slots.discard(slot)
        self._hints.pop(slot, None)
        self._awaited.pop(slot, None)

    def pop(self) -> Recheck | None:
        """Take out the block that changed first; None if none has."""
        while self._order:
            slot = self._order.popleft()
            if slot in self._slots:
                self._slots.remove(slot)
                return Recheck(slot, self._hints.pop(slot, None), self._awaited.pop(slot, ()))
        return None

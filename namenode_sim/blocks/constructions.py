"""What is known of blocks that are not complete: where they are written, and their recoveries.

See docs/reference/blocks.md#states.
"""

from collections.abc import Iterator
from dataclasses import replace

from namenode_sim.blocks import model


class Constructions:
    """By slot; each value is replaced as a whole."""

    def __init__(self) -> None:
        self._by_slot: dict[model.Slot, model.Construction] = {}
        self._cut_from: dict[int, model.Slot] = {}

    def __iter__(self) -> Iterator[model.Slot]:
        return iter(self._by_slot)

    def __getitem__(self, slot: model.Slot) -> model.Construction:
        return self._by_slot[slot]

    def get(self, slot: model.Slot) -> model.Construction | None:
        return self._by_slot.get(slot)

    def begin(self, slot: model.Slot) -> None:
        """Note that a block is not complete; what is known of it already stays."""
        self._by_slot.setdefault(slot, model.Construction())

    def end(self, slot: model.Slot) -> model.Construction | None:
        """Forget what was known of a block, which is complete or gone; return it."""
        ended = self._by_slot.pop(slot, None)
        if ended is not None and ended.cut is not None:
            self._cut_from.pop(ended.cut.source_id, None)
        return ended

    def put(self, slot: model.Slot, location: model.Location) -> None:
        """Note where a replica is; it takes the place of what the storage had."""
        construction = self._by_slot[slot]
        others = (one for one in construction.locations if one.storage != location.storage)
        self._by_slot[slot] = replace(construction, locations=(*others, location))

    def put_all(self, slot: model.Slot, locations: tuple[model.Location, ...]) -> None:
        """Note that a block that was complete is written again, on these storages."""
        self._by_slot[slot] = model.Construction(locations)

    def drop(self, slot: model.Slot, number: model.StorageNumber) -> None:
        construction = self._by_slot.get(slot)
        if construction is not None and construction.at(number) is not None:
            others = tuple(one for one in construction.locations if one.storage != number)
            self._by_slot[slot] = replace(construction, locations=others)

    def lose(self, slot: model.Slot, number: model.StorageNumber) -> None:
        """Note that a replica is gone with its storage, which may come back with it."""
        construction = self._by_slot.get(slot)
        if construction is not None and construction.at(number) is not None:
            self._by_slot[slot] = replace(construction, lost=construction.lost | {number})
            self.drop(slot, number)

    def lose_all(self, number: model.StorageNumber) -> None:
        for slot in list(self._by_slot):
            self.lose(slot, number)

    def forget_storage(self, number: model.StorageNumber) -> None:
        """Forget that a storage has lost replicas: another storage may get its number."""
        for slot, construction in list(self._by_slot.items()):
            if number in construction.lost:
                left = construction.lost - {number}
                self._by_slot[slot] = replace(construction, lost=left)

    def expect(
        self, slot: model.Slot, locations: tuple[model.Location, ...], stamp: int
    ) -> tuple[model.StorageNumber, ...]:
        """Note where a block is to be, instead of what was known; return these storages.

        What was reported stays: a DataNode can be faster than the client that waits for it.
        """
        construction = self._by_slot[slot]
        final = [one for one in construction.locations if one.state is model.ReplicaState.FINALIZED]
        current = [one for one in construction.locations if one.stamp == stamp]
        known = {one.storage: one for one in (*current, *final)}
        asked = tuple(known.get(one.storage, one) for one in locations)
        others = tuple(one for one in final if one not in asked)
        self._by_slot[slot] = replace(construction, locations=asked + others, lost=frozenset())
        return tuple(one.storage for one in asked)

    def restamp(self, slot: model.Slot, stamp: int) -> list[model.StorageNumber]:
        """Return the storages whose replicas have another stamp than the new pipeline's."""
        construction = self._by_slot[slot]
        self._by_slot[slot] = replace(construction, lost=frozenset())
        return [one.storage for one in construction.locations if one.stamp != stamp]

    def cut(self, slot: model.Slot, cut: model.Cut) -> None:
        self._by_slot[slot] = replace(self._by_slot[slot], cut=cut)
        self._cut_from[cut.source_id] = slot

    def cut_from(self, source_id: int) -> model.Slot | None:
        """Return the block that a running truncation makes of this one: itself or a copy."""
        return self._cut_from.get(source_id)

    def note_recovery(
        self,
        slot: model.Slot,
        stamp: int | None,
        began: float | None,
        tried: frozenset[model.StorageNumber],
    ) -> None:
        """Note the recovery that gives a block a stamp; a truncation goes on under it."""
        old = self._by_slot[slot]
        cut = old.cut if stamp is None or old.cut is None else replace(old.cut, stamp=stamp)
        self._by_slot[slot] = model.Construction(old.locations, stamp, began, tried, cut, old.lost)

    def forget_recoveries(self) -> None:
        for slot, old in list(self._by_slot.items()):
            self._by_slot[slot] = model.Construction(old.locations, cut=old.cut, lost=old.lost)

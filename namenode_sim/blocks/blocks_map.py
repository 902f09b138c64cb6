"""What can be asked about blocks, replicas and storages; nothing here changes them.

See docs/reference/blocks.md#the-map.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from ha.record import dataclass
from namenode_sim.blocks import model
from namenode_sim.blocks.columns import CELLS, CORRUPT, STAGE, STRIPED
from namenode_sim.blocks.index import Ids, Mask, Slots
from namenode_sim.blocks.parts import Parts, check, check_slots
from namenode_sim.blocks.storages import StorageTable


@dataclass(frozen=True, slots=True)
class HeardReplicas:
    """Columns about blocks: how many replicas are on storages that are heard, and are to be.

    ``ordinary``: the block is complete, and its flags have nothing else to be looked at.
    """

    slots: Slots
    ordinary: Mask
    replicas: npt.NDArray[np.int64]
    expected: npt.NDArray[np.uint16]


class BlocksMap:
    """The queries about blocks; ``BlockState`` has the steps that change what they return."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._columns = parts.columns
        self._constructions = parts.constructions
        self._corrupt = parts.corrupt
        self._counts = parts.counts
        self._ids = parts.ids
        self._index = parts.index
        self._invalidations = parts.invalidations
        self._postponed_reports = parts.postponed_reports
        self._replicas = parts.replicas
        self.storages: Final[StorageTable] = parts.storages
        # Queries that one part gives; the slots of a report are found, and None is an unknown id.
        self.find: Final = parts.index.get
        self.find_all: Final = parts.index.slots_of
        self.construction: Final = parts.constructions.__getitem__
        self.find_construction: Final = parts.constructions.get
        self.storages_of: Final = parts.replicas.storages
        self.holds: Final = parts.replicas.holds
        self.corrupt_marks: Final = parts.corrupt.of
        self.pending_deletions: Final[model.Listing[tuple[model.Slot, model.StorageNumber]]] = (
            parts.pending_deletions
        )
        self.is_pending_deletion: Final = parts.pending_deletions.has
        self.overdue_deletions: Final = parts.pending_deletions.overdue

    # ---- blocks ----

    def slot(self, block_id: int) -> model.Slot:
        """Return where a block is that the map must have, as it has those of all files."""
        slot = self.find(block_id)
        assert slot is not None, f"block {block_id} is not in the map"
        return slot

    def has_minimum(self, count: int, at_most: int | None = None) -> bool:
        """Return whether a block is complete with ``count`` replicas where ``at_most`` can be."""
        minimum = self._counts.minimum
        return count >= (minimum if at_most is None else min(minimum, at_most))

    def safe_counts(self) -> tuple[int, int, int]:
        """Return the counts of complete and of safe blocks, and the bytes newer than all edits."""
        counts = self._counts
        return counts.complete, counts.safe, counts.bytes_in_future

    def items(self) -> Iterator[tuple[int, model.Slot]]:
        return iter(self._index)

    def block_count(self) -> int:
        return len(self._columns)

    def slot_count(self) -> int:
        """Return the number of slots, with those that no block has now."""
        return len(self._columns.ids)

    def block(self, slot: model.Slot) -> model.BlockInfo:
        """Return a block as it is now; one with id 0 for a slot that no block has."""
        columns = self._columns
        return model.BlockInfo(
            columns.ids[slot],
            columns.lengths[slot],
            columns.stamps[slot],
            columns.files[slot],
            columns.expected[slot],
            columns.stage(slot),
        )

    def length(self, slot: model.Slot) -> int:
        """Return a block's length in bytes."""
        return self._columns.lengths[slot]

    def stage(self, slot: model.Slot) -> model.Stage:
        return self._columns.stage(slot)

    def unfinished(self) -> Iterator[model.Slot]:
        return iter(self._constructions)

    def is_from_future(self, block_id: int, stamp: int) -> bool:
        """Return whether a replica is newer than all blocks that edits have shown here."""
        if self._ids.has_new_stamp(stamp):
            return True
        return self._ids.has_new_id(block_id, stamp) and self._index.get(block_id) is None

    # ---- replicas ----

    def is_good(self, slot: model.Slot, number: model.StorageNumber) -> bool:
        """Return whether a storage holds a replica that is not known to be corrupt."""
        return self._replicas.holds(slot, number) and number not in self._corrupt.of(slot)

    def live(self, slot: model.Slot) -> int:
        """Return how many replicas of a block are not known to be corrupt."""
        return self._replicas.count(slot) - len(self._corrupt.of(slot))

    def corrupt_count(self) -> int:
        """Return how many blocks have replicas that are known to be corrupt."""
        return len(self._corrupt)

    def holds_current(self, slot: model.Slot, storage: model.Storage) -> bool:
        """Return whether a storage is known to hold the stamp that a block has now."""
        construction = self._constructions.get(slot)
        location = None if construction is None else construction.at(storage.number)
        if location is not None:
            return location.stamp == self._columns.stamps[slot]
        return self.is_good(slot, storage.number)

    def stamp_on(self, slot: model.Slot, number: model.StorageNumber) -> int | None:
        """Return the stamp of the replica that a storage has or is to have, None without one."""
        construction = self._constructions.get(slot)
        location = None if construction is None else construction.at(number)
        if location is not None:
            return location.stamp
        return self.own_stamp(slot, number) if self.holds(slot, number) else None

    def own_stamp(self, slot: model.Slot, number: model.StorageNumber) -> int:
        """Return the stamp of a replica: its DataNode would not delete it by another one."""
        mark = self._corrupt.of(slot).get(number)
        own = mark.stamp if mark is not None else None
        return own if own is not None else self._columns.stamps[slot]

    # ---- orders, and what is still to be done ----

    def undecided_blocks(self, number: model.StorageNumber) -> frozenset[int]:
        """Return the blocks of which a storage's report waits, or its replica is to be deleted."""
        waiting = self._postponed_reports.blocks_of(number)
        return waiting | self._invalidations.blocks_of(number)

    # ---- many blocks at once ----

    def held_by(self, storage: model.Storage) -> tuple[Ids, Slots]:
        """Return the ids and slots of all blocks that a storage holds replicas of."""
        slots = np.frombuffer(storage.slots, np.uint32).astype(np.int64)
        return np.frombuffer(self._columns.ids, np.int64)[slots], slots

    def agree(self, slots: Slots, stamps: Ids, lengths: Ids) -> Mask:
        """Return which blocks are complete, have this stamp and length, and nothing odd."""
        columns = self._columns
        found: Mask = (
            (np.frombuffer(columns.flags, np.uint8).take(slots) == 0)
            & (np.frombuffer(columns.stamps, np.int64).take(slots) == stamps)
            & (np.frombuffer(columns.lengths, np.int64).take(slots) == lengths)
        )
        return found

    def movable(self, slots: Slots, least: int) -> Mask:
        """Return which blocks are complete, not shorter, not striped, and nowhere corrupt."""
        columns = self._columns
        flags = np.frombuffer(columns.flags, np.uint8)[slots]
        lengths = np.frombuffer(columns.lengths, np.int64)[slots]
        found: Mask = ((flags & (STAGE | CORRUPT | STRIPED)) == 0) & (lengths >= least)
        return found

    def suspects(self, start: int, end: int, rack_of: npt.NDArray[np.uint16] | None) -> list[int]:
        """Return those of the slots from ``start`` on whose redundancy is not obviously right.

        It is right where a complete block has as many replicas as it is to have, nothing about it
        is odd, and they stand on two racks.  ``rack_of`` has a number for each storage's rack;
        None: racks do not count.
        """
        columns = self._columns
        flags = np.frombuffer(columns.flags, np.uint8)[start:end]
        expected = np.frombuffer(columns.expected, np.uint16)[start:end]
        ids = np.frombuffer(columns.ids, np.int64)[start:end]
        cells = np.frombuffer(columns.storages, np.uint16).reshape(-1, CELLS)[start:end]
        fine = (flags == 0) & ((cells != model.NO_STORAGE).sum(axis=1) == expected)
        if rack_of is not None:
            racks = rack_of[cells]
            spread = np.any((racks != racks[:, :1]) & (cells != model.NO_STORAGE), axis=1)
            fine &= (expected < model.RACKS) | spread
        odd = ~fine & (ids > 0)  # those of striped groups are below 0, an empty row has 0
        found: list[int] = (np.flatnonzero(odd) + start).tolist()
        return found

    def count_heard(self, slots: Slots, heard: Mask) -> "HeardReplicas":
        """Count the replicas of blocks on the storages that ``heard`` has True for, by number."""
        columns = self._columns
        cells = np.frombuffer(columns.storages, np.uint16).reshape(-1, CELLS)[slots]
        return HeardReplicas(
            slots,
            np.frombuffer(columns.flags, np.uint8)[slots] == 0,
            heard[cells].sum(axis=1),
            np.frombuffer(columns.expected, np.uint16)[slots],
        )

    # ---- whether all of this agrees ----

    def check(self) -> None:
        """Compare all that the parts of the map say of the same blocks.

        Raises:
            MapBroken: with the first difference.
        """
        check(self._parts)

    def check_slots(self, start: int, count: int) -> list[str]:
        """Return what is wrong with the blocks of ``count`` slots from ``start`` on."""
        return check_slots(self._parts, start, count)

"""All that a NameNode knows of blocks and replicas, and the single steps that change it.

It is changed in place, always within one call, by edits (``apply_edits``), reports
(``incremental_reports``, ``reports``) and changes of the role.  ``BlocksMap`` has the queries.

See docs/reference/blocks.md#the-map.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from journal.model import TxId
from namenode_sim.blocks import model
from namenode_sim.blocks.blocks_map import BlocksMap
from namenode_sim.blocks.columns import STRIPED
from namenode_sim.blocks.index import Ids, Mask, Slots
from namenode_sim.blocks.parts import Parts
from namenode_sim.blocks.postponed_reports import POSTPONED_LIMIT


class BlockState:
    """The one owner of what is known of blocks; each step keeps all parts of it in agreement.

    ``map`` has the queries.  The other public parts are changed by those that they serve: ``ids``
    by edits, ``invalidations`` by the DataNodes' heartbeats and reports, ``postponed_reports`` by
    reports, ``needed`` and ``rechecks`` by the checks of redundancy.
    """

    def __init__(
        self,
        *,
        minimum: int = 1,
        safe_minimum: int | None = None,
        postponed_limit: int = POSTPONED_LIMIT,
    ) -> None:
        parts = Parts(minimum, safe_minimum, postponed_limit)
        self._columns = parts.columns
        self._constructions = parts.constructions
        self._corrupt = parts.corrupt
        self._counts = parts.counts
        self._index = parts.index
        self._pending_deletions = parts.pending_deletions
        self._replicas = parts.replicas
        self._stored = parts.stored
        self._storages = parts.storages
        self.ids: Final = parts.ids
        self.invalidations: Final = parts.invalidations
        self.map: Final = BlocksMap(parts)
        self.postponed_reports: Final = parts.postponed_reports
        self.needed: Final = parts.needed
        self.rechecks: Final = parts.rechecks
        self.add_storage: Final = parts.storages.add
        self.cut_block: Final = parts.constructions.cut
        self.note_recovery: Final = parts.constructions.note_recovery
        self._applied = TxId(0)
        self._awaited: set[model.Slot] = set()
        self._role = model.Role.STANDBY
        self._starting = True

    # ---- blocks ----

    def add_block(
        self,
        file_id: int,
        block_id: int,
        length: int,
        stamp: int,
        expected: int,
        stage: model.Stage,
    ) -> model.Slot:
        flags = int(stage) | (STRIPED if block_id < 0 else 0)
        slot = self._columns.add(block_id, length, stamp, file_id, expected, flags)
        self._index.add(block_id, slot)
        if stage is not model.Stage.COMPLETE:
            self._constructions.begin(slot)
        self.ids.show(block_id, stamp)
        self._tally(slot, 1)
        return slot

    def add_complete_blocks(
        self, ids: Ids, lengths: Ids, stamps: Ids, files: Ids, expected: npt.NDArray[np.uint16]
    ) -> None:
        """Note complete blocks of an image, which nothing is known of yet."""
        first = self._columns.extend(ids, lengths, stamps, files, expected)
        self._index.extend(ids, first)
        self._counts.complete += int((ids > 0).sum())
        self.ids.show(int(ids.max()), int(stamps.max()))

    def remove_block(self, slot: model.Slot) -> None:
        """Forget a block; an active has its replicas deleted.

        Bad schedule: the last snapshot with a block goes before a truncation has copied the block's
        beginning. It stays until the copy is complete, or is forgotten.
        """
        block_id = self._columns.ids[slot]
        if self._constructions.cut_from(block_id) not in {None, slot}:
            self._awaited.add(slot)
            return
        construction = self._constructions.get(slot)
        if self._role is model.Role.ACTIVE:
            for location in () if construction is None else construction.locations:
                self.invalidate(location.storage, block_id, location.stamp)
            for number in self._replicas.storages(slot):
                if construction is None or construction.at(number) is None:
                    self.invalidate(number, block_id, self.map.own_stamp(slot, number))
        self._tally(slot, -1)
        self._stored.remove_all(slot)
        self.needed.put(slot, None)
        self.rechecks.forget(slot)
        self._end_construction(slot)
        self._index.remove(block_id)
        self._columns.release(slot)
        self.postponed_reports.pop(block_id)

    def set_stage(self, slot: model.Slot, stage: model.Stage) -> None:
        """Move a block to a stage; one that is not complete has a construction."""
        self._tally(slot, -1)
        self._columns.set_stage(slot, stage)
        self._tally(slot, 1)
        if stage is not model.Stage.COMPLETE:
            self._constructions.begin(slot)
        elif (ended := self._end_construction(slot)) is not None:
            # The replicas that a complete block's writer made may not all be reported yet.
            written = (one.storage for one in ended.locations)
            late = (number for number in written if not self._replicas.holds(slot, number))
            self.rechecks.wait_for(slot, tuple(late))

    def _end_construction(self, slot: model.Slot) -> model.Construction | None:
        ended = self._constructions.end(slot)
        source = None if ended is None or ended.cut is None else self.map.find(ended.cut.source_id)
        if source in self._awaited:
            self._awaited.discard(source)
            self.remove_block(source)
        return ended

    def complete_if_committed(self, slot: model.Slot) -> None:
        """Make a committed block complete if it has enough good replicas."""
        if self._columns.stage(slot) is model.Stage.COMMITTED and self.map.has_minimum(
            self.map.live(slot)
        ):
            self.set_stage(slot, model.Stage.COMPLETE)

    def expect_replicas(self, slot: model.Slot, expected: int) -> None:
        self._columns.expected[slot] = expected
        self.rechecks.add(slot)

    def move_block(self, slot: model.Slot, file_id: int, expected: int) -> None:
        self._columns.files[slot] = file_id
        self.expect_replicas(slot, expected)

    def set_length(self, slot: model.Slot, length: int) -> None:
        """Note the length of a block that is being written; no edit says it yet."""
        self._columns.lengths[slot] = length

    def revise(self, slot: model.Slot, stamp: int, length: int) -> None:
        """Note the stamp and length that an edit shows for a block that is being written."""
        columns = self._columns
        if columns.stamps[slot] != stamp:
            self._drop_other_stamps(slot, stamp)
        columns.stamps[slot], columns.lengths[slot] = stamp, length
        self.ids.show(columns.ids[slot], stamp)

    def _drop_other_stamps(self, slot: model.Slot, stamp: int) -> None:
        """Drop replicas with another stamp: their DataNodes fell out of the pipeline."""
        for number in self._constructions.restamp(slot, stamp):
            self.drop(slot, self._storages.at(number))

    def reopen(self, slot: model.Slot) -> None:
        """Note that a complete block is written again, where it has good replicas.

        None of its replicas is to be deleted any more.
        """
        block_id = self._columns.ids[slot]
        stamp, length = self._columns.stamps[slot], self._columns.lengths[slot]
        numbers = self._replicas.storages(slot)
        for number in numbers:
            self.invalidations.forget(number, block_id)
            self._pending_deletions.forget(slot, number)
        good = [number for number in numbers if self.map.is_good(slot, number)]
        self.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)
        self._constructions.put_all(
            slot,
            tuple(model.Location(one, model.ReplicaState.FINALIZED, stamp, length) for one in good),
        )

    def _tally(self, slot: model.Slot, sign: int) -> None:
        columns = self._columns
        if columns.stage(slot) is model.Stage.COMPLETE and not columns.flags[slot] & STRIPED:
            self._counts.add(self.map.live(slot), sign)
        if sign > 0:
            self.rechecks.add(slot)

    # ---- replicas ----

    def take(self, slot: model.Slot, storage: model.Storage) -> None:
        """Note a good replica; one on another storage of the same DataNode it replaces.

        A committed block is complete once it has enough of them.
        """
        self._tally(slot, -1)
        self._stored.add(slot, storage)
        stamp = self._columns.stamps[slot]
        mark = self._corrupt.of(slot).get(storage.number)
        if mark is not None and mark.reason is model.Reason.GENSTAMP_MISMATCH:
            self._corrupt.forget(slot, storage.number)
            self._pending_deletions.forget(slot, storage.number)
        elif mark is not None and mark.stamp is not None:  # a recovery may have changed it
            self._corrupt.put(slot, storage.number, replace(mark, stamp=stamp))
        self._tally(slot, 1)
        if self._constructions.get(slot) is not None and self.map.is_good(slot, storage.number):
            length = self._columns.lengths[slot]
            final = model.Location(storage.number, model.ReplicaState.FINALIZED, stamp, length)
            self._constructions.put(slot, final)
            self.complete_if_committed(slot)

    def take_all(self, slots: Slots, storage: model.Storage) -> Mask:
        """Note good replicas of complete blocks without corrupt ones; return which were taken.

        The others have no free cell, or are on another storage of the same DataNode.
        """
        fits, counts = self._stored.extend(slots, storage)
        self._counts.safe += int((counts[fits] + 1 == self._counts.safe_minimum).sum())
        if self.rechecks.is_started():
            self.rechecks.update(slots[fits].tolist())
        return fits

    def drop(self, slot: model.Slot, storage: model.Storage) -> None:
        """Note that a storage has no replica of a block, or that the one it had does not count."""
        self._tally(slot, -1)
        self._stored.remove(slot, storage)
        self._tally(slot, 1)
        self._constructions.drop(slot, storage.number)

    def lose(self, slot: model.Slot, storage: model.Storage) -> None:
        """Note that a replica is gone with its storage, which may come back with it."""
        self._constructions.lose(slot, storage.number)
        self.drop(slot, storage)

    def lose_some(self, storage: model.Storage, most: int) -> int:
        """Drop up to ``most`` replicas of a storage that is gone; return how many were dropped."""
        count = min(most, len(storage.slots))
        for _ in range(count):
            self.lose(model.Slot(storage.slots[-1]), storage)
        return count

    def mark_corrupt(
        self, slot: model.Slot, storage: model.Storage, mark: model.CorruptMark
    ) -> None:
        self._tally(slot, -1)
        self._stored.add(slot, storage)
        # An order may have named another stamp.
        self._pending_deletions.forget(slot, storage.number)
        self._corrupt.put(slot, storage.number, mark)
        self._tally(slot, 1)
        self._constructions.drop(slot, storage.number)

    def note(self, slot: model.Slot, storage: model.Storage, location: model.Location) -> None:
        """Note a replica of a block that is being written; only a finalized one has a cell."""
        known = self._constructions[slot].at(storage.number)
        if known is not None and model.newness(known) > model.newness(location):
            return
        mark = self._corrupt.of(slot).get(storage.number)
        if (
            mark is not None
            and mark.reason is model.Reason.CORRUPTION_REPORTED
            and mark.stamp in {None, location.stamp}
        ):
            return  # the very replica that was found damaged
        self._stored.leave_others(slot, storage)
        self._corrupt.forget(slot, storage.number)
        if location.state is model.ReplicaState.FINALIZED:
            self._stored.add(slot, storage)
        else:
            self._stored.remove(slot, storage)
        self._constructions.put(slot, location)

    def expect(self, slot: model.Slot, locations: tuple[model.Location, ...]) -> None:
        """Note where a block that is being written is to be, instead of what was known."""
        stamp = self._columns.stamps[slot]
        for number in self._constructions.expect(slot, locations, stamp):
            # A replica that fell out of a pipeline and is in the next one is not corrupt any more.
            if number in self._corrupt.of(slot):
                self._stored.remove(slot, self._storages.at(number))

    # ---- orders ----

    def order_deletion(self, slot: model.Slot, number: model.StorageNumber, now: float) -> None:
        """Have a storage delete its replica of a block; it counts no more."""
        self.invalidate(number, self._columns.ids[slot], self.map.own_stamp(slot, number))
        self._pending_deletions.add(slot, number, now)

    def invalidate(self, number: model.StorageNumber, block_id: int, stamp: int) -> None:
        """Have a storage delete a replica, once the edits applied so far are durable."""
        self.invalidations.add(number, block_id, stamp, self._applied)

    # ---- storages ----

    def registered(self, node: str) -> None:
        """Note that a DataNode registers anew: what it lost while it was away is not known.

        Orders that it had got may be lost as well.
        """
        for storage in self._storages.of(node):
            for slot in self._pending_deletions.of(storage.number):
                stamp = self.map.own_stamp(slot, storage.number)
                self.invalidate(storage.number, self._columns.ids[slot], stamp)
            storage.forget_reports()
            self.postponed_reports.drop_storage(storage.number)

    def distrust(self, storage: model.Storage) -> None:
        """Note that a storage is gone: nothing that it held proves anything, it gets no orders."""
        storage.confirmed = storage.heartbeated = False
        self.invalidations.drop_storage(storage.number)

    def empty_storage(self, storage: model.Storage) -> None:
        """Note that nothing a storage holds counts: it failed, or its DataNode is dead."""
        for slot in storage.slots[::-1]:
            self.lose(model.Slot(slot), storage)
        self._constructions.lose_all(storage.number)
        self.postponed_reports.drop_storage(storage.number)
        self.invalidations.drop_storage(storage.number)
        storage.forget_reports()

    def remove_storage(self, storage: model.Storage) -> None:
        self.empty_storage(storage)
        self._constructions.forget_storage(storage.number)
        self._storages.remove(storage)

    # ---- the role ----

    @property
    def role(self) -> model.Role:
        """Whether reports are judged as on an active or as on a standby."""
        return self._role

    @property
    def applied(self) -> TxId:
        return self._applied

    def is_starting(self) -> bool:
        """Return whether this NameNode is in the safe mode of its start."""
        return self._starting

    def begin_edit(self, txid: TxId) -> None:
        """Note that an edit is being applied, on which orders rest from now on."""
        self._applied = txid

    def set_starting(self, *, starting: bool) -> None:
        self._starting = starting

    def count_future_bytes(self, length: int) -> None:
        """Count a replica that is newer than all edits; the end of safe mode would delete it."""
        self._counts.bytes_in_future += length

    def give_up_future_bytes(self) -> None:
        """Forget replicas that are newer than all edits: an operator gives them up."""
        self._counts.bytes_in_future = 0

    def activate(self) -> None:
        """Become the active; what storages held before does not prove that they hold it now."""
        self._role = model.Role.ACTIVE
        self._clear_orders()
        for storage in self._storages:
            storage.confirmed = storage.heartbeated = False
        self.ids.activate()

    def demote(self) -> None:
        """Become a standby, which orders nothing, postpones reports and recovers no block."""
        self._role = model.Role.STANDBY
        self._clear_orders()
        self._constructions.forget_recoveries()
        for slot in self._constructions:
            if self._columns.stage(slot) is model.Stage.UNDER_RECOVERY:
                self.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)

    def _clear_orders(self) -> None:
        """Forget all orders, and what a former check of redundancy has found."""
        self.invalidations.clear()
        self._pending_deletions.clear()
        self.needed.clear()
        self.rechecks.stop()

"""Bugs planted into the map of blocks, each of which random edits and reports must show."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from journal.model import TxId
from namenode_sim.blocks import apply_edits, incremental_reports, reports
from namenode_sim.blocks.blocks_map import BlocksMap
from namenode_sim.blocks.columns import CELLS
from namenode_sim.blocks.deletion_orders import Invalidations
from namenode_sim.blocks.model import (
    NO_STORAGE,
    CorruptMark,
    Reason,
    Role,
    Slot,
    Stage,
    Storage,
    StorageNumber,
)
from namenode_sim.blocks.postponed_reports import PostponedReports, ReplicaReport
from namenode_sim.blocks.replicas import Replicas, StoredReplicas
from namenode_sim.blocks.state import BlockState
from namenode_sim.namespace.changes import BlockChange, StampGiven
from tests.simulation.engine.mutants import Planting, all_of, replacing


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and how to put it into the product."""

    name: str
    plant: Planting


_follow = apply_edits._apply
_deleted = incremental_reports._take_in_deletion
_put = PostponedReports.put
_registered = BlockState.registered


def _nothing(*_arguments: object, **_named: object) -> None: ...


def _activate_all_confirmed(state: BlockState) -> None:
    confirmed = {storage.number for storage in state.map.storages if storage.confirmed}
    _activate(state)
    for storage in state.map.storages:
        storage.confirmed = storage.number in confirmed


def _activate_with_old_orders(state: BlockState) -> None:
    kept = list(state.invalidations)
    _activate(state)
    for order in kept:
        state.invalidations.add(*order)


_activate = incremental_reports.activate


def _demote_with_orders(state: BlockState) -> None:
    orders = list(state.invalidations)
    _demote(state)
    for order in orders:
        state.invalidations.add(*order)


_demote = BlockState.demote


def _any_report_confirms(state: BlockState, storage: Storage, *, made_after: float) -> None:
    _finish(state, storage, made_after=made_after)
    storage.confirmed = True


_finish = reports.finish


def _replaces(
    waiting: PostponedReports, block_id: int, number: StorageNumber, told: ReplicaReport
) -> object:
    _forget(waiting, block_id, number)
    return _put(waiting, block_id, number, told)


_forget = PostponedReports.forget


def _any_stamp(orders: Invalidations, number: StorageNumber, block_id: int, _stamp: int) -> bool:
    return block_id in orders.blocks_of(number)


def _at_once(
    orders: Invalidations, number: StorageNumber, _durable: TxId, limit: int
) -> list[tuple[int, int]]:
    return _take_due(orders, number, TxId(2**62), limit)


_take_due = Invalidations.take_due


def _given_is_seen(state: BlockState, change: BlockChange) -> None:
    _follow(state, change)
    if isinstance(change, StampGiven):
        state.ids.seen_stamp = max(state.ids.seen_stamp, change.stamp)


def _deleted_now(
    state: BlockState, storage: Storage, block_id: int, told: ReplicaReport, *, from_future: bool
) -> None:
    _deleted(state, storage, block_id, told, from_future=False)  # type: ignore[arg-type]


def _finished_without_a_look(state: BlockState, slot: Slot) -> None:
    is_active = state.role is Role.ACTIVE
    state.set_stage(slot, Stage.COMMITTED if is_active else Stage.COMPLETE)
    state.complete_if_committed(slot)


def _complete_at_once(state: BlockState, slot: Slot) -> None:
    if state.map.block(slot).stage is Stage.COMMITTED:
        state.set_stage(slot, Stage.COMPLETE)


def _removed_without_the_swap(replicas: Replicas, slot: Slot, storage: Storage) -> None:
    position = replicas._take_out(slot, storage.number)
    last = storage.slots.pop()
    if position < len(storage.slots):
        storage.slots[position] = last


def _gap_stays(replicas: Replicas, slot: Slot, number: int) -> int:
    columns, cell = replicas._columns, replicas._cell(slot, number)
    if cell is None:
        return _take_out(replicas, slot, StorageNumber(number))
    columns.storages[cell] = NO_STORAGE
    return columns.positions[cell]


_take_out = Replicas._take_out


def _two_on_a_node(stored: StoredReplicas, slot: Slot, storage: Storage) -> None:
    if not stored.cells.holds(slot, storage.number):
        stored.cells.add(slot, storage)


def _corrupt_ones_live(blocks: BlocksMap, slot: Slot) -> int:
    return len(blocks.storages_of(slot))


def _all_counted(state: BlockState, slot: Slot, sign: int) -> None:
    if state.map.block(slot).id > 0:
        state._counts.add(state.map.live(slot), sign)


def _nothing_odd(
    _state: BlockState, _storage: Storage, rows: reports.Rows
) -> npt.NDArray[np.bool_]:
    return np.zeros(len(rows), bool)


def _reopened_nowhere(state: BlockState, slot: Slot) -> None:
    for number in state.map.storages_of(slot):
        if state.map.is_good(slot, number):
            state.drop(slot, state.map.storages.at(number))
    state.set_stage(slot, Stage.UNDER_CONSTRUCTION)


def _reopened_with_orders(state: BlockState, slot: Slot) -> None:
    kept = [order for order in state.invalidations if order[1] == state.map.block(slot).id]
    _reopen(state, slot)
    for order in kept:
        state.invalidations.add(*order)


_reopen = BlockState.reopen


def _registered_with_old_reports(state: BlockState, node: str) -> None:
    kept = [
        (b, n, t) for b, n, t in state.postponed_reports if state.map.storages.at(n).node == node
    ]
    _registered(state, node)
    for block_id, number, told in kept:
        state.postponed_reports.put(block_id, number, told)


def _stored_stamp_deletes(state: BlockState, number: StorageNumber, block_id: int, _: int) -> None:
    slot = state.map.find(block_id)
    stamp = _ if slot is None else state.map.block(slot).stamp
    state.invalidations.add(number, block_id, stamp, state.applied)


def _marked_for_ever(state: BlockState, slot: Slot, storage: Storage, mark: CorruptMark) -> None:
    _mark(state, slot, storage, replace(mark, reason=Reason.SIZE_MISMATCH))


_mark = BlockState.mark_corrupt


def _fourth_in_the_third_cell(replicas: Replicas, slot: Slot, storage: Storage) -> None:
    cell = replicas._cell(slot, NO_STORAGE)
    cell = slot * CELLS + CELLS - 1 if cell is None else cell
    replicas._columns.storages[cell] = storage.number
    replicas._columns.positions[cell] = len(storage.slots)
    storage.slots.append(slot)


BUGS: Final = (
    Bug("storages stay confirmed over an activation",
        replacing(incremental_reports, "activate", _activate_all_confirmed)),
    Bug("a report before the first heartbeat confirms",
        replacing(reports, "finish", _any_report_confirms)),
    Bug("orders of the former term are kept",
        all_of(replacing(incremental_reports, "activate", _activate_with_old_orders),
               replacing(BlockState, "demote", _demote_with_orders))),
    Bug("a standby drops reports from the future",
        replacing(incremental_reports, "_postpone", _nothing)),
    Bug("a standby judges deletions from the future at once",
        replacing(incremental_reports, "_take_in_deletion", _deleted_now)),
    Bug("an older report goes on waiting when a newer one was taken",
        all_of(replacing(PostponedReports, "forget", _nothing),
               replacing(PostponedReports, "put", _replaces))),
    Bug("what waits outlives a registration",
        replacing(BlockState, "registered", _registered_with_old_reports)),
    Bug("a late report of an old stamp marks the new replica corrupt",
        replacing(BlocksMap, "holds_current", lambda *_: False)),
    Bug("a full report removes replicas that are newer than it",
        replacing(incremental_reports, "_remember", _nothing)),
    Bug("a recovered pipeline keeps replicas of the old stamp",
        replacing(BlockState, "_drop_other_stamps", _nothing)),
    Bug("an order to delete holds for any stamp",
        replacing(Invalidations, "has", _any_stamp)),
    Bug("orders leave before their edits are durable",
        replacing(Invalidations, "take_due", _at_once)),
    Bug("a replica is ordered to be deleted by the block's stamp",
        replacing(BlockState, "invalidate", _stored_stamp_deletes)),
    Bug("a stamp that was given out counts as seen",
        replacing(apply_edits, "_apply", _given_is_seen)),
    Bug("a completed block keeps finalized replicas of another length",
        replacing(apply_edits, "finish", _finished_without_a_look)),
    Bug("a committed block is complete without replicas",
        replacing(BlockState, "complete_if_committed", _complete_at_once)),
    Bug("a reopened block forgets where it is", replacing(BlockState, "reopen", _reopened_nowhere)),
    Bug("an append leaves orders to delete its block",
        replacing(BlockState, "reopen", _reopened_with_orders)),
    Bug("a removal does not correct the moved position",
        replacing(Replicas, "remove", _removed_without_the_swap)),
    Bug("a removal leaves a gap", replacing(Replicas, "_take_out", _gap_stays)),
    Bug("a fourth replica takes the third one's cell",
        replacing(Replicas, "add", _fourth_in_the_third_cell)),
    Bug("two storages of a DataNode both count",
        replacing(StoredReplicas, "add", _two_on_a_node)),
    Bug("corrupt replicas make a block safe", replacing(BlocksMap, "live", _corrupt_ones_live)),
    Bug("safe mode waits for blocks that are being written",
        replacing(BlockState, "_tally", _all_counted)),
    Bug("a mark of a wrong stamp is never cleared",
        replacing(BlockState, "mark_corrupt", _marked_for_ever)),
    Bug("a full report passes over what waits or is to be deleted",
        replacing(reports, "_odd", _nothing_odd)),
    Bug("an image's open files are not loaded", replacing(apply_edits, "_load_file", _nothing)),
)  # fmt: skip

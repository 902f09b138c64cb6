"""Bugs planted into the map of blocks, each of which random edits and reports must show."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from journal.model import TxId
from namenode_sim.blocks import follow, incoming, model, reports
from namenode_sim.blocks.columns import CELLS
from namenode_sim.blocks.invalidations import Invalidations
from namenode_sim.blocks.replicas import Replicas
from namenode_sim.blocks.state import BlockState
from namenode_sim.blocks.waiting import Told, Waiting
from namenode_sim.namespace.changes import BlockChange, StampGiven
from tests.simulation.engine.mutants import Planting, all_of, replacing


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, and how to put it into the product."""

    name: str
    plant: Planting


_follow = follow._follow
_deleted = incoming._deleted
_put = Waiting.put
_registered = BlockState.registered


def _nothing(*_arguments: object, **_named: object) -> None:
    """A step that is left out."""


def _activate_all_confirmed(state: BlockState) -> None:
    confirmed = {storage.number for storage in state.storages if storage.confirmed}
    _activate(state)
    for storage in state.storages:
        storage.confirmed = storage.number in confirmed


def _activate_with_old_orders(state: BlockState) -> None:
    kept = list(state.invalidations)
    _activate(state)
    for order in kept:
        state.invalidations.add(*order)


_activate = incoming.activate


def _demote_with_orders(state: BlockState) -> None:
    orders = list(state.invalidations)
    _demote(state)
    for order in orders:
        state.invalidations.add(*order)


_demote = BlockState.demote


def _any_report_confirms(state: BlockState, storage: model.Storage, *, made_after: float) -> None:
    _finish(state, storage, made_after=made_after)
    storage.confirmed = True


_finish = reports.finish


def _replaces(waiting: Waiting, block_id: int, number: model.StorageNumber, told: Told) -> object:
    _forget(waiting, block_id, number)
    return _put(waiting, block_id, number, told)


_forget = Waiting.forget


def _any_stamp(
    orders: Invalidations, number: model.StorageNumber, block_id: int, _stamp: int
) -> bool:
    return block_id in orders.blocks_of(number)


def _at_once(
    orders: Invalidations, number: model.StorageNumber, _durable: TxId, limit: int
) -> list[tuple[int, int]]:
    return _take_due(orders, number, TxId(2**62), limit)


_take_due = Invalidations.take_due


def _given_is_seen(state: BlockState, change: BlockChange) -> None:
    _follow(state, change)
    if isinstance(change, StampGiven):
        state.seen_stamp = max(state.seen_stamp, change.stamp)


def _deleted_now(
    state: BlockState, storage: model.Storage, block_id: int, told: Told, *, from_future: bool
) -> None:
    _deleted(state, storage, block_id, told, from_future=False)  # type: ignore[arg-type]


def _finished_without_a_look(state: BlockState, slot: model.Slot) -> None:
    is_active = state.role is model.Role.ACTIVE
    state.set_stage(slot, model.Stage.COMMITTED if is_active else model.Stage.COMPLETE)
    state.complete_if_committed(slot)


def _complete_at_once(state: BlockState, slot: model.Slot) -> None:
    if state.columns.stage(slot) is model.Stage.COMMITTED:
        state.set_stage(slot, model.Stage.COMPLETE)


def _removed_without_the_swap(replicas: Replicas, slot: model.Slot, storage: model.Storage) -> None:
    position = replicas._take_out(slot, storage.number)
    last = storage.slots.pop()
    if position < len(storage.slots):
        storage.slots[position] = last


def _gap_stays(replicas: Replicas, slot: model.Slot, number: int) -> int:
    columns, cell = replicas._columns, replicas._cell(slot, number)
    if cell is None:
        return _take_out(replicas, slot, model.StorageNumber(number))
    columns.storages[cell] = model.NO_STORAGE
    return columns.positions[cell]


_take_out = Replicas._take_out


def _two_on_a_node(state: BlockState, slot: model.Slot, storage: model.Storage) -> None:
    if not state.replicas.holds(slot, storage.number):
        state.replicas.add(slot, storage)


def _corrupt_ones_live(state: BlockState, slot: model.Slot) -> int:
    return state.replicas.count(slot)


def _all_counted(state: BlockState, slot: model.Slot, sign: int) -> None:
    if state.columns.ids[slot] > 0:
        state.complete += sign
        state.safe += sign * (state.live(slot) >= state.safe_minimum)


def _nothing_odd(
    _state: BlockState, _storage: model.Storage, rows: reports.Rows
) -> npt.NDArray[np.bool_]:
    return np.zeros(len(rows), bool)


def _reopened_nowhere(state: BlockState, slot: model.Slot) -> None:
    for number in state.replicas.storages(slot):
        if state.is_good(slot, number):
            state.drop(slot, state.storages.at(number))
    state.set_stage(slot, model.Stage.UNDER_CONSTRUCTION)
    state.constructions[slot] = model.Construction()


def _reopened_with_orders(state: BlockState, slot: model.Slot) -> None:
    kept = [order for order in state.invalidations if order[1] == state.columns.ids[slot]]
    _reopen(state, slot)
    for order in kept:
        state.invalidations.add(*order)


_reopen = follow._reopen


def _registered_with_old_reports(state: BlockState, node: str) -> None:
    kept = [(b, n, t) for b, n, t in state.waiting if state.storages.at(n).node == node]
    _registered(state, node)
    for block_id, number, told in kept:
        state.waiting.put(block_id, number, told)


def _stored_stamp_deletes(
    state: BlockState, number: model.StorageNumber, block_id: int, _: int
) -> None:
    slot = state.index.get(block_id)
    stamp = _ if slot is None else state.columns.stamps[slot]
    state.invalidations.add(number, block_id, stamp, state.applied)


def _marked_for_ever(
    state: BlockState, slot: model.Slot, storage: model.Storage, mark: model.CorruptMark
) -> None:
    _mark(state, slot, storage, replace(mark, reason=model.Reason.SIZE_MISMATCH))


_mark = BlockState.mark_corrupt


def _fourth_in_the_third_cell(replicas: Replicas, slot: model.Slot, storage: model.Storage) -> None:
    cell = replicas._cell(slot, model.NO_STORAGE)
    cell = slot * CELLS + CELLS - 1 if cell is None else cell
    replicas._columns.storages[cell] = storage.number
    replicas._columns.positions[cell] = len(storage.slots)
    storage.slots.append(slot)


BUGS: Final = (
    Bug("storages stay confirmed over an activation",
        replacing(incoming, "activate", _activate_all_confirmed)),
    Bug("a report before the first heartbeat confirms",
        replacing(reports, "finish", _any_report_confirms)),
    Bug("orders of the former term are kept",
        all_of(replacing(incoming, "activate", _activate_with_old_orders),
               replacing(BlockState, "demote", _demote_with_orders))),
    Bug("a standby drops reports from the future", replacing(incoming, "_wait", _nothing)),
    Bug("a standby judges deletions from the future at once",
        replacing(incoming, "_deleted", _deleted_now)),
    Bug("an older report goes on waiting when a newer one was taken",
        all_of(replacing(Waiting, "forget", _nothing), replacing(Waiting, "put", _replaces))),
    Bug("what waits outlives a registration",
        replacing(BlockState, "registered", _registered_with_old_reports)),
    Bug("a late report of an old stamp marks the new replica corrupt",
        replacing(incoming, "_holds_now", lambda *_: False)),
    Bug("a full report removes replicas that are newer than it",
        replacing(incoming, "_remember", _nothing)),
    Bug("a recovered pipeline keeps replicas of the old stamp",
        replacing(follow, "_restamp", _nothing)),
    Bug("an order to delete holds for any stamp",
        replacing(Invalidations, "has", _any_stamp)),
    Bug("orders leave before their edits are durable",
        replacing(Invalidations, "take_due", _at_once)),
    Bug("a replica is ordered to be deleted by the block's stamp",
        replacing(BlockState, "invalidate", _stored_stamp_deletes)),
    Bug("a stamp that was given out counts as seen", replacing(follow, "_follow", _given_is_seen)),
    Bug("a completed block keeps finalized replicas of another length",
        replacing(follow, "finish", _finished_without_a_look)),
    Bug("a committed block is complete without replicas",
        replacing(BlockState, "complete_if_committed", _complete_at_once)),
    Bug("a reopened block forgets where it is", replacing(follow, "_reopen", _reopened_nowhere)),
    Bug("an append leaves orders to delete its block",
        replacing(follow, "_reopen", _reopened_with_orders)),
    Bug("a removal does not correct the moved position",
        replacing(Replicas, "remove", _removed_without_the_swap)),
    Bug("a removal leaves a gap", replacing(Replicas, "_take_out", _gap_stays)),
    Bug("a fourth replica takes the third one's cell",
        replacing(Replicas, "add", _fourth_in_the_third_cell)),
    Bug("two storages of a DataNode both count",
        replacing(BlockState, "_add_cell", _two_on_a_node)),
    Bug("corrupt replicas make a block safe", replacing(BlockState, "live", _corrupt_ones_live)),
    Bug("safe mode waits for blocks that are being written",
        replacing(BlockState, "_tally", _all_counted)),
    Bug("a mark of a wrong stamp is never cleared",
        replacing(BlockState, "mark_corrupt", _marked_for_ever)),
    Bug("a full report passes over what waits or is to be deleted",
        replacing(reports, "_odd", _nothing_odd)),
    Bug("an image's open files are not loaded", replacing(follow, "_load_file", _nothing)),
)  # fmt: skip

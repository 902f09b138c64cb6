"""The map follows the namespace: from an image in one pass, then edit by edit in the same turn.

A block whose writer has reported its length is committed before an edit contains that.
See docs/reference/blocks.md#following-edits and docs/reference/blocks.md#the-end-of-a-block.
"""

from collections.abc import Iterable
from typing import Final, assert_never

import numpy as np

from journal.model import TxId
from namenode_sim.blocks import model
from namenode_sim.blocks.incremental_reports import take_in, take_in_postponed
from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.blocks.state import BlockState
from namenode_sim.namespace.changes import (
    BlockAdded,
    BlockChange,
    BlockCut,
    BlockIdGiven,
    BlockSettled,
    BlocksGone,
    BlocksMoved,
    ReplicationSet,
    StampGiven,
    blocks_held,
    expected_replication,
)
from namenode_sim.namespace.file_numbers import HEAD_SIZE, PACKED_BLOCK
from namenode_sim.namespace.inode import INodeFile
from namenode_sim.namespace.namespace import Namespace

AT_ONCE: Final = 50_000
"""The number of files that are loaded together."""


def load(state: BlockState, namespace: Namespace) -> None:
    """Note all blocks of a namespace; the map is empty before."""
    counters = namespace.counters
    state.ids.load_legacy(counters)
    plain: list[INodeFile] = []
    for node in namespace.tree.inodes.values():
        if not isinstance(node, INodeFile):
            continue
        traits = node.traits
        if traits.history is not None or traits.under_construction is not None:
            _load_file(state, node)
        elif len(node.numbers) > HEAD_SIZE:
            plain.append(node)
        if len(plain) == AT_ONCE:
            _load_plain(state, plain)
            plain.clear()
    _load_plain(state, plain)
    state.ids.load_given(counters)
    state.begin_edit(namespace.last_applied)


def _load_file(state: BlockState, file: INodeFile) -> None:
    expected = expected_replication(file)
    for block_id, held in blocks_held(file):
        stage = Stage.COMPLETE if held.complete else Stage.UNDER_CONSTRUCTION
        state.add_block(file.id, block_id, held.length, held.stamp, expected, stage)


def _load_plain(state: BlockState, files: list[INodeFile]) -> None:
    """Load closed files without snapshots, which nearly all files are: all their blocks are
    complete.
    """
    if not files:
        return
    packed = [file.numbers for file in files]
    expected = np.array([file.traits.replication for file in files], np.uint16)
    # A file's numbers are three of its own, its id first, and then three of each block.
    table = np.frombuffer(b"".join(packed), ">i8").astype(np.int64).reshape(-1, 3)
    rows = np.array([len(numbers) for numbers in packed], np.int64) // PACKED_BLOCK.size
    heads = np.cumsum(rows) - rows
    of_files, wanted = np.repeat(table[heads, 0], rows - 1), np.repeat(expected, rows - 1)
    blocks = np.delete(table, heads, axis=0)
    state.add_complete_blocks(blocks[:, 0], blocks[:, 1], blocks[:, 2], of_files, wanted)


def apply_edit(state: BlockState, txid: TxId, changes: Iterable[BlockChange]) -> None:
    """Do what one edit changes about blocks, and judge the reports that have waited for it."""
    state.begin_edit(txid)
    for change in changes:
        _apply(state, change)


def _apply(state: BlockState, change: BlockChange) -> None:  # noqa: C901 - flat dispatch
    match change:
        case BlockAdded():
            _added(state, change)
        case BlockSettled():
            _settled(state, change)
        case BlockCut():
            cut = model.Cut(change.length, change.stamp, change.source_id)
            state.cut_block(state.map.slot(change.block_id), cut)
        case BlocksGone():
            for block_id in change.block_ids:
                state.remove_block(state.map.slot(block_id))
        case BlocksMoved():
            for block_id in change.block_ids:
                state.move_block(state.map.slot(block_id), change.file_id, change.expected)
        case ReplicationSet():
            for block_id in change.block_ids:
                state.expect_replicas(state.map.slot(block_id), change.expected)
        case StampGiven():
            state.ids.give_stamp(change.stamp, active=state.role is model.Role.ACTIVE)
        case BlockIdGiven():
            state.ids.give_id(change.block_id, active=state.role is model.Role.ACTIVE)
        case _:
            assert_never(change)


def _added(state: BlockState, change: BlockAdded) -> None:
    stage = Stage.COMPLETE if change.complete else Stage.UNDER_CONSTRUCTION
    state.add_block(
        change.file_id, change.block_id, change.length, change.stamp, change.expected, stage
    )
    take_in_postponed(state, change.block_id)


def _settled(state: BlockState, change: BlockSettled) -> None:
    slot = state.map.slot(change.block_id)
    block = state.map.block(slot)
    same = (block.stamp, block.length) == (change.stamp, change.length)
    if block.stage is Stage.COMPLETE:
        if change.complete and same:
            return
        state.reopen(slot)
    elif block.stage is Stage.COMMITTED and not change.complete:
        # A former active may never have heard of the replicas that completed it.
        state.set_stage(slot, Stage.UNDER_CONSTRUCTION)
    state.revise(slot, change.stamp, change.length)
    if change.complete:
        finish(state, slot)
    take_in_postponed(state, change.block_id)


def commit(state: BlockState, slot: Slot, length: int) -> None:
    """Note the final length of a block, which its writer has reported; no edit contains it yet."""
    state.set_length(slot, length)
    finish(state, slot)


def finish(state: BlockState, slot: Slot) -> None:
    """Edits are the truth on a standby; on the active a block waits for enough replicas.

    Replicas that were finalized while the block was being written are judged by the length and
    stamp that it has now.
    """
    block = state.map.block(slot)
    again: list[tuple[model.StorageNumber, model.Reported]] = []
    for location in state.map.construction(slot).locations:
        fits = (location.stamp, location.length) == (block.stamp, block.length)
        if location.state is model.ReplicaState.FINALIZED and not fits:
            again.append(
                (location.storage, model.Reported(location.state, location.stamp, location.length))
            )
            state.drop(slot, state.map.storages.at(location.storage))
    is_active = state.role is model.Role.ACTIVE
    state.set_stage(slot, Stage.COMMITTED if is_active else Stage.COMPLETE)
    state.complete_if_committed(slot)
    for number, reported in again:
        take_in(state, state.map.storages.at(number), block.id, reported)


def would_complete(state: BlockState, slot: Slot, length: int) -> bool:
    """Return whether enough replicas of a block being written are final, with this length."""
    whole = model.ReplicaState.FINALIZED, state.map.block(slot).stamp, length
    locations = state.map.construction(slot).locations
    found = sum((one.state, one.stamp, one.length) == whole for one in locations)
    return state.map.has_minimum(found)

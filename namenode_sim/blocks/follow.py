"""The map follows the namespace: from an image in one pass, then edit by edit in the same turn.

See docs/reference/blocks.md#following-edits.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, assert_never

import numpy as np

from journal.model import TxId
from namenode_sim.blocks.commit import finish
from namenode_sim.blocks.incoming import judge_waiting
from namenode_sim.blocks.model import (
    Construction,
    Cut,
    Location,
    ReplicaState,
    Role,
    Slot,
    Stage,
)
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
"""So many files are loaded together."""


def load(state: BlockState, namespace: Namespace) -> None:
    """Note all blocks of a namespace; the map is empty before."""
    counters = namespace.counters
    state.legacy_stamp = counters.generation_stamp_v1
    state.legacy_stamp_limit = counters.generation_stamp_v1_limit
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
    state.given_stamp = max(counters.generation_stamp_v2, state.seen_stamp)
    state.given_id = max(counters.last_block_id, state.seen_id)
    state.applied = namespace.last_applied


def _load_file(state: BlockState, file: INodeFile) -> None:
    expected = expected_replication(file)
    for block_id, held in blocks_held(file):
        stage = Stage.COMPLETE if held.complete else Stage.UNDER_CONSTRUCTION
        state.add_block(file.id, block_id, held.length, held.stamp, expected, stage)


def _load_plain(state: BlockState, files: list[INodeFile]) -> None:
    """Closed files without snapshots, which nearly all are: all blocks are complete."""
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
    ids, lengths, stamps = blocks[:, 0], blocks[:, 1], blocks[:, 2]
    state.index.extend(ids, state.columns.extend(ids, lengths, stamps, of_files, wanted))
    state.complete += int((ids > 0).sum())
    state.show(int(ids.max()), int(stamps.max()))


def follow(state: BlockState, txid: TxId, changes: Iterable[BlockChange]) -> None:
    """Do what one edit changes about blocks, and judge the reports that have waited for it."""
    state.applied = txid
    for change in changes:
        _follow(state, change)


def _follow(state: BlockState, change: BlockChange) -> None:  # noqa: C901, PLR0912 - flat dispatch
    match change:
        case BlockAdded():
            _added(state, change)
        case BlockSettled():
            _settled(state, change)
        case BlockCut():
            slot = _slot(state, change.block_id)
            cut = Cut(change.length, change.stamp, change.source_id)
            state.constructions[slot] = replace(state.constructions[slot], cut=cut)
        case BlocksGone():
            for block_id in change.block_ids:
                state.remove_block(_slot(state, block_id))
        case BlocksMoved():
            for block_id in change.block_ids:
                slot = _slot(state, block_id)
                state.columns.files[slot] = change.file_id
                state.expect_replicas(slot, change.expected)
        case ReplicationSet():
            for block_id in change.block_ids:
                state.expect_replicas(_slot(state, block_id), change.expected)
        case StampGiven():
            state.given_stamp = max(state.given_stamp, change.stamp)
            if state.role is Role.ACTIVE:
                state.seen_stamp = state.given_stamp
        case BlockIdGiven():
            state.given_id = max(state.given_id, change.block_id)
            if state.role is Role.ACTIVE:
                state.seen_id = state.given_id
        case _:
            assert_never(change)


def _slot(state: BlockState, block_id: int) -> Slot:
    slot = state.index.get(block_id)
    assert slot is not None, f"block {block_id} is not in the map"
    return slot


def _added(state: BlockState, change: BlockAdded) -> None:
    stage = Stage.COMPLETE if change.complete else Stage.UNDER_CONSTRUCTION
    state.add_block(
        change.file_id, change.block_id, change.length, change.stamp, change.expected, stage
    )
    judge_waiting(state, change.block_id)


def _settled(state: BlockState, change: BlockSettled) -> None:
    slot = _slot(state, change.block_id)
    columns = state.columns
    same = (columns.stamps[slot], columns.lengths[slot]) == (change.stamp, change.length)
    if columns.stage(slot) is Stage.COMPLETE:
        if change.complete and same:
            return
        _reopen(state, slot)
    elif columns.stage(slot) is Stage.COMMITTED and not change.complete:
        # A former active may never have heard of the replicas that completed it.
        state.set_stage(slot, Stage.UNDER_CONSTRUCTION)
    if columns.stamps[slot] != change.stamp:
        _restamp(state, slot, change.stamp)
    columns.stamps[slot], columns.lengths[slot] = change.stamp, change.length
    state.show(change.block_id, change.stamp)
    if change.complete:
        finish(state, slot)
    judge_waiting(state, change.block_id)


def _reopen(state: BlockState, slot: Slot) -> None:
    """A complete block is being written again: its good replicas are where it will be written.

    None of its replicas is to be deleted any more.
    """
    stamp, length = state.columns.stamps[slot], state.columns.lengths[slot]
    for number in state.replicas.storages(slot):
        state.invalidations.forget(number, state.columns.ids[slot])
        state.doomed.forget(slot, number)
    locations = tuple(
        Location(number, ReplicaState.FINALIZED, stamp, length)
        for number in state.replicas.storages(slot)
        if state.is_good(slot, number)
    )
    state.set_stage(slot, Stage.UNDER_CONSTRUCTION)
    state.constructions[slot] = Construction(locations)


def _restamp(state: BlockState, slot: Slot, stamp: int) -> None:
    """Let go of replicas with another stamp: their DataNodes fell out of the pipeline."""
    construction = state.constructions[slot]
    state.constructions[slot] = replace(construction, lost=frozenset())
    for location in construction.locations:
        if location.stamp != stamp:
            state.drop(slot, state.storages.at(location.storage))

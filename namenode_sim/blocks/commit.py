"""The end of the writing of a block: its length is reported, then enough replicas are.

See docs/reference/blocks.md#the-end-of-a-block.
"""

from namenode_sim.blocks import model
from namenode_sim.blocks.incremental_reports import take_in
from namenode_sim.blocks.state import BlockState


def commit(state: BlockState, slot: model.Slot, length: int) -> None:
    """Note the final length of a block, which its writer has reported; no edit contains it yet."""
    state.set_length(slot, length)
    finish(state, slot)


def finish(state: BlockState, slot: model.Slot) -> None:
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
    state.set_stage(slot, model.Stage.COMMITTED if is_active else model.Stage.COMPLETE)
    state.complete_if_committed(slot)
    for number, reported in again:
        take_in(state, state.map.storages.at(number), block.id, reported)


def would_complete(state: BlockState, slot: model.Slot, length: int) -> bool:
    """Return whether enough replicas of a block being written are final, with this length."""
    whole = model.ReplicaState.FINALIZED, state.map.block(slot).stamp, length
    locations = state.map.construction(slot).locations
    found = sum((one.state, one.stamp, one.length) == whole for one in locations)
    return state.map.has_minimum(found)

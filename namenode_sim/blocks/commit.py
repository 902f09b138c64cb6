"""The end of the writing of a block: its length is told, then enough replicas are reported.

See docs/reference/blocks.md#the-end-of-a-block.
"""

from namenode_sim.blocks import model
from namenode_sim.blocks.incoming import take_in
from namenode_sim.blocks.state import BlockState


def commit(state: BlockState, slot: model.Slot, length: int) -> None:
    """Note the final length of a block, which its writer has told; no edit says it yet."""
    state.columns.lengths[slot] = length
    finish(state, slot)


def finish(state: BlockState, slot: model.Slot) -> None:
    """Edits are the truth on a standby; on the active a block waits for enough replicas.

    Replicas that were finalized while the block was being written are judged by the length and
    stamp that it has now.
    """
    columns, block_id = state.columns, state.columns.ids[slot]
    stamp, length = columns.stamps[slot], columns.lengths[slot]
    again: list[tuple[model.StorageNumber, model.Reported]] = []
    for location in state.constructions[slot].locations:
        fits = (location.stamp, location.length) == (stamp, length)
        if location.state is model.ReplicaState.FINALIZED and not fits:
            again.append(
                (location.storage, model.Reported(location.state, location.stamp, location.length))
            )
            state.drop(slot, state.storages.at(location.storage))
    is_active = state.role is model.Role.ACTIVE
    state.set_stage(slot, model.Stage.COMMITTED if is_active else model.Stage.COMPLETE)
    state.complete_if_committed(slot)
    for number, reported in again:
        take_in(state, state.storages.at(number), block_id, reported)


def would_complete(state: BlockState, slot: model.Slot, length: int) -> bool:
    """Whether enough replicas of a block that is being written are final, with this length."""
    whole = model.ReplicaState.FINALIZED, state.columns.stamps[slot], length
    locations = state.constructions[slot].locations
    found = sum((one.state, one.stamp, one.length) == whole for one in locations)
    return found >= state.minimum

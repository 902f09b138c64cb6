"""Where the maps of two NameNodes that have applied the same edits differ."""

from namenode_sim.blocks.model import Slot, Stage
from namenode_sim.blocks.state import BlockState


def difference(one: BlockState, other: BlockState) -> str:
    """Return what is not the same on both; empty if nothing is."""
    first, second = dict(one.map.items()), dict(other.map.items())
    if first.keys() != second.keys():
        return f"blocks {first.keys() ^ second.keys()} are on one NameNode only"
    for block_id, slot in first.items():
        ours, theirs = _whole(one, slot), _whole(other, second[block_id])
        if ours and theirs and ours != theirs:
            return f"{block_id} is {ours} here and {theirs} there"
    return ""


def _whole(blocks: BlockState, slot: Slot) -> tuple[int, int] | None:
    block = blocks.map.block(slot)
    return (block.stamp, block.length) if block.stage is Stage.COMPLETE else None

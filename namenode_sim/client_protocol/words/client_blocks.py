"""Blocks as clients name them, and what their writer may say of the last one."""

from dataclasses import replace

from hadoop.longs import signed
from hadoop.proto.hdfs_types_pb2 import ExtendedBlockProto
from namenode_sim.blocks.model import Stage
from namenode_sim.client_protocol.words.block_locations import blocks_now, slot_of, stage_of
from namenode_sim.client_protocol.words.errors import io_error
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.placement import Place
from namenode_sim.edits.values import Block
from namenode_sim.namespace.inode import INodeFile


def block_from_message(told: ExtendedBlockProto) -> Block:
    return Block(signed(told.blockId), told.numBytes, told.generationStamp)


def same(one: Block | None, other: Block | None) -> bool:
    """Return whether two blocks have the same id and stamp, or neither is there."""
    if one is None or other is None:
        return one is other
    return (one.block_id, one.generation_stamp) == (other.block_id, other.generation_stamp)


def name_of(block: Block | None) -> str:
    return "null" if block is None else f"blk_{block.block_id}_{block.generation_stamp}"


def pooled_name(scene: Scene, block: Block | None) -> str:
    """Return a block with its pool, as Hadoop prints an ExtendedBlock."""
    return "null" if block is None else f"{scene.cluster.pool}:{name_of(block)}"


def check_pool(scene: Scene, told: ExtendedBlockProto) -> None:
    """Refuse a block of another pool: it belongs to another file system."""
    if told.poolId != scene.cluster.pool:
        raise io_error(f"Unexpected BlockPoolId {told.poolId} - expected {scene.cluster.pool}")


def expected_places(scene: Scene, block: Block) -> list[Place]:
    """Return the present and the planned places of a block that is being written."""
    construction = scene.cluster.blocks.map.find_construction(slot_of(scene, block))
    locations = construction.locations if construction is not None else ()
    return [scene.cluster.place(one.storage) for one in locations]


def committed(scene: Scene, file: INodeFile, told: Block | None) -> Block | None:
    """Return the file's last block with the final length that its writer reports.

    None if there is nothing to commit: no block, or one whose length is known already.

    Raises:
        FsError: if this is not the file's last block, or it is under recovery.
    """
    if told is None or not file.blocks:
        return None
    last = blocks_now(scene, file)[-1]
    stage = stage_of(scene, last)
    if stage in {Stage.COMPLETE, Stage.COMMITTED}:
        return None
    if stage is Stage.UNDER_RECOVERY:
        raise io_error(f"Commit or complete block {name_of(told)}, whereas it is under recovery.")
    if told.generation_stamp != last.generation_stamp:
        raise io_error(
            f"Commit block with mismatching GS. NN has {name_of(last)}, client submits "
            f"{name_of(told)}"
        )
    if told.block_id != last.block_id:
        raise io_error(
            f"Trying to commit inconsistent block: id = {told.block_id}, expected id = "
            f"{last.block_id}"
        )
    if told.num_bytes < last.num_bytes:
        raise io_error(
            f"commitBlock length is less than the stored one {told.num_bytes} vs. {last.num_bytes}"
        )
    return replace(last, num_bytes=told.num_bytes)

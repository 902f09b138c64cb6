"""Blocks and DataNodes between their messages and our words."""

from hadoop.blocks import Block, BlockId, GenerationStamp, PoolId
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto.datanode_types_pb2 import BlockProto
from hadoop.wire.errors import MalformedTransfer

_MAX_NUMBER = (1 << 63) - 1
_MAX_LENGTH = 1 << 48


def checked_block(message: hdfs.ExtendedBlockProto, pool: PoolId) -> Block:
    """Return the block that a peer names.

    Raises:
        MalformedTransfer: if it is of another pool, or if its numbers are out of range.
    """
    if message.poolId != pool:
        raise MalformedTransfer(f"{message.poolId[:256]!r} is not the pool {pool} that is here")
    if message.generationStamp > _MAX_NUMBER or message.numBytes > _MAX_LENGTH:
        raise MalformedTransfer("a generation stamp or a length that cannot be")
    return Block(block_id_of(message.blockId), GenerationStamp(message.generationStamp))


def checked_stamp(number: int) -> GenerationStamp:
    """Return a new stamp that a peer names; raise ``MalformedTransfer`` if it is out of range."""
    if number > _MAX_NUMBER:
        raise MalformedTransfer("a generation stamp that cannot be")
    return GenerationStamp(number)


def block_of(message: BlockProto) -> Block:
    return Block(block_id_of(message.blockId), GenerationStamp(message.genStamp))


def extended(block: Block, pool: PoolId, length: int = 0) -> hdfs.ExtendedBlockProto:
    """Return the message by which clients and DataNodes name a block."""
    return hdfs.ExtendedBlockProto(
        poolId=pool,
        blockId=unsigned(block.block_id),
        generationStamp=block.stamp,
        numBytes=length,
    )


def plain(block: Block, length: int = 0) -> BlockProto:
    """Return the message, without a pool, by which NameNodes and DataNodes name a block."""
    return BlockProto(blockId=unsigned(block.block_id), genStamp=block.stamp, numBytes=length)


def address_of(target: hdfs.DatanodeInfoProto) -> str:
    """Return the transfer address of a DataNode, as Hadoop writes it in answers."""
    return f"{target.id.ipAddr}:{target.id.xferPort}"


def block_id_of(number: int) -> BlockId:
    """Return the signed id of an unsigned number: old Hadoop releases drew negative ids, too."""
    return BlockId(number - (1 << 64) if number >> 63 else number)


def unsigned(block_id: BlockId) -> int:
    return block_id & ((1 << 64) - 1)

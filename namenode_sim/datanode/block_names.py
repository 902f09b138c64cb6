"""Blocks and DataNodes between their messages and our words."""

from namenode_sim.datanode.errors import MalformedTransfer
from namenode_sim.datanode.model import Block, BlockId, GenerationStamp, PoolId
from namenode_sim.proto import hdfs_types_pb2 as hdfs
from namenode_sim.proto.datanode_types_pb2 import BlockProto

_MAX_NUMBER = (1 << 63) - 1
_MAX_LENGTH = 1 << 48


def checked_block(message: hdfs.ExtendedBlockProto, pool: PoolId) -> Block:
    """The block that a peer names.

    Raises:
        MalformedTransfer: if it is of another pool, or if its numbers cannot be.
    """
    if message.poolId != pool:
        raise MalformedTransfer(f"{message.poolId[:256]!r} is not the pool {pool} that is here")
    if message.generationStamp > _MAX_NUMBER or message.numBytes > _MAX_LENGTH:
        raise MalformedTransfer("a generation stamp or a length that cannot be")
    return Block(block_id_of(message.blockId), GenerationStamp(message.generationStamp))


def checked_stamp(number: int) -> GenerationStamp:
    """A new stamp that a peer names; raises ``MalformedTransfer`` for one that cannot be."""
    if number > _MAX_NUMBER:
        raise MalformedTransfer("a generation stamp that cannot be")
    return GenerationStamp(number)


def block_of(message: BlockProto) -> Block:
    """The block that a NameNode names."""
    return Block(block_id_of(message.blockId), GenerationStamp(message.genStamp))


def extended(block: Block, pool: PoolId, length: int = 0) -> hdfs.ExtendedBlockProto:
    """A block as clients and DataNodes name it."""
    return hdfs.ExtendedBlockProto(
        poolId=pool,
        blockId=unsigned(block.block_id),
        generationStamp=block.stamp,
        numBytes=length,
    )


def plain(block: Block, length: int = 0) -> BlockProto:
    """A block as NameNodes and DataNodes name it, without its pool."""
    return BlockProto(blockId=unsigned(block.block_id), genStamp=block.stamp, numBytes=length)


def address_of(target: hdfs.DatanodeInfoProto) -> str:
    """Where a DataNode takes blocks, as Hadoop writes it in answers."""
    return f"{target.id.ipAddr}:{target.id.xferPort}"


def block_id_of(number: int) -> BlockId:
    """The id that a message means: those that old releases of Hadoop drew may be negative."""
    return BlockId(number - (1 << 64) if number >> 63 else number)


def unsigned(block_id: BlockId) -> int:
    """An id as messages have it."""
    return block_id & ((1 << 64) - 1)

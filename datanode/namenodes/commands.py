"""Commands of a NameNode, from the answer to a heartbeat.

See docs/reference/datanode.md#commands.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from datanode.transfers.transfer import Targets
from ha.record import dataclass
from hadoop.blocks import Block, BlockId, GenerationStamp, PoolId
from hadoop.proto import block_tokens_pb2 as tokens
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import block_id_of, block_of, checked_block
from hadoop.wire.errors import MalformedTransfer

_NO_ACK: Final = (1 << 63) - 1
"""A length that means: do not report when it is deleted."""
_Type = pb.DatanodeCommandProto
_Action = pb.BlockCommandProto


@dataclass(frozen=True, slots=True)
class Transfer:
    """Copy a replica to other DataNodes."""

    block: Block
    length: int
    targets: Targets


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a replica."""

    block: Block
    quietly: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """What a recovery that cuts a block makes of it: perhaps a copy with another id."""

    block_id: BlockId
    length: int


@dataclass(frozen=True, slots=True)
class Recover:
    """Lead the recovery of a block."""

    block: Block
    recovery_id: GenerationStamp
    nodes: tuple[hdfs.DatanodeIDProto, ...]
    truncate: Truncate | None


@dataclass(frozen=True, slots=True)
class Cache:
    """Hold replicas in memory."""

    blocks: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class Uncache:
    """Hold replicas in memory no longer."""

    blocks: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Let all moves together pass this number of bytes a second."""

    bytes_per_second: int


@dataclass(frozen=True, slots=True)
class NewKeys:
    """Know these keys of block tokens."""

    keys: tokens.ExportedBlockKeysProto


@dataclass(frozen=True, slots=True)
class Register:
    """Say again who we are, and report everything."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A command that changes nothing here."""

    kind: str


Command: TypeAlias = (
    Transfer | Delete | Recover | Cache | Uncache | Bandwidth | NewKeys | Register | Ignored
)


def commands_of(message: pb.DatanodeCommandProto, pool: PoolId) -> Iterator[Command]:
    """Yield the commands that a message holds, one for each block.

    Raises:
        MalformedTransfer: if it is about another pool, or if its lists do not fit.
    """
    match message.cmdType:
        case _Type.BlockCommand:
            yield from _block_commands(message.blkCmd, pool)
        case _Type.BlockRecoveryCommand:
            for one in message.recoveryCmd.blocks:
                yield _recover(one, pool)
        case _Type.BlockIdCommand:
            yield _memory_command(message.blkIdCmd, pool)
        case _Type.BalancerBandwidthCommand:
            yield Bandwidth(message.balancerCmd.bandwidth)
        case _Type.KeyUpdateCommand:
            yield NewKeys(message.keyUpdateCmd.keys)
        case _Type.RegisterCommand:
            yield Register()
        case other:
            yield Ignored(_Type.Type.Name(other))


def _block_commands(message: pb.BlockCommandProto, pool: PoolId) -> Iterator[Command]:
    _check_pool(message.blockPoolId, pool)
    match message.action:
        case _Action.INVALIDATE:
            for one in message.blocks:
                yield Delete(block_of(one), quietly=one.numBytes == _NO_ACK)
        case _Action.TRANSFER:
            if len(message.blocks) != len(message.targets):
                raise MalformedTransfer(
                    f"{len(message.blocks)} blocks for {len(message.targets)} lists of targets"
                )
            for index, one in enumerate(message.blocks):
                yield Transfer(block_of(one), one.numBytes, _targets(message, index))
        case other:
            yield Ignored(_Action.Action.Name(other))


def _check_pool(named: str, pool: PoolId) -> None:
    if named != pool:
        raise MalformedTransfer(f"a command for {named[:256]!r}; here is {pool}")


def _memory_command(message: pb.BlockIdCommandProto, pool: PoolId) -> Command:
    _check_pool(message.blockPoolId, pool)
    blocks = tuple(block_id_of(one) for one in message.blockIds)
    return Cache(blocks) if message.action == pb.BlockIdCommandProto.CACHE else Uncache(blocks)


def _targets(message: pb.BlockCommandProto, index: int) -> Targets:
    kinds, ids = message.targetStorageTypes, message.targetStorageUuids
    return Targets(
        list(message.targets[index].datanodes),
        list(kinds[index].storageTypes) if index < len(kinds) else [],
        list(ids[index].storageUuids) if index < len(ids) else [],
    )


def _recover(message: types.RecoveringBlockProto, pool: PoolId) -> Recover:
    located = message.block
    truncate = None
    if message.HasField("truncateBlock"):
        block = block_of(message.truncateBlock)
        truncate = Truncate(block.block_id, message.truncateBlock.numBytes)
    return Recover(
        checked_block(located.b, pool),
        GenerationStamp(message.newGenStamp),
        tuple(node.id for node in located.locs),
        truncate,
    )

"""What a DataNode reads in the commands of a NameNode."""

import pytest

from datanode.namenodes.commands import (
    Bandwidth,
    Command,
    Delete,
    Ignored,
    Recover,
    Register,
    Transfer,
    Truncate,
    commands_of,
)
from datanode.transfers.transfer import Targets
from hadoop.blocks import GenerationStamp, PoolId
from hadoop.proto import datanode_protocol_pb2 as pb
from hadoop.proto import datanode_types_pb2 as types
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import extended, plain
from hadoop.wire.errors import MalformedTransfer
from tests.datanode.block_client import Place
from tests.datanode.name_nodes import invalidate, register
from tests.datanode.stores import POOL, block

DISK, SSD = hdfs.StorageTypeProto.DISK, hdfs.StorageTypeProto.SSD
FIRST, SECOND, THIRD = (Place(port).info for port in (1, 2, 3))
TYPE, ACTION = pb.DatanodeCommandProto, pb.BlockCommandProto
NODES = [[FIRST, SECOND], [THIRD]]
TYPES, IDS = [[DISK, SSD], [SSD]], [["DS-1", "DS-2"], ["DS-3"]]
BLOCKS = [plain(block(), 300), plain(block(1), 400)]


def about_blocks(
    action: pb.BlockCommandProto.Action.ValueType,
    blocks: int = 2,
    targets: int = 0,
    storages: int = 0,
    pool: str = POOL.pool,
) -> pb.DatanodeCommandProto:
    message = ACTION(
        action=action,
        blockPoolId=pool,
        blocks=BLOCKS[:blocks],
        targets=[types.DatanodeInfosProto(datanodes=nodes) for nodes in NODES[:targets]],
        targetStorageTypes=[hdfs.StorageTypesProto(storageTypes=one) for one in TYPES[:storages]],
        targetStorageUuids=[types.StorageUuidsProto(storageUuids=one) for one in IDS[:storages]],
    )
    return TYPE(cmdType=TYPE.BlockCommand, blkCmd=message)


def recovery(
    truncate: types.BlockProto | None = None, pool: PoolId = POOL.pool
) -> pb.DatanodeCommandProto:
    located = hdfs.LocatedBlockProto(
        b=extended(block(), pool),
        offset=0,
        locs=[FIRST, SECOND],
        corrupt=False,
        blockToken=hdfs.TokenProto(identifier=b"", password=b"", kind="", service=""),
    )
    one = types.RecoveringBlockProto(newGenStamp=1005, block=located, truncateBlock=truncate)
    return TYPE(
        cmdType=TYPE.BlockRecoveryCommand, recoveryCmd=pb.BlockRecoveryCommandProto(blocks=[one])
    )


NODE_IDS = (FIRST.id, SECOND.id)
COPY = Transfer(block(), 300, Targets(NODES[0], TYPES[0], IDS[0]))
READ: dict[str, tuple[pb.DatanodeCommandProto, list[Command]]] = {
    "deletions": (
        about_blocks(ACTION.INVALIDATE),
        [Delete(block(), quietly=False), Delete(block(1), quietly=False)],
    ),
    "a deletion of which the NameNode wants no news, as Hadoop's NO_ACK": (
        invalidate(block(), quietly=True),
        [Delete(block(), quietly=True)],
    ),
    "copies": (
        about_blocks(ACTION.TRANSFER, targets=2, storages=2),
        [COPY, Transfer(block(1), 400, Targets(NODES[1], TYPES[1], IDS[1]))],
    ),
    "copies without the storages of all": (
        about_blocks(ACTION.TRANSFER, targets=2, storages=1),
        [COPY, Transfer(block(1), 400, Targets(NODES[1], [], []))],
    ),
    "a recovery": (recovery(), [Recover(block(), GenerationStamp(1005), NODE_IDS, None)]),
    "a recovery that cuts a copy": (
        recovery(plain(block(7), 100)),
        [Recover(block(), GenerationStamp(1005), NODE_IDS, Truncate(block(7).block_id, 100))],
    ),
    "a registration": (register(), [Register()]),
    "a bandwidth": (
        TYPE(
            cmdType=TYPE.BalancerBandwidthCommand,
            balancerCmd=pb.BalancerBandwidthCommandProto(bandwidth=1 << 20),
        ),
        [Bandwidth(1 << 20)],
    ),
    "another action": (about_blocks(ACTION.SHUTDOWN), [Ignored("SHUTDOWN")]),
    "another command": (TYPE(cmdType=TYPE.NullDatanodeCommand), [Ignored("NullDatanodeCommand")]),
}


@pytest.mark.parametrize(("message", "commands"), READ.values(), ids=READ)
def test_what_a_command_says(message: pb.DatanodeCommandProto, commands: list[Command]) -> None:
    assert list(commands_of(message, POOL.pool)) == commands


REFUSED = {
    "another pool": (
        about_blocks(ACTION.INVALIDATE, pool="BP" * 200),
        f"^a command for '{'BP' * 128}'; here is {POOL.pool}$",
    ),
    "a recovery in another pool": (recovery(pool=PoolId("BP-2")), "'BP-2' is not the pool"),
    "fewer lists of targets than blocks": (
        about_blocks(ACTION.TRANSFER, blocks=2, targets=1),
        "^2 blocks for 1 lists of targets$",
    ),
    "more lists of targets than blocks": (
        about_blocks(ACTION.TRANSFER, blocks=1, targets=2),
        "^1 blocks for 2 lists of targets$",
    ),
}


@pytest.mark.parametrize(("message", "why"), REFUSED.values(), ids=REFUSED)
def test_commands_that_make_no_sense(message: pb.DatanodeCommandProto, why: str) -> None:
    with pytest.raises(MalformedTransfer, match=why):
        list(commands_of(message, POOL.pool))

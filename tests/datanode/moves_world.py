"""Two DataNodes between which replicas move."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from datanode import model
from datanode.replicas.store import Announcement
from datanode.transfers.balance_throttle import MoveRules
from datanode.transfers.transfer import DamagedSource
from ha.rpc.protocol import Call
from hadoop.blocks import Block, PoolId
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.wire.block_messages import extended
from hadoop.wire.packets import Op
from tests.datanode.block_client import (
    Node,
    Place,
    ask,
    begin,
    idle,
    node,
    write_whole,
)
from tests.datanode.stores import POOL, begun, block

BLOCK = block()
CALL = Call("", "", b"", 0, 0, "", None, "")
DATA = bytes(range(251)) * 400
SUCCESS, ERROR = pb.Status.SUCCESS, pb.Status.ERROR
PINNED, INVALID = pb.Status.ERROR_BLOCK_PINNED, pb.Status.ERROR_INVALID


@dataclass(slots=True)
class Pair:
    """Two DataNodes, and what the second one announces and complains of."""

    source: Node
    target: Node
    told: list[Announcement] = field(default_factory=list)
    damaged: list[DamagedSource] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[Node, Node]:
        return self.source, self.target


@asynccontextmanager
async def pair(
    folder: Path, *, source: MoveRules | None = None, target: MoveRules | None = None
) -> AsyncIterator[Pair]:
    damaged: list[DamagedSource] = []
    async with (
        node(folder / "a", moves=source) as one,
        node(
            folder / "b", moves=target, more=["ARCHIVE"], on_damaged_source=damaged.append
        ) as other,
    ):
        made = Pair(one, other, damaged=damaged)
        other.store.listeners.append(made.told.append)
        yield made
        await idle(one)
        await idle(other)
        for each in (one, other):
            assert each.server.moves.throttle.running == 0
            assert not any(isinstance(replica, model.Temporary) for replica in each.store)
        assert leftovers(folder) == []


def leftovers(folder: Path) -> list[str]:
    return [path.name for tmp in folder.rglob("tmp") for path in tmp.iterdir()]


def request(
    source: Place,
    of: Block = BLOCK,
    *,
    length: int = len(DATA),
    uuid: str = "",
    kind: str = "DISK",
    pool: str = POOL.pool,
) -> pb.OpReplaceBlockProto:
    asked = pb.OpReplaceBlockProto(
        header=pb.BaseHeaderProto(block=extended(of, PoolId(pool), length)),
        delHint="uuid-of-the-source",
        source=source.info,
        storageType=hdfs.StorageTypeProto.Value(kind),
    )
    if uuid:
        asked.source.id.datanodeUuid = uuid
    return asked


async def replace_block(target: Node, asked: pb.OpReplaceBlockProto) -> pb.BlockOpResponseProto:
    return await ask(target.place, Op.REPLACE_BLOCK, asked)


async def whole(two: Pair) -> None:
    await write_whole([two.source.place], block(), DATA)


async def being_written(two: Pair) -> None:
    await begun(two.source.store, block(), DATA)


async def on_both(two: Pair) -> None:
    await write_whole([two.source.place, two.target.place], block(), DATA)


async def at_the_target(two: Pair) -> None:
    await write_whole([two.target.place], block(), DATA)


async def newer(two: Pair) -> None:
    await write_whole([two.source.place], block(stamp=1002), DATA)


async def pinned(two: Pair) -> None:
    writing = await begin([two.source.place], block(), pins=[True])
    await writing.write(DATA)
    await writing.close()


HERE = partial(request, uuid="uuid-b", kind="ARCHIVE")
"""Asks a DataNode to put its own replica into its archive."""


async def passes(_: int) -> None:
    return

"""Stores in a temporary directory, as a DataNode has them after its handshake."""

import asyncio
from pathlib import Path
from typing import Final

from datanode import model
from datanode.replicas.layout import NodeVersion, PoolVersion
from datanode.replicas.operations import Complete, Create
from datanode.replicas.store import Store
from datanode.replicas.volume import DataDirectory, Volume
from datanode.replicas.volumes import Volumes
from hadoop.blocks import Block, BlockId, Checksum, GenerationStamp, PoolId
from hadoop.wire.checksums import checksums_of

POOL = PoolVersion(PoolId("BP-1-127.0.0.1-1"), 77, 1234)
CHECKSUM = Checksum()
FIRST_ID = (1 << 30) + 1
_volumes: Final = list[Volume]()
_stores: Final = list[Store]()


def close_stores() -> None:
    """Close what a test has not closed itself."""
    while _stores:
        asyncio.run(_stores.pop().volumes.close())
    while _volumes:
        _volumes.pop().close()


def block(number: int = 0, stamp: int = 1001) -> Block:
    return Block(BlockId(FIRST_ID + number), GenerationStamp(stamp))


def volume(folder: Path, name: str = "DS-1", storage_type: str = "DISK") -> Volume:
    made = Volume(DataDirectory(folder, storage_type))
    if made.version is None:
        made.format(NodeVersion(model.StorageId(name), "uuid-1", "CID-1"))
    made.join(POOL)
    _volumes.append(made)
    return made


async def store(*volumes: Volume, kept_free: int = 0, locked_memory: int = 0) -> Store:
    made = Store(Volumes(volumes, kept_free=kept_free), locked_memory=locked_memory)
    _stores.append(made)
    await made.load()
    return made


async def begun(kept: Store, of: Block, data: bytes, *, acked: int | None = None) -> model.Replica:
    storage = kept.volumes.choose(len(data), "DISK")
    replica = await kept.perform(Create(of, storage, 4096), CHECKSUM)
    files = await kept.open(replica, writable=True)
    sums = checksums_of(data, CHECKSUM)
    files.write(0, [memoryview(data)], [memoryview(sums)])
    files.close()
    kept.received(of, len(data))
    kept.acknowledged(of, len(data) if acked is None else acked, b"")
    return kept.find(of)


async def finalized(kept: Store, of: Block, data: bytes) -> model.Replica:
    await begun(kept, of, data)
    return await kept.perform(Complete(of))

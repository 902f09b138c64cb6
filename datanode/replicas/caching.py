"""Brings whole replicas into memory, once their bytes fit their checksums.

See docs/reference/datanode.md#memory.
"""

import asyncio
from functools import partial

from datanode.errors import ReplicaRefused
from datanode.model import Finalized
from datanode.replicas.locked_pages import LockedPages, lock_file
from datanode.replicas.memory import Memory, Place
from datanode.replicas.replica_files import ReplicaFiles
from datanode.replicas.store import Store
from hadoop.blocks import Block, BlockId, GenerationStamp


async def cache(store: Store, block_id: BlockId) -> None:
    """Lock a block's replica in memory; nothing is done if it is there, or is coming.

    If the caller is cancelled, what comes is let go as soon as the memory is closed.

    Raises:
        ReplicaMissing, ReplicaRefused: if there is no whole replica, or an empty one.
        NoRoom: if it does not fit in.
        ChecksumMismatch: if it is damaged.
        VolumeFailed, OSError: if the disk or the system refuses.
    """
    if block_id in store.memory:
        return
    replica = store.find(Block(block_id, GenerationStamp(0)))
    if not isinstance(replica, Finalized) or not replica.length:
        raise ReplicaRefused(f"{replica.block} is empty, or is not whole")
    place = store.memory.reserve(block_id, replica.length)
    try:
        files = await store.open(replica)
    except BaseException:
        store.memory.give_up(place)
        raise
    loading = asyncio.ensure_future(asyncio.to_thread(_load, files, replica))
    loading.add_done_callback(partial(_loaded, store.memory, place, files))
    await asyncio.shield(loading)


def _load(files: ReplicaFiles, replica: Finalized) -> LockedPages:
    """Read a replica, and lock it; work for a thread."""
    what = str(replica.block)
    for at, length in files.pieces(replica.length, what):
        files.checked(at, length, what)
    return lock_file(files.block_fd, replica.length)


def _loaded(
    memory: Memory, place: Place, files: ReplicaFiles, loading: asyncio.Future[LockedPages]
) -> None:
    files.close()
    if loading.cancelled() or loading.exception() is not None:
        memory.give_up(place)
    else:
        memory.settle(place, loading.result())

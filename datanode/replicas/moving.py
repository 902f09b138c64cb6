"""Moves a whole replica to a volume of another type; and pins, which keep replicas here.

See docs/reference/datanode.md#moves.
"""

import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import structlog

from datanode import errors, model
from datanode.replicas.replica_files import open_files
from datanode.replicas.store import Store
from datanode.replicas.turns import to_its_end
from hadoop.wire.errors import DataNodeError

log = structlog.get_logger()


async def move(
    store: Store,
    replica: model.Finalized,
    storage_type: str,
    wish: model.StorageId,
    *,
    paced: Callable[[int], Awaitable[None]],
) -> None:
    """Copy a replica to a volume of this type, and delete it where it was once that is durable.

    ``wish`` is the volume that is preferred; ``paced`` is awaited with the number of bytes of each
    piece.  If the caller is cancelled, the move still runs to its end.

    Raises:
        ReplicaRefused, ReplicaMissing: if it is on such a volume, or changes in the meantime.
        NoRoom: if no volume of the type has room for it.
        ChecksumMismatch: if it is damaged.
        VolumeFailed, OSError: if a disk refuses.
    """
    if store.volumes.types.get(replica.storage) == storage_type:
        raise errors.ReplicaRefused(
            f"Replica {replica.block} already exists on storage {storage_type}"
        )
    target = store.volumes.choose(replica.length, storage_type, wish, only_type=True)
    await to_its_end(_move(store, replica, replace(replica, storage=target), paced))


async def _move(
    store: Store,
    before: model.Finalized,
    after: model.Finalized,
    paced: Callable[[int], Awaitable[None]],
) -> None:
    volume, run = store.volumes[after.storage], partial(store.volumes.run, after.storage)
    stays = await is_pinned(store, before)
    source = await store.open(before)
    try:
        paths = await run(partial(volume.begin_move, after, source.checksum))
        try:
            made = await run(partial(open_files, paths, writable=True))
            try:
                at = 0
                while at < before.length:
                    piece = partial(source.copy_piece, made, at, before.length, str(before.block))
                    then = await run(piece)
                    await paced(then - at)
                    at = then
                await run(made.sync)
            finally:
                made.close()
            await store.relocate(before, after, partial(volume.end_move, after, paths))
        except BaseException:
            with suppress(DataNodeError):  # the next start empties that folder
                await run(paths.unlink)
            raise
    finally:
        source.close()
    if stays:
        await pin(store, after)


async def pin(store: Store, replica: model.Replica) -> None:
    """Mark a replica as one that stays on this DataNode, as Hadoop does, by the sticky bit."""
    path = store.volumes[replica.storage].paths(replica).block
    try:
        await store.volumes.run(
            replica.storage, lambda: path.chmod(path.stat().st_mode | stat.S_ISVTX)
        )
    except (DataNodeError, OSError) as problem:
        log.warning("datanode.not_pinned", block=str(replica.block), why=str(problem))


async def is_pinned(store: Store, replica: model.Replica) -> bool:
    """Return whether a replica is to stay here; raise DataNodeError if that cannot be read."""
    path = store.volumes[replica.storage].paths(replica).block
    try:
        mode = await store.volumes.run(replica.storage, lambda: path.stat().st_mode)
    except FileNotFoundError as gone:
        raise errors.ReplicaMissing(f"the file of {replica.block} is gone: {gone}") from gone
    return bool(mode & stat.S_ISVTX)

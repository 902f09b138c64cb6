"""All replicas of this DataNode: the map in memory, and the volumes under it.

The map lives on the event loop and changes in one turn, after the files have.  Each volume has
one thread for what may wait for its disk.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from datanode import errors, model
from datanode.replicas import operations
from datanode.replicas.memory import Memory
from datanode.replicas.replica import Next, OperationRefused, acknowledged, decide, received
from datanode.replicas.replica_files import ReplicaFiles, open_files
from datanode.replicas.turns import Turn, to_its_end
from datanode.replicas.volumes import Volumes
from ha.record import dataclass
from hadoop.blocks import Block, BlockId, Checksum
from hadoop.wire.errors import DataNodeError

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Announcement:
    """What is to be reported to NameNodes of a replica.

    ``hint``: the DataNode, by uuid, that may lose its own now that this one is here.
    """

    news: operations.News
    storage: model.StorageId
    block: Block
    length: int
    hint: str = ""


class Store:
    """The replicas, by block id.  All methods belong to the event loop."""

    def __init__(self, volumes: Volumes, *, locked_memory: int = 0) -> None:
        """Keep replicas on ``volumes``, and at most ``locked_memory`` bytes of them in memory."""
        self.volumes = volumes
        volumes.on_failed = self._forget_volume
        self._replicas: dict[BlockId, model.Replica] = {}
        self._changing: dict[BlockId, asyncio.Event] = {}
        self._writers: dict[BlockId, asyncio.Task[Any]] = {}
        self.memory = Memory(locked_memory)
        self.listeners: list[Callable[[Announcement], None]] = []

    async def load(self) -> None:
        """Take in what lies on the volumes; of two replicas of a block the better one stays.

        A volume that cannot be read is out, as one that fails later.
        """
        outdone: list[model.Replica] = []
        for storage in self.volumes.types:
            try:
                found = await self.volumes.run(storage, self.volumes[storage].scan)
            except (DataNodeError, OSError) as problem:
                self.volumes.give_up(storage, problem)
                continue
            for replica in found:
                other = self._replicas.get(replica.block.block_id)
                if other is None:
                    self._put(replica.block.block_id, replica)
                    continue
                worse, better = sorted((other, replica), key=_worth)
                log.warning("datanode.second_replica", kept=str(better.block), storage=storage)
                self._put(better.block.block_id, better)
                outdone.append(worse)
        for worse in outdone:
            with suppress(DataNodeError):  # the next start meets it again
                await self._remove_files(worse)

    # Looking.

    def find(self, block: Block) -> model.Replica:
        """Return the replica of a block; one that is older than asked for counts as none.

        Raises:
            ReplicaMissing: if there is none.
        """
        replica = self._replicas.get(block.block_id)
        if replica is None or replica.block.stamp < block.stamp:
            raise errors.ReplicaMissing(f"{block} is not here")
        return replica

    def holds(self, replica: model.Replica) -> bool:
        """Return whether this very replica is here, unchanged; not a later one like it."""
        return self._replicas.get(replica.block.block_id) is replica

    def has(self, announced: Announcement) -> bool:
        """Return whether the announced storage has a replica of the block, not just a part."""
        replica = self._replicas.get(announced.block.block_id)
        if replica is None or isinstance(replica, model.Temporary):
            return False
        return replica.storage == announced.storage

    def __iter__(self) -> Iterator[model.Replica]:
        return iter(list(self._replicas.values()))

    def __len__(self) -> int:
        return len(self._replicas)

    # Changing.

    async def perform(
        self,
        operation: operations.Create | operations.CreateCopy | operations.Change,
        checksum: Checksum | None = None,
        *,
        to_write: bool = False,
    ) -> model.Replica:
        """Carry out an operation on a replica: files first, then the map, then the news.

        Where it is allowed, another task that writes the replica ends first. ``checksum`` is for
        operations that make a replica.  If the caller is cancelled, the operation still runs to its
        end: files and map must not part.  ``to_write``: the running task writes the replica from
        then on, until ``end_writing``; the next operation must find it.  A copy that is made for a
        task that is cancelled does not stay.

        Raises:
            ReplicaRefused, ReplicaMissing: nothing has changed.
            NoRoom, VolumeFailed: the disk refused.
        """
        writer = asyncio.current_task() if to_write else None
        undo = partial(self._give_up, operation.block) if to_write else None
        return await to_its_end(self._perform(operation, checksum, writer), undo)

    async def _give_up(self, block: Block) -> None:
        """Undo what was made for a writer that was cancelled before it had it."""
        self.end_writing(block.block_id)
        with suppress(DataNodeError):
            await self.discard(block)

    async def _perform(
        self,
        operation: operations.Create | operations.CreateCopy | operations.Change,
        checksum: Checksum | None,
        writer: asyncio.Task[Any] | None,
    ) -> model.Replica:
        block_id = operation.block.block_id
        async with Turn(self._changing, block_id):
            _require_allowed(decide(operation, self._replicas.get(block_id)))
            if operations.interrupts(operation):
                await self._stop_writer(block_id)
            before = self._replicas.get(block_id)
            outcome = _require_allowed(decide(operation, before))
            after = outcome.replica
            assert after is not None, "only an invalidation leaves nothing"
            if before is not None and outcome.dropped:
                self._put(block_id, None)
                await self._remove_files(before)
                before = None
            volume = self.volumes[after.storage]
            work = (
                partial(volume.create, after, checksum or Checksum())
                if before is None
                else partial(volume.change, before, after)
            )
            await self._carry_out(after, work)
            self._put(block_id, after)
            if writer is not None:
                self._writers[block_id] = writer
        news = operations.news_of(operation)
        if news is not None:
            hint = operation.hint if isinstance(operation, operations.Complete) else ""
            self._tell(news, after, hint)
        return after

    async def _carry_out(self, replica: model.Replica, work: Callable[[], None]) -> None:
        try:
            await self.volumes.run(replica.storage, work)
        except FileNotFoundError as gone:
            raise errors.ReplicaMissing(f"the files of {replica.block} are gone: {gone}") from gone
        if replica.storage not in self.volumes.types:
            raise errors.ReplicaMissing(f"the volume {replica.storage} has failed meanwhile")

    def forget(self, block: Block) -> model.Replica:
        """Take a replica that is to be deleted out of the map, now.

        A report that is made from now on must not name a replica whose files are about to go.

        Raises:
            ReplicaRefused, ReplicaMissing: nothing has changed.
        """
        if block.block_id in self._changing:
            raise errors.ReplicaRefused(f"{block} is changing at the moment")
        replica = self._replicas.get(block.block_id)
        _require_allowed(decide(operations.Invalidate(block), replica))
        assert replica is not None
        self._put(block.block_id, None)
        return replica

    async def delete(self, forgotten: model.Replica, *, quietly: bool = False) -> None:
        """Delete the files of what was forgotten; ``quietly``: the NameNode wants no news.

        Raises:
            VolumeFailed: the disk refused; the files are found again at the next start.
        """
        await to_its_end(self._delete(forgotten, quietly=quietly))

    async def _delete(self, replica: model.Replica, *, quietly: bool) -> None:
        block_id = replica.block.block_id
        async with Turn(self._changing, block_id):
            if block_id not in self._replicas:  # else the writer is that of one that has come since
                await self._stop_writer(block_id)
            await self._remove_files(replica)
        if not quietly:
            self._tell(operations.News.DELETED, replica)

    async def _remove_files(self, replica: model.Replica) -> None:
        volume = self.volumes[replica.storage]
        await self.volumes.run(replica.storage, partial(volume.remove, replica))

    def received(self, block: Block, end: int) -> None:
        """Record that the bytes before ``end`` are on the disk; raise ``ReplicaMissing``."""
        before = self._mine(block)
        after = received(before, end)
        self.volumes.grew(after, after.length - before.length)
        self._replicas[block.block_id] = after

    def acknowledged(self, block: Block, end: int, tail: bytes) -> None:
        """Record that all DataNodes behind us have the bytes before ``end``.

        Raises:
            ReplicaMissing: if there is no such replica.
        """
        # Its length, and so the space that it takes, stay.
        self._replicas[block.block_id] = acknowledged(self._mine(block), end, tail)

    async def discard(self, block: Block) -> None:
        """Delete a copy that did not become whole; nothing else is deleted by this."""
        replica = self._replicas.get(block.block_id)
        if isinstance(replica, model.Temporary) and replica.block == block:
            await self.delete(self.forget(block), quietly=True)

    async def discard_unacknowledged(self, block: Block) -> None:
        """Delete, for want of room, an open replica of which no byte has been acknowledged."""
        replica = self._replicas.get(block.block_id)
        if isinstance(replica, model.BeingWritten) and replica.block == block and not replica.acked:
            await self.delete(self.forget(block))

    async def open(self, replica: model.Replica, *, writable: bool = False) -> ReplicaFiles:
        """Open the files of a replica; the caller must close them.

        Raises:
            ReplicaMissing: if the files are gone.
            VolumeFailed: if the disk refuses.
        """
        work = partial(open_files, self.volumes[replica.storage].paths(replica), writable=writable)
        opening = asyncio.ensure_future(self.volumes.run(replica.storage, work))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unwanted)
            raise
        except FileNotFoundError as gone:
            raise errors.ReplicaMissing(f"the files of {replica.block} are gone: {gone}") from gone

    async def copy(self, replica: model.Replica, to: Block, length: int) -> model.Replica:
        """Make a complete replica of block ``to`` from the first ``length`` bytes of this one.

        Raises:
            ReplicaRefused, ReplicaMissing: if there is one of that block that is not older.
            ChecksumMismatch: if this one is damaged.
            VolumeFailed: if the disk refuses.
        """
        source = await self.open(replica)
        try:
            # An earlier recovery may have made one, and reported it to no NameNode.
            wanted = operations.CreateCopy(to, replica.storage, length, replaces_whole=True)
            made = await self.perform(wanted, source.checksum)
            try:
                target = await self.open(made, writable=True)
                try:
                    work = partial(source.copy_to, target, length, str(replica.block))
                    await self.volumes.run(replica.storage, work)
                finally:
                    target.close()
                self.received(to, length)
                return await self.perform(operations.Complete(to))
            except BaseException:
                await self.discard(to)
                raise
        finally:
            source.close()

    async def relocate(
        self, before: model.Finalized, after: model.Finalized, work: Callable[[], None]
    ) -> None:
        """Let a replica be on another volume, where ``work`` puts a whole copy of its files.

        Raises:
            ReplicaRefused: if it has changed since; nothing was done.
            ReplicaMissing, NoRoom, VolumeFailed: if the other volume refuses; it stays.
        """
        await to_its_end(self._relocate(before, after, work))

    async def _relocate(
        self, before: model.Finalized, after: model.Finalized, work: Callable[[], None]
    ) -> None:
        async with Turn(self._changing, before.block.block_id):
            if not self.holds(before):
                raise errors.ReplicaRefused(f"{before.block} has changed during its move")
            await self._carry_out(after, work)
            if not self.holds(before):  # its volume has failed, and was reported to
                # The next start would serve the copy, whatever the block has become by then.
                with suppress(DataNodeError):
                    await self._remove_files(after)
                raise errors.ReplicaRefused(f"{before.block} was lost during its move")
            self._put(before.block.block_id, after)
            # In the same turn: a later replica on that volume would have files of the same names.
            with suppress(DataNodeError):  # the next start meets them again
                await self._remove_files(before)
        self._tell(operations.News.RECEIVED, after)

    async def sync(self, replica: model.Replica, files: ReplicaFiles) -> None:
        """Wait until what was written to a replica is on the disk; raises ``VolumeFailed``."""
        await self.volumes.run(replica.storage, files.sync)

    async def sync_names(self, replica: model.Replica) -> None:
        """Wait until the disk knows where a replica's files lie; raises ``VolumeFailed``."""
        work = partial(self.volumes[replica.storage].sync_names, replica)
        await self._carry_out(replica, work)

    # Writers.

    def end_writing(self, block_id: BlockId) -> None:
        """End the running task's registration as this block's writer."""
        if self._writers.get(block_id) is asyncio.current_task():
            del self._writers[block_id]

    async def _stop_writer(self, block_id: BlockId) -> None:
        writer = self._writers.pop(block_id, None)
        if writer is not None:
            writer.cancel()
            await asyncio.wait([writer])

    # Our own.

    def _forget_volume(self, storage: model.StorageId) -> None:
        for block_id, replica in list(self._replicas.items()):
            if replica.storage == storage:
                del self._replicas[block_id]
                self.memory.release(block_id)

    def _mine(self, block: Block) -> model.Replica:
        replica = self._replicas.get(block.block_id)
        if replica is None or replica.block != block:
            raise errors.ReplicaMissing(f"{block} is not being written here any more")
        return replica

    def _put(self, block_id: BlockId, replica: model.Replica | None) -> None:
        before = self._replicas.pop(block_id, None)
        if before is not None:
            self.volumes.account(before, -1)
            self.memory.release(block_id)
        if replica is not None:
            self.volumes.account(replica, 1)
            self._replicas[block_id] = replica

    def _tell(self, news: operations.News, replica: model.Replica, hint: str = "") -> None:
        what = Announcement(news, replica.storage, replica.block, replica.length, hint)
        for listener in self.listeners:
            listener(what)


def _close_unwanted(opened: asyncio.Future[ReplicaFiles]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()


def _require_allowed(outcome: Next | OperationRefused) -> Next:
    match outcome:
        case Next():
            return outcome
        case OperationRefused(missing=True):
            raise errors.ReplicaMissing(outcome.why)
        case OperationRefused(recovery_in_progress=True):
            raise errors.RecoveryInProgress(outcome.why)
        case OperationRefused():
            raise errors.ReplicaRefused(outcome.why)


def _worth(replica: model.Replica) -> tuple[int, bool, int, str]:
    return (
        replica.block.stamp, isinstance(replica, model.Finalized), replica.length, replica.storage,
    )  # fmt: skip

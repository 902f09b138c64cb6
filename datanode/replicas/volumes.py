"""The volumes of this DataNode: a thread for each disk, their space, and those that have failed."""

import asyncio
import errno
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

import structlog

from datanode import model
from datanode.errors import NoRoom, ReplicaMissing, VolumeFailed
from datanode.replicas.meta_file import meta_bytes
from datanode.replicas.volume import Usage, Volume
from ha.record import dataclass
from hadoop.blocks import Checksum

log = structlog.get_logger()
T = TypeVar("T")

_NOT_THE_DISK: Final = frozenset({errno.EEXIST, errno.EMFILE, errno.ENFILE})
"""Errors that say nothing of the disk."""
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk that works: what is there can be read and deleted."""


@dataclass(frozen=True, slots=True)
class StorageUse:
    """One volume as a heartbeat shows it, in bytes."""

    storage: model.StorageId
    storage_type: str
    capacity: int
    used: int
    remaining: int

    @property
    def used_by_others(self) -> int:
        """Bytes of the file system that are neither free nor ours."""
        return max(0, self.capacity - self.used - self.remaining)


@dataclass(frozen=True, slots=True)
class LostVolume:
    """A volume that has failed: how many bytes it could take, and when, in seconds since 1970."""

    volume: Volume
    capacity: int
    at: float


@dataclass(slots=True)
class _Shelf:
    """A volume with its thread, and what the map knows of it."""

    volume: Volume
    thread: ThreadPoolExecutor
    usage: Usage
    used: int = 0
    reserved: int = 0

    def remaining(self, kept_free: int) -> int:
        return max(0, self.usage.free - kept_free - self.reserved)


class Volumes:
    """The volumes that work, by storage id.  All methods belong to the event loop."""

    def __init__(self, volumes: Sequence[Volume], *, kept_free: int = 0) -> None:
        """Manage ``volumes``, which have joined the pool; ``kept_free`` bytes of each stay free."""
        self._kept_free = kept_free
        self._shelves = {
            volume.storage: _Shelf(
                volume,
                ThreadPoolExecutor(1, thread_name_prefix=f"volume {volume.path.name}"),
                volume.usage(),
            )
            for volume in volumes
        }
        self._turn = 0
        self.failed: list[LostVolume] = []
        self.on_failed: Callable[[model.StorageId], None] = lambda _: None

    async def close(self) -> None:
        """End the threads and unlock the directories."""
        for shelf in self._shelves.values():
            await asyncio.to_thread(shelf.thread.shutdown, wait=True)
            shelf.volume.close()
        for lost in self.failed:
            lost.volume.close()

    @property
    def types(self) -> Mapping[model.StorageId, str]:
        return {
            storage: shelf.volume.directory.storage_type for storage, shelf in self._shelves.items()
        }

    def __getitem__(self, storage: model.StorageId) -> Volume:
        shelf = self._shelves.get(storage)
        if shelf is None:
            raise ReplicaMissing(f"the volume {storage} has failed")
        return shelf.volume

    async def run(self, storage: model.StorageId, work: Callable[[], T]) -> T:
        """Run a function in the volume's thread.

        Raises:
            ReplicaMissing: if the volume is out.
            NoRoom: if the disk is full.
            VolumeFailed: if the disk refuses; the volume is out if it takes nothing any more.
            FileNotFoundError: if a file is gone.
        """
        volume = self[storage]
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._shelves[storage].thread, work)
        except OSError as problem:
            if problem.errno not in _NOT_THE_DISK:
                await self.suspect(storage, problem)
            if problem.errno in FULL:
                raise NoRoom(f"{volume.path} is full: {problem}") from problem
            if isinstance(problem, FileNotFoundError) and storage in self._shelves:
                raise
            raise VolumeFailed(volume.path, problem) from problem

    def usage(self) -> list[StorageUse]:
        """Return the space of each volume, as last measured."""
        return [
            StorageUse(
                storage,
                shelf.volume.directory.storage_type,
                max(0, shelf.usage.capacity - self._kept_free),
                shelf.used,
                shelf.remaining(self._kept_free),
            )
            for storage, shelf in self._shelves.items()
        ]

    async def measure(self) -> None:
        for storage, shelf in list(self._shelves.items()):
            with suppress(VolumeFailed, ReplicaMissing):  # it is out by now
                shelf.usage = await self.run(storage, shelf.volume.usage)

    def choose(
        self, size: int, storage_type: str, wish: str = "", *, only_type: bool = False
    ) -> model.StorageId:
        """Choose a volume for a new replica: the wished one, else those of the type in turn.

        Others are taken where none of the type has room, unless it is to be ``only_type``.

        Raises:
            NoRoom: if no volume has ``size`` bytes left.
        """
        fitting = [
            storage
            for storage, shelf in self._shelves.items()
            if shelf.remaining(self._kept_free) >= size
            and (not only_type or self.types[storage] == storage_type)
        ]
        if model.StorageId(wish) in fitting:
            return model.StorageId(wish)
        typed = [one for one in fitting if self.types[one] == storage_type] or fitting
        if not typed:
            kind = f" of type {storage_type}" if only_type else ""
            raise NoRoom(
                f"none of {len(self._shelves)} volumes{kind} has {size} bytes left, beside "
                f"{self._kept_free} that stay free and what open blocks have reserved"
            )
        self._turn += 1
        return typed[self._turn % len(typed)]

    def account(self, replica: model.Replica, sign: int) -> None:
        """Count the space of a replica that has come (1) or gone (-1)."""
        shelf = self._shelves.get(replica.storage)
        if shelf is not None:
            shelf.used += sign * replica.length + sign * meta_bytes(Checksum(), replica.length)
            shelf.reserved += sign * max(0, _reserve(replica) - replica.length)

    def grew(self, replica: model.Replica, count: int) -> None:
        shelf = self._shelves.get(replica.storage)
        if shelf is not None:
            before = replica.length - count
            shelf.used += count + meta_bytes(Checksum(), replica.length)
            shelf.used -= meta_bytes(Checksum(), before)
            shelf.reserved -= min(count, max(0, _reserve(replica) - before))

    async def suspect(self, storage: model.StorageId, problem: OSError) -> None:
        """Check after a failed operation whether the whole volume has failed, and drop it if so."""
        shelf = self._shelves.get(storage)
        if shelf is None:
            return
        path = str(shelf.volume.path)
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(shelf.thread, shelf.volume.check)
        except OSError as failure:
            if failure.errno not in FULL:
                self.give_up(storage, failure)
                return
        if problem.errno in FULL:
            log.warning("datanode.disk_full", path=path, why=str(problem))
            await self.measure()
        else:
            log.warning("datanode.disk_error", path=path, why=str(problem))

    def give_up(self, storage: model.StorageId, problem: Exception) -> None:
        """Go on without a volume, if it is not out yet."""
        shelf = self._shelves.pop(storage, None)
        if shelf is None:
            return
        log.error("datanode.volume_failed", path=str(shelf.volume.path), why=str(problem))
        shelf.thread.shutdown(wait=False)
        self.failed.append(LostVolume(shelf.volume, shelf.usage.capacity, time.time()))
        self.on_failed(storage)


def _reserve(replica: model.Replica) -> int:
    return replica.reserved if isinstance(replica, model.BeingWritten | model.Temporary) else 0

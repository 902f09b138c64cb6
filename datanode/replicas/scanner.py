"""Reads every whole replica again from time to time, and finds those that are damaged or gone.

See docs/reference/datanode.md#scanner.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import structlog

from datanode.errors import ReplicaMissing
from datanode.metrics import SCANNED_BYTES, SCANS
from datanode.model import Finalized, Replica
from datanode.replicas.meta_file import BadMetaFile
from datanode.replicas.replica_files import ReplicaFiles
from datanode.replicas.store import Store
from ha.record import dataclass
from hadoop.blocks import Block
from hadoop.wire.errors import ChecksumMismatch, DataNodeError

log = structlog.get_logger()

_MOST_SUSPECTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ScanRhythm:
    """How fast and how often; ``period_seconds`` below zero: only what is suspected."""

    bytes_per_second: int = 1024 * 1024
    period_seconds: float = 3 * 7 * 86400.0


def in_order(replicas: Iterable[Replica]) -> deque[Block]:
    """Return the blocks of one pass: those with whole replicas, by id."""
    whole = (one.block for one in replicas if isinstance(one, Finalized))
    return deque(sorted(whole, key=lambda block: block.block_id))


class Scanner:
    """One task that reads; ``on_damage`` hears of each replica that does not fit its checksums."""

    def __init__(
        self, store: Store, rhythm: ScanRhythm, *, on_damage: Callable[[Replica], None]
    ) -> None:
        self._store, self._rhythm, self._on_damage = store, rhythm, on_damage
        self._suspects: deque[Block] = deque(maxlen=_MOST_SUSPECTS)
        self._wake = asyncio.Event()

    def suspect(self, block: Block) -> None:
        """Scan this replica first: a reader could not read it."""
        if block not in self._suspects:
            self._suspects.append(block)
            self._wake.set()

    async def run(self) -> None:
        """Scan suspects, and all replicas once in each period, until cancelled."""
        loop = asyncio.get_running_loop()
        period = self._rhythm.period_seconds
        rest: deque[Block] = deque()
        next_pass = loop.time()
        while True:
            while self._suspects:
                await self._scan_if_whole(self._suspects.popleft())
            if rest:
                await self._scan_if_whole(rest.popleft())
            elif period < 0:
                await self._wait(None)
            elif loop.time() < next_pass:
                await self._wait(next_pass - loop.time())
            else:
                next_pass = loop.time() + period
                rest = in_order(self._store)

    async def _wait(self, seconds: float | None) -> None:
        self._wake.clear()
        if self._suspects:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _scan_if_whole(self, block: Block) -> None:
        try:
            replica = self._store.find(block)
        except ReplicaMissing:
            return
        if isinstance(replica, Finalized):
            await self.scan(replica)

    async def scan(self, replica: Finalized) -> None:
        """Read one replica, and report what is wrong with it."""
        try:
            files = await self._store.open(replica)
        except ReplicaMissing:
            await self._lost(replica)
            return
        except BadMetaFile:
            self._damaged(replica, "its meta file")
            return
        except DataNodeError as problem:
            log.warning("datanode.scan_failed", block=str(replica.block), why=str(problem))
            return
        try:
            await self._read(replica, files)
        except ChecksumMismatch as mismatch:
            self._damaged(replica, str(mismatch))
        except OSError as problem:
            await self._store.volumes.suspect(replica.storage, problem)
        else:
            SCANS.labels("whole").inc()
        finally:
            files.close()

    async def _read(self, replica: Finalized, files: ReplicaFiles) -> None:
        what = str(replica.block)
        for at, length in files.pieces(replica.length, what):
            await asyncio.to_thread(files.checked, at, length, what)
            SCANNED_BYTES.inc(length)
            await asyncio.sleep(length / self._rhythm.bytes_per_second)

    def _damaged(self, replica: Finalized, why: str) -> None:
        if not self._still_here(replica):
            return  # deleted or opened for append while we read
        SCANS.labels("damaged").inc()
        log.error("datanode.damaged_replica", block=str(replica.block), why=why)
        self._on_damage(replica)

    async def _lost(self, replica: Finalized) -> None:
        if not self._still_here(replica):
            return
        try:
            await self._store.delete(self._store.forget(replica.block))
        except DataNodeError as problem:
            log.warning("datanode.scan_failed", block=str(replica.block), why=str(problem))
            return
        SCANS.labels("gone").inc()
        log.error("datanode.lost_replica", block=str(replica.block))

    def _still_here(self, replica: Finalized) -> bool:
        try:
            return self._store.find(replica.block) == replica
        except ReplicaMissing:
            return False

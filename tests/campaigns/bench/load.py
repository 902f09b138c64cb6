"""Closed-loop callers over a quorum, and what their waits look like."""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol
from zlib import crc32

from journal.model import TxId

OP_BYTES: Final = 200
_HEAD = struct.Struct(">BiQ")
_OP_DELETE: Final = 2
_MOST_BYTES: Final = 512 * 1024


class Quorum(Protocol):
    """Where batches go: ours or the bare harness."""

    async def write(self, first: TxId, count: int, records: bytes) -> None:
        """Return when a majority has them."""


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ready_op(txid: int, size: int = OP_BYTES) -> bytes:
    """Return a framed op of ``size`` bytes with a sound checksum; only its frame means anything."""
    frame = _HEAD.pack(_OP_DELETE, size - 5, txid) + b"d" * (size - _HEAD.size - 4)
    return frame + crc32(frame).to_bytes(4)


async def measure(
    callers: int, one_edit: Callable[[], Awaitable[object]], seconds: float
) -> list[float]:
    """Run closed-loop callers; return the seconds of each edit, without the first quarter."""
    began = time.perf_counter()
    warm, end = began + seconds / 4, began + seconds
    latencies: list[float] = []

    async def caller() -> None:
        while (start := time.perf_counter()) < end:
            await one_edit()
            if start > warm:
                latencies.append(time.perf_counter() - start)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return latencies


def rate(latencies: Sequence[float], seconds: float) -> float:
    return len(latencies) / (seconds * 0.75)


class ReadyOps:
    """Group commit of ready-made ops: all that arrive while a batch is under way share the next.

    The same object drives our writer and the bare harness, so that both have the same client.
    """

    def __init__(self, quorum: Quorum, first: TxId, size: int = OP_BYTES) -> None:
        self._quorum = quorum
        self._due = first
        self._size = size
        self._ready: deque[bytes] = deque()
        self._made = first
        self._waiting: list[asyncio.Future[None]] = []
        self._running = False
        self._flusher: asyncio.Task[None] | None = None

    @property
    def next_txid(self) -> TxId:
        return self._due

    def make(self, count: int) -> None:
        """Make that many ops ahead of the measurement."""
        self._ready.extend(ready_op(self._made + i, self._size) for i in range(count))
        self._made = TxId(self._made + count)

    def write(self) -> asyncio.Future[None]:
        """Write one op; done when a majority has it."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        if not self._running:
            self._running = True
            self._flusher = asyncio.create_task(self._flush())
        return done

    async def _flush(self) -> None:
        most = max(1, _MOST_BYTES // self._size)
        while self._waiting:
            batch, self._waiting = self._waiting[:most], self._waiting[most:]
            count = len(batch)
            if len(self._ready) < count:
                self.make(count)
            records = b"".join([self._ready.popleft() for _ in range(count)])
            first, self._due = self._due, TxId(self._due + count)
            await self._quorum.write(first, count, records)
            for done in batch:
                if not done.done():
                    done.set_result(None)
            # Those woken write their next op before the next batch begins.
            await asyncio.sleep(0)
        self._running = False

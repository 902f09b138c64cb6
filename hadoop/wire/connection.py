"""One TCP connection: bytes in through a buffer that is used again, bytes out as the kernel takes.

The other side can make us hold no more than ``PACKET_BYTES`` and what the budget gives: a full
buffer is not read into, and a sender waits until the kernel has everything.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from hadoop.wire.byte_budget import ByteBudget
from hadoop.wire.receive_buffer import ReceiveBuffer

FIRST_BYTES: Final = 4 * 1024
"""The buffer of a connection that has not sent much: operations are short."""
PACKET_BYTES: Final = 64 * 1024
"""The buffer of each connection may have this size: a packet of Hadoop's client fits."""
MANY_PACKETS_BYTES: Final = 512 * 1024
"""The buffer of a connection that sends faster than we work, while half of the budget is free."""


class PeerLost(Exception):
    """The other side has closed, or has said or taken nothing for too long."""


class Connection(asyncio.BufferedProtocol):
    """One reader and several writers may use it."""

    def __init__(
        self, budget: ByteBudget, on_made: Callable[["Connection"], None] = lambda _: None
    ) -> None:
        self._budget, self._on_made = budget, on_made
        self._transport: asyncio.Transport | None = None
        self._buffer = ReceiveBuffer(FIRST_BYTES)
        self._borrowed = 0
        self._paused = self._at_end = self._lost = False
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self.name = "?"
        self.ends: tuple[object, object] = None, None
        """The names of the other end's socket and of ours."""

    # For asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self._writable.set()
        address = transport.get_extra_info("peername")
        self.ends = address, transport.get_extra_info("sockname")
        if address:
            self.name = f"{address[0]}:{address[1]}"
        self._on_made(self)

    def get_buffer(self, _: int) -> memoryview:
        return self._buffer.free()

    def buffer_updated(self, count: int) -> None:
        self._buffer.filled(count)
        if self._buffer.is_full and self._transport is not None:
            self._transport.pause_reading()
            self._paused = True
        self._arrived.set()

    def eof_received(self) -> bool:
        self._at_end = True
        self._arrived.set()
        return True  # it may still want our answer

    def connection_lost(self, _: Exception | None) -> None:
        self._at_end = self._lost = True
        self._arrived.set()
        self._writable.set()
        self._give_back()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Reading.

    @property
    def waiting(self) -> memoryview:
        """All bytes that have come and are not read yet; good until the next ``wait_for``."""
        return self._buffer.peek(len(self._buffer))

    def skip(self, count: int) -> None:
        self._buffer.skip(count)

    async def wait_for(self, count: int, *, until: float) -> None:
        """Wait until ``count`` bytes can be read; ``until`` is a time of the loop.

        Raises:
            PeerLost: if they do not come in time.
        """
        if len(self._buffer) >= count:
            return
        if self._lost:
            raise PeerLost(f"{self.name} has closed the connection")
        try:
            async with asyncio.timeout_at(until):
                await self._make_room(count)
                while len(self._buffer) < count:
                    if self._at_end:
                        raise PeerLost(f"{self.name} has closed the connection")
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError as problem:
            if len(self._buffer) < count:  # else it was this process that stood still
                raise PeerLost(f"{self.name} has sent nothing for too long") from problem

    async def _make_room(self, count: int) -> None:
        buffer = self._buffer
        capacity = self._capacity_for(count)
        more = max(0, capacity - PACKET_BYTES) - self._borrowed
        if more > 0 and count > buffer.capacity:
            await self._wait_for_memory(more)
        elif more > 0 and not self._budget.try_take(more):
            capacity, more = buffer.capacity, 0
        elif more < 0:
            self._budget.give(-more)
        self._borrowed += more
        buffer.make_room(capacity)
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def _capacity_for(self, count: int) -> int:
        """Return the size for the buffer to hold ``count`` bytes that are not all there."""
        now = self._buffer.capacity
        if count > now:
            return max(count, PACKET_BYTES)
        if now > MANY_PACKETS_BYTES:
            return max(count, PACKET_BYTES)  # a large packet has been read
        if self._buffer.is_full and now >= PACKET_BYTES:
            return MANY_PACKETS_BYTES
        return now

    async def _wait_for_memory(self, count: int) -> None:
        try:
            await self._budget.take(count)
        except ValueError as problem:
            raise PeerLost(f"{self.name} sends more at once than fits: {problem}") from problem
        if self._lost:
            self._budget.give(count)
            raise PeerLost(f"{self.name} has closed the connection")

    def _give_back(self) -> None:
        self._budget.give(self._borrowed)
        self._borrowed = 0

    # Writing.

    @property
    def is_open(self) -> bool:
        """Whether bytes can still be written."""
        return self._transport is not None and not self._transport.is_closing()

    def write(self, data: bytes | memoryview) -> None:
        """Give bytes to the kernel; a view must stay as it is until ``flushed``."""
        if self._transport is not None and data and not self._lost:
            self._transport.write(data)

    async def flushed(self, *, seconds: float) -> None:
        """Wait until the kernel has taken everything.

        Raises:
            PeerLost: if the other side makes it wait for too long, or has gone.
        """
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._writable.wait()
            except TimeoutError as problem:
                raise PeerLost(f"{self.name} has taken nothing for {seconds} s") from problem
        if not self.is_open:
            raise PeerLost(f"{self.name} has closed the connection")

    def close(self) -> None:
        """Close once the kernel has taken everything."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

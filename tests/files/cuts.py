"""A DataNode's door that cuts connections at a chosen moment, or lets nothing more through."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.stand_in import stand_in

SMALL = 100
"""Bytes: the packet that ends a block is smaller, and its sender waits before and after it."""


@dataclass(slots=True)
class Door:
    """``after`` that number of bytes to the DataNode (or from it, if ``reading``) it does its deed.

    ``at_end`` does it at the packet that ends a block, before that is ``passed`` on or after.
    """

    target: int
    after: int | None = None
    at_end: bool = False
    passed: bool = False
    stalls: bool = False
    reading: bool = False
    port: int = 0
    deeds: int = 0
    most_deeds: int = 1
    never: asyncio.Event = field(default_factory=asyncio.Event)

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass everything on, both ways, until the moment comes."""
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ways = [
            asyncio.create_task(self._pass(reader, inner_writer, watched=not self.reading)),
            asyncio.create_task(self._pass(inner_reader, writer, watched=self.reading)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (inner_writer, writer):
                one.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, watched: bool
    ) -> None:
        count = 0
        with suppress(ConnectionError):
            while data := await source.read(65536):
                ends = self.at_end and count > SMALL and len(data) < SMALL
                count += len(data)
                due = ends or (self.after is not None and count > self.after)
                if watched and due and self.deeds < self.most_deeds:
                    self.deeds += 1
                    if self.passed:
                        to.write(data)
                        await to.drain()
                    if self.stalls:
                        await self.never.wait()
                    return
                to.write(data)
                await to.drain()


@asynccontextmanager
async def door(one: Door) -> AsyncIterator[Door]:
    """Open it on a port of its own."""
    async with stand_in(one.speak) as port:
        one.port = port
        yield one
        one.never.set()

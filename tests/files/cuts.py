"""A DataNode's door that cuts connections at a chosen moment, or lets nothing more through."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from google.protobuf.message import Message

from ha.rpc.protocol import Call
from hadoop.proto import hdfs_types_pb2 as hdfs
from tests.files.world import Handle, World
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


NOTHING = Door(0)


@asynccontextmanager
async def doors(made: World, of: Door = NOTHING) -> AsyncIterator[dict[int, Door]]:
    """Put a door in front of each DataNode; the NameNode's answers name the doors."""
    async with AsyncExitStack() as stack:
        nodes = made.namenode.cluster.nodes.values()
        ports = [int(one.id.transfer_address.rpartition(":")[2]) for one in nodes]
        found = {
            port: await stack.enter_async_context(door(replace(of, target=port))) for port in ports
        }

        async def renamed(handle: Handle, call: Call, request: Message) -> Message:
            answer = await handle(call, request)
            for block in located(answer):
                for node in block.locs:
                    at = found.get(node.id.xferPort)
                    node.id.xferPort = at.port if at is not None else node.id.xferPort
            return answer

        made.meddle = renamed
        yield found


def located(answer: Message) -> list[hdfs.LocatedBlockProto]:
    """Return the blocks with places in an answer of the NameNode."""
    block, locations = getattr(answer, "block", None), getattr(answer, "locations", None)
    if isinstance(block, hdfs.LocatedBlockProto):
        return [block]
    return list(locations.blocks) if locations is not None else []

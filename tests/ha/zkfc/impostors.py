"""Faulty peers: they receive every request, and answer late, wrongly or never."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.errors import ServiceFailed
from ha.service.ha_service import zkfc_protocol
from tests.ha.zkfc.toy_namenode import HOST
from tests.stand_in import stand_in


@dataclass
class OddController:
    """A controller that notes what it is asked and then does ``on_cede``."""

    on_cede: Callable[[int], Awaitable[None]]
    asked: list[int] = field(default_factory=list)

    async def cede_active(self, millis: int, call: Call) -> None:
        self.asked.append(millis)
        await self.on_cede(millis)

    async def graceful_failover(self, call: Call) -> None:
        raise ServiceFailed("not this one")


@asynccontextmanager
async def serving(controller: OddController) -> AsyncIterator[int]:
    server = RpcServer([zkfc_protocol(controller)])
    port = await server.start(HOST, 0)
    try:
        yield port
    finally:
        server.abort_connections()
        await server.stop()


@asynccontextmanager
async def tar_pit() -> AsyncIterator[int]:
    """Open a port that takes connections and never answers, as a stopped process's does."""

    async def swallow(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            pass

    async with stand_in(swallow) as port:
        yield port

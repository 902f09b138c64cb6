"""A connection that is open before it is needed: the request over it waits for no handshake."""

import asyncio
from collections.abc import Callable
from typing import Final

from ha.conf.topology import HostPort
from ha.record import dataclass
from ha.rpc.client import Connect, Connection, RpcConnection
from ha.rpc.errors import RpcError

CONNECT_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.5
"""After the end of a connection."""
AGAIN_SECONDS: Final = 2.0
"""Where there was none to be had: a server that refuses us has the work of a handshake each time.
"""
LOOK_SECONDS: Final = 1.0
"""Between two looks whether another server is meant."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A connection that has not been taken yet."""

    server: HostPort
    connection: Connection
    gone: asyncio.Future[Exception]


class SpareConnection:
    """Keeps one connection to one server ready while ``run`` runs.

    Each is given away once, and its new owner closes it, as any other; so a request over it ends
    with it as well.  What is ready may have been lost without a sign: a caller that gets
    ``ConnectionLost`` knows as little as ever, and one that may ask twice asks again.
    """

    def __init__(
        self,
        server: Callable[[], HostPort | None],
        protocol: str,
        *,
        connect: Connect = RpcConnection.open,
    ) -> None:
        """Keep a connection to the server that ``server`` returns at the time; None: to none."""
        self._server = server
        self._protocol = protocol
        self._connect = connect
        self._kept: _Kept | None = None

    async def run(self) -> None:
        """Keep one ready until cancelled."""
        try:
            while True:
                server = self._server()
                had = server is not None and await self._kept_until_gone(server)
                await asyncio.sleep(PAUSE_SECONDS if had else AGAIN_SECONDS)
        finally:
            await self._hang_up()

    async def _kept_until_gone(self, server: HostPort) -> bool:
        try:
            opened = await self._connect(
                server.host,
                server.port,
                protocol=self._protocol,
                deadline_seconds=CONNECT_SECONDS,
            )
        except RpcError:
            return False
        gone = asyncio.ensure_future(opened.wait_closed())
        self._kept = _Kept(server, opened, gone)
        try:
            while not gone.done() and self._server() == server:
                await asyncio.wait({gone}, timeout=LOOK_SECONDS)
        finally:
            gone.cancel()
        await self._hang_up()
        return True

    def take(self, server: HostPort) -> Connection | None:
        """Hand over the connection that is ready for this server; None where there is none."""
        kept = self._kept
        if kept is None or kept.server != server or kept.gone.done():
            return None
        self._kept = None
        return kept.connection

    async def _hang_up(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            await kept.connection.close()


class SpareConnections:
    """Several of them, asked and run as one."""

    def __init__(self, *spares: SpareConnection) -> None:
        self._spares = spares

    async def run(self) -> None:
        """Keep each ready until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._spares:
                group.create_task(one.run())

    def take(self, server: HostPort) -> Connection | None:
        """Hand over a connection as ``SpareConnection.take`` does."""
        return next((ready for one in self._spares if (ready := one.take(server))), None)

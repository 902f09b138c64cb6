"""A connection that is open before it is needed: the request over it waits for no handshake."""

import asyncio
from typing import Final

from ha.conf.topology import HostPort
from ha.rpc.client import Connect, Connection, RpcConnection
from ha.rpc.errors import RpcError

CONNECT_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 1.0
"""After the end of a connection, or where there was none to be had."""


class SpareConnection:
    """Keeps one connection to one server ready while ``run`` runs.

    Each is given away once, and its new owner closes it, as any other; so a request over it ends
    with it as well.  What is ready may have been lost without a sign: a caller that gets
    ``ConnectionLost`` knows as little as ever, and one that may ask twice asks again.
    """

    def __init__(
        self, server: HostPort, protocol: str, *, connect: Connect = RpcConnection.open
    ) -> None:
        self._server = server
        self._protocol = protocol
        self._connect = connect
        self._ready: Connection | None = None

    async def run(self) -> None:
        """Keep one ready until cancelled."""
        try:
            while True:
                await self._until_gone()
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            if (ready := self.take()) is not None:
                await ready.close()

    async def _until_gone(self) -> None:
        try:
            opened = await self._connect(
                self._server.host,
                self._server.port,
                protocol=self._protocol,
                deadline_seconds=CONNECT_SECONDS,
            )
        except RpcError:
            return
        self._ready = opened
        await opened.wait_closed()
        if self._ready is opened:
            self._ready = None

    def take(self) -> Connection | None:
        """What is ready, and the caller's from now on; None where nothing is."""
        ready, self._ready = self._ready, None
        return ready

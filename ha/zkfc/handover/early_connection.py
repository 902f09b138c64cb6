"""A connection to a peer's controller, begun before it is known that it is the one to be asked."""

import asyncio
from contextlib import suppress
from typing import Final

from ha.conf.topology import HostPort
from ha.rpc.client import Connect, Connection
from ha.rpc.errors import RpcError
from ha.rpc.java_names import ZKFC_PROTOCOL

CONNECT_SECONDS: Final = 2.0


class EarlyConnection:
    """A ``Connect`` that gives who asks for that peer what was begun, once; else a new one.

    A hand-over asks ZooKeeper who holds the lock, and then that one to cede.  The notices say as a
    rule who it will be; with certificates to connect takes longer than ZooKeeper's answer.
    """

    def __init__(self, connect: Connect, peer: HostPort | None) -> None:
        """Begin to connect to ``peer``, if there is one."""
        self._connect = connect
        self._peer = peer
        self._begun: asyncio.Future[Connection] | None = None
        if peer is not None:
            opening = connect(
                peer.host, peer.port, protocol=ZKFC_PROTOCOL, deadline_seconds=CONNECT_SECONDS
            )
            self._begun = asyncio.ensure_future(opening)

    async def __call__(
        self,
        host: str,
        port: int,
        *,
        protocol: str,
        user: str | None = None,
        deadline_seconds: float,
    ) -> Connection:
        """As any ``Connect``."""
        if self._begun is not None and self._peer == HostPort(host, port):
            begun, self._begun = self._begun, None
            return await begun
        return await self._connect(
            host, port, protocol=protocol, user=user, deadline_seconds=deadline_seconds
        )

    async def close(self) -> None:
        """Hang up what nobody has asked for."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.cancel()
            with suppress(RpcError, asyncio.CancelledError):
                await (await begun).close()

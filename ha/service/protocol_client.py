"""One connection over Hadoop RPC to one protocol of a NameNode or of a failover controller."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, Self, TypeVar

from google.protobuf.message import Message

from ha.conf.topology import HostPort
from ha.rpc.client import Connect, Connection, RpcConnection
from ha.service.faults import speaking_to

A = TypeVar("A", bound=Message)


class ProtocolClient:
    """Every call raises a ``ServiceRefused`` kind when the server says no, and
    ``ServiceUnreachable`` when there is no answer in time; after the latter, open a new one.
    """

    protocol: ClassVar[str]

    def __init__(self, address: HostPort, connection: Connection) -> None:
        self.address = address
        self._connection = connection

    @classmethod
    async def open(
        cls,
        address: HostPort,
        *,
        deadline_seconds: float,
        user: str | None = None,
        connect: Connect = RpcConnection.open,
    ) -> Self:
        """Connect; raise ``ServiceUnreachable`` if there is no connection within the deadline."""
        with speaking_to(str(address)):
            connection = await connect(
                address.host,
                address.port,
                protocol=cls.protocol,
                user=user,
                deadline_seconds=deadline_seconds,
            )
        return cls(address, connection)

    @classmethod
    @asynccontextmanager
    async def connected(
        cls,
        address: HostPort,
        *,
        deadline_seconds: float,
        connect: Connect = RpcConnection.open,
        over: Connection | None = None,
    ) -> AsyncIterator[Self]:
        """Connect for a few calls, ``over`` a connection if one is open; errors as for ``open``."""
        if over is None:
            client = await cls.open(address, deadline_seconds=deadline_seconds, connect=connect)
        else:
            client = cls(address, over)
        try:
            yield client
        finally:
            await client.close()

    async def _call(
        self,
        method: str,
        request: Message,
        answer: type[A],
        *,
        deadline_seconds: float,
        context: str = "",
    ) -> A:
        with speaking_to(str(self.address)):
            return await self._connection.call(
                method, request, answer, deadline_seconds=deadline_seconds, context=context
            )

    async def wait_closed(self) -> Exception:
        """Wait until the server's end of the connection is gone, and say why."""
        return await self._connection.wait_closed()

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()

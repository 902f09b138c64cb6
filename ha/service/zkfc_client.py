"""Asks a failover controller to cede, or to take over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ha.conf.topology import HostPort
from ha.rpc.client import Connect, Connection, RpcConnection
from ha.rpc.java_names import ZKFC_PROTOCOL
from ha.rpc.proto import ha_service_pb2, zkfc_pb2
from ha.service.faults import speaking_to

_MAX_MILLIS = 0x7FFFFFFF


class ZkfcClient:
    """One connection to one controller's ZKFCProtocol; errors as ServiceClient."""

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
    ) -> "ZkfcClient":
        """Connect.

        Raises:
            ServiceUnreachable: if there is no connection within the deadline.
        """
        with speaking_to(str(address)):
            connection = await connect(
                address.host,
                address.port,
                protocol=ZKFC_PROTOCOL,
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
    ) -> AsyncIterator["ZkfcClient"]:
        """Connect for a few calls, ``over`` a connection if one is open; errors as for ``open``."""
        if over is None:
            client = await cls.open(address, deadline_seconds=deadline_seconds, connect=connect)
        else:
            client = cls(address, over)
        try:
            yield client
        finally:
            await client.close()

    async def cede_active(self, millis: int, *, deadline_seconds: float) -> None:
        """Ask it to leave the election for ``millis`` milliseconds; 0 or less: come back now.

        Java sends "come back now" as -1, which is no uint32; 0 means the same.
        """
        with speaking_to(str(self.address)):
            await self._connection.call(
                "cedeActive",
                zkfc_pb2.CedeActiveRequestProto(millisToCede=min(max(millis, 0), _MAX_MILLIS)),
                zkfc_pb2.CedeActiveResponseProto,
                deadline_seconds=deadline_seconds,
            )

    async def graceful_failover(self, *, deadline_seconds: float, reason: str = "") -> None:
        """Ask it to make its own NameNode the active one; ``reason`` is for its history.

        Raises:
            ServiceFailed: with the reason, if that could not be done.
        """
        with speaking_to(str(self.address)):
            await self._connection.call(
                "gracefulFailover",
                zkfc_pb2.GracefulFailoverRequestProto(),
                zkfc_pb2.GracefulFailoverResponseProto,
                deadline_seconds=deadline_seconds,
                context=reason,
            )

    async def say_anything(self, *, deadline_seconds: float) -> None:
        """Ask what no controller knows, for any answer: it changes nothing there.

        Raises:
            ServiceRefused: always where it lives, Hadoop's as well.
        """
        with speaking_to(str(self.address)):
            await self._connection.call(
                "getServiceStatus",
                ha_service_pb2.GetServiceStatusRequestProto(),
                ha_service_pb2.GetServiceStatusResponseProto,
                deadline_seconds=deadline_seconds,
            )

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()

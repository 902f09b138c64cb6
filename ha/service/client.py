"""Asks a NameNode for its status and health, and orders it to change its role."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ha.conf.topology import HostPort
from ha.daemon.identity import clock
from ha.rpc.client import Connect, Connection, RpcConnection
from ha.rpc.java_names import HA_SERVICE_PROTOCOL
from ha.rpc.packets import text
from ha.rpc.proto import ha_service_pb2
from ha.service.faults import speaking_to
from ha.service.model import ProcessIdentity, RequestSource, ServiceState, ServiceStatus


class ServiceClient:
    """One connection to one NameNode's HAServiceProtocol.

    Every call raises a ``ServiceRefused`` kind when the NameNode says no, and
    ``ServiceUnreachable`` when there is no answer in time; after the latter, open a new one.

    See docs/reference/rpc.md#haserviceprotocol.
    """

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
    ) -> "ServiceClient":
        """Connect.

        Raises:
            ServiceUnreachable: if there is no connection within the deadline.
        """
        with speaking_to(str(address)):
            connection = await connect(
                address.host,
                address.port,
                protocol=HA_SERVICE_PROTOCOL,
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
    ) -> AsyncIterator["ServiceClient"]:
        """Connect for a few calls, ``over`` a connection if one is open; errors as for ``open``."""
        if over is None:
            client = await cls.open(address, deadline_seconds=deadline_seconds, connect=connect)
        else:
            client = cls(address, over)
        try:
            yield client
        finally:
            await client.close()

    async def status(self, *, deadline_seconds: float) -> ServiceStatus:
        """Return the NameNode's state, and whether it could become active."""
        with speaking_to(str(self.address)):
            answer = await self._connection.call(
                "getServiceStatus",
                ha_service_pb2.GetServiceStatusRequestProto(),
                ha_service_pb2.GetServiceStatusResponseProto,
                deadline_seconds=deadline_seconds,
            )
        process = None
        if answer.HasField("nnhaPid") and answer.HasField("nnhaMachine"):
            machine = text(answer.nnhaMachine)
            process = ProcessIdentity(answer.nnhaPid, answer.nnhaStartedTicks, machine)
        return ServiceStatus(
            ServiceState[ha_service_pb2.HAServiceStateProto.Name(answer.state)],
            answer.readyToBecomeActive,
            text(answer.notReadyReason),
            process,
        )

    async def monitor_health(self, *, deadline_seconds: float) -> None:
        """Return if the NameNode is well.

        Raises:
            HealthCheckFailed: if it says that it is not.
        """
        with speaking_to(str(self.address)):
            await self._connection.call(
                "monitorHealth",
                ha_service_pb2.MonitorHealthRequestProto(),
                ha_service_pb2.MonitorHealthResponseProto,
                deadline_seconds=deadline_seconds,
            )

    async def transition_to_active(
        self,
        source: RequestSource,
        *,
        deadline_seconds: float,
        predecessor_gone_until: float = 0.0,
        turn: int = 0,
    ) -> None:
        """Make it active; no change if it is.

        ``predecessor_gone_until``: up to this moment of the loop's clock no other can serve
        anything, not even a read; 0 if that is not known.
        ``turn``: which lock this is asked under; 0 where none is.

        Raises:
            ServiceFailed: if it cannot.
            AccessDenied: if that kind of requester may not ask.
        """
        with speaking_to(str(self.address)):
            await self._connection.call(
                "transitionToActive",
                ha_service_pb2.TransitionToActiveRequestProto(
                    reqInfo=_info(source, predecessor_gone_until=predecessor_gone_until, turn=turn)
                ),
                ha_service_pb2.TransitionToActiveResponseProto,
                deadline_seconds=deadline_seconds,
            )

    async def transition_to_standby(
        self, source: RequestSource, *, deadline_seconds: float, turn: int = 0
    ) -> None:
        """Make it standby; no change if it is.  Errors as for ``transition_to_active``."""
        with speaking_to(str(self.address)):
            await self._connection.call(
                "transitionToStandby",
                ha_service_pb2.TransitionToStandbyRequestProto(reqInfo=_info(source, turn=turn)),
                ha_service_pb2.TransitionToStandbyResponseProto,
                deadline_seconds=deadline_seconds,
            )

    async def wait_closed(self) -> Exception:
        """Wait until the NameNode's end of the connection is gone, and say why."""
        return await self._connection.wait_closed()

    async def close(self) -> None:
        """Hang up."""
        await self._connection.close()


async def state_of(address: HostPort, *, deadline_seconds: float) -> ServiceState:
    """Ask a NameNode for its state over a connection of its own; errors as of both its steps."""
    async with ServiceClient.connected(address, deadline_seconds=deadline_seconds) as client:
        return (await client.status(deadline_seconds=deadline_seconds)).state


def _info(
    source: RequestSource, *, predecessor_gone_until: float = 0.0, turn: int = 0
) -> ha_service_pb2.HAStateChangeRequestInfoProto:
    return ha_service_pb2.HAStateChangeRequestInfoProto(
        reqSource=ha_service_pb2.HARequestSource.ValueType(source),
        nnhaPredecessorGone=True if predecessor_gone_until else None,
        nnhaGoneUntilMicros=int(predecessor_gone_until * 1e6) or None,
        nnhaAskedMicros=int(asyncio.get_running_loop().time() * 1e6),
        nnhaClock=clock(),
        nnhaTurn=turn or None,
    )

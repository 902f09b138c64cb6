"""Asks a failover controller to cede, or to take over."""

from ha.rpc.java_names import ZKFC_PROTOCOL
from ha.rpc.proto import zkfc_pb2
from ha.service.protocol_client import ProtocolClient

_MAX_MILLIS = 0x7FFFFFFF


class ZkfcClient(ProtocolClient):
    """One connection to one controller's ZKFCProtocol."""

    protocol = ZKFC_PROTOCOL

    async def cede_active(self, millis: int, *, deadline_seconds: float) -> None:
        """Ask it to leave the election for ``millis`` milliseconds; 0 or less: come back now.

        Java sends "come back now" as -1, which is no uint32; 0 means the same.
        """
        await self._call(
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
        await self._call(
            "gracefulFailover",
            zkfc_pb2.GracefulFailoverRequestProto(),
            zkfc_pb2.GracefulFailoverResponseProto,
            deadline_seconds=deadline_seconds,
            context=reason,
        )

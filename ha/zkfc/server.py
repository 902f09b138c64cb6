"""ZKFCProtocol: who may ask this controller to cede or to take over, and what it does then."""

from collections.abc import Awaitable, Callable

import structlog

from ha.rpc.protocol import Call
from ha.rpc.server import RpcServer
from ha.service.errors import AccessDenied
from ha.service.face import zkfc_protocol
from ha.zkfc.record import Asked
from ha.zkfc.settings import ZkfcSettings

log = structlog.get_logger()


class ZkfcFace:
    """The service behind ZKFCProtocol (hadoop-ha 3.11: administrators, or our own user)."""

    def __init__(
        self,
        settings: ZkfcSettings,
        *,
        cede: Callable[[float], Awaitable[None]],
        hand_over: Callable[[Asked], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._cede = cede
        self._hand_over = hand_over

    async def cede_active(self, millis: int, call: Call) -> None:
        """Stand back for so long, or come back now."""
        self._admit(call)
        log.info("zkfc.cede.asked", millis=millis, user=call.user, host=call.host)
        await self._cede(millis / 1000)

    async def graceful_failover(self, call: Call) -> None:
        """Make our NameNode the active one."""
        self._admit(call)
        log.info("zkfc.handover.asked", user=call.user, host=call.host)
        await self._hand_over(Asked(call.user, call.host, call.context))

    def _admit(self, call: Call) -> None:
        allowed = call.user == self._settings.user or call.user in self._settings.administrators
        if not allowed:
            log.warning("zkfc.access.denied", user=call.user, host=call.host, method=call.method)
            raise AccessDenied(
                f"Access denied for user {call.user}: {call.method} is for {self._settings.user} "
                f"and the users of dfs.cluster.administrators"
            )


def rpc_server(face: ZkfcFace) -> RpcServer:
    """The controller's RPC server, not started."""
    return RpcServer([zkfc_protocol(face)])

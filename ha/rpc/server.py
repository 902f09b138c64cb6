"""A Hadoop RPC server: listens, serves protocols, and can drop its connections at once."""

import asyncio
from collections.abc import Sequence

import structlog

from ha.daemon.listening import Listener, listen
from ha.rpc.call_access import CallAccess
from ha.rpc.connection import ServerConnection
from ha.rpc.dispatcher import Dispatcher
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.limits import DEFAULT_LIMITS, RpcLimits
from ha.rpc.metrics import HANGUPS
from ha.rpc.protocol import Call, Catalogue, Method, RpcProtocol
from ha.security.access_control import AccessControl

__all__ = ["Call", "Method", "RpcLimits", "RpcProtocol", "RpcServer"]

log = structlog.get_logger()


class RpcServer:
    """Serves Java interfaces to Hadoop RPC clients on one port.

    A handler gets the ``Call`` and its request, and returns the response or raises
    ``RemoteFault``.  Handlers of one connection run side by side and may answer in any order.
    A handler is not cancelled when its caller hangs up, only when the server stops.  Calls of a
    method that has ``in_thread`` come one after the other, in a thread of their connection.
    """

    def __init__(
        self,
        protocols: Sequence[RpcProtocol],
        *,
        limits: RpcLimits = DEFAULT_LIMITS,
        budget: FrameBudget | None = None,
        access: AccessControl | None = None,
    ) -> None:
        """Share the process's ``budget`` with its other servers, or take one of its own.

        ``access`` decides which caller may call what; without one every claim is believed.
        """
        self._access = CallAccess(access)
        self._budget = budget or FrameBudget()
        self._catalogue = Catalogue.of(protocols)
        self._limits = limits
        self._dispatcher: Dispatcher | None = None
        self._server: Listener | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port (a free one if 0 was asked for).

        Raises:
            OSError: if the address cannot be had.
        """
        loop = asyncio.get_running_loop()
        dispatcher = Dispatcher(self._catalogue, self._limits, self._budget, self._access)
        self._server, bound = await listen(
            lambda: ServerConnection(self._limits, dispatcher),
            host,
            port,
            tls=self._access.tls,
            backlog=256,
        )
        self._dispatcher = dispatcher
        self._sweeper = loop.call_later(self._limits.sweep_seconds, self._sweep)
        log.info("rpc.server.listening", host=host, port=bound)
        return bound

    def serve(self, protocols: Sequence[RpcProtocol]) -> None:
        """Serve these instead of those before; open connections stay, calls under way end."""
        self._catalogue = Catalogue.of(protocols)
        if self._dispatcher is not None:
            self._dispatcher.catalogue = self._catalogue

    async def stop(self) -> None:
        """Take no more, let running handlers finish for a while, close everything."""
        server = self._server  # another stop may end first
        if server is None or self._dispatcher is None:
            return
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._dispatcher.accepting = False
        await server.stop()
        await self._dispatcher.drain(self._limits.stop_seconds)
        await asyncio.sleep(0)  # answers leave one turn after their handlers end
        self.abort_connections()
        await asyncio.sleep(0)  # they hear of their end one turn later
        await self._dispatcher.until_no_threads()
        await server.wait_closed()
        self._server = None

    def abort_connections(self, *, protocol: str | None = None) -> int:
        """Drop connections now, so that their clients look for another server.

        For a server that may no longer answer: a demoted or fenced NameNode.  With ``protocol``
        only those opened for that protocol are dropped: a failover controller that watches this
        process must not take a demotion for a death.

        Returns:
            How many were dropped.

        See docs/reference/rpc.md#a-server-that-may-no-longer-answer.
        """
        if self._dispatcher is None:
            return 0
        chosen = [
            connection
            for connection in self._dispatcher.connections
            if protocol is None or connection.who.protocol == protocol
        ]
        for connection in chosen:
            connection.abort("asked to")
        return len(chosen)

    @property
    def connection_count(self) -> int:
        """How many connections are open."""
        return 0 if self._dispatcher is None else len(self._dispatcher.connections)

    def _sweep(self) -> None:
        assert self._dispatcher is not None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in tuple(self._dispatcher.connections):
            limit = connection.overdue(now)
            if limit is not None:
                HANGUPS.labels(limit).inc()
                connection.abort(limit)
        self._dispatcher.close_unidentified()
        self._sweeper = loop.call_later(self._limits.sweep_seconds, self._sweep)

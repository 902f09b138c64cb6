"""Starts and stops a JournalNode: its journals and its gRPC, HTTP, Hadoop RPC and lane servers."""

import asyncio
import errno
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import structlog

from ha.conf.keys.security import Mode
from ha.conf.keys.units import HostPort
from ha.daemon.binding import cannot_listen
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.in_thread import run_in_thread
from ha.security.access_control import AccessControl
from journal.errors import StorageFailed
from journal.node.faces.grpc_access import GrpcAccess
from journal.node.faces.grpc_face import build_server
from journal.node.faces.grpc_watch import GrpcWatch
from journal.node.lanes.lane import Lanes
from journal.node.node import JournalNode
from journal.node.peers import Own
from journal.node.settings import NodeSettings

if TYPE_CHECKING:
    from aiohttp import web

    from ha.rpc.server import RpcServer
    from journal.node.faces.grpc_door import GrpcDoor

log = structlog.get_logger()

PREPARE_SECONDS: Final = 0.25
"""Interval at which ``_prepare`` looks for the first journal with edits."""


class PortTaken(Exception):
    """A listener's address cannot be bound; the message says which and what to do."""


class JournalNodeDaemon:
    """A JournalNode with its servers; ``async with`` starts and stops it.  Ports are 0 before.

    ``access`` authorizes callers; without it each caller may do everything.
    """

    def __init__(self, settings: NodeSettings, access: AccessControl | None = None) -> None:
        self._settings = settings
        self._access = access
        self._node: JournalNode | None = None
        self._server: Any = None
        self._hadoop: RpcServer | None = None
        self._lanes: Lanes | None = None
        self._door: GrpcDoor | None = None
        self._watch = GrpcWatch(lambda: self.rpc_port)
        self._endpoint: Endpoint | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._started_millis = int(time.time() * 1000)
        self.rpc_port = 0
        self.hadoop_port = 0
        self.lane_port = 0
        self.http_port = 0

    @property
    def node(self) -> JournalNode:
        if self._node is None:
            raise StorageFailed("the node is not running")
        return self._node

    @property
    def prepared(self) -> bool:
        """Whether the HTTP server has loaded aiohttp, which serves segments."""
        return self._endpoint is not None and self._endpoint.prepared

    async def start(self) -> None:
        """Load the journals, then listen on all addresses.

        Raises:
            StorageFailed: a folder or a journal cannot be used.
            PortTaken: an address cannot be bound.
        """
        self._node = JournalNode(self._settings)
        try:
            await self._node.load()
            await self._listen(self._node)
        except BaseException:
            await self.stop()
            raise
        log.info(
            "journalnode.started",
            rpc=str(HostPort(self._settings.rpc_host, self.rpc_port)),
            hadoop_rpc=self._hadoop_address(),
            write_lanes=self._lane_address(),
            http=str(HostPort(self._settings.http_host, self.http_port)),
            because=dict(self._settings.addresses_because),
        )

    async def stop(self) -> None:
        """Stop listening, wait for the requests that are being carried out, close the journals."""
        await asyncio.to_thread(self._watch.stop)
        if self._server is not None:
            await self._stop_grpc(self._server)
            self._server = self._stopping = None
        if self._door is not None:
            await self._door.stop()
            self._door = None
        if self._hadoop is not None:
            await self._hadoop.stop()
            self._hadoop = None
        if self._lanes is not None:
            await asyncio.to_thread(self._lanes.stop)
            self._lanes = None
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)
            self._preparing = None
        if self._endpoint is not None:
            await self._endpoint.stop()
            self._endpoint = None
        if self._node is not None:
            await self._node.stop()
            self._node = None

    async def _stop_grpc(self, server: Any) -> None:  # noqa: ANN401 - grpc has no types
        """Stop the gRPC server, in one task that goes on if the caller is cancelled.

        ``server.stop`` awaits a future of the server.  If that is cancelled with the caller, each
        later stop raises; two stops at the same time crash the process (grpcio 1.85).
        """
        if self._stopping is None:
            self._stopping = asyncio.create_task(server.stop(self._settings.stop_grace_seconds))
        await asyncio.shield(self._stopping)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _listen(self, node: JournalNode) -> None:
        settings = self._settings
        endpoint = Endpoint(
            status=self._status,
            healthy=node.why_unwell,
            ready=node.why_not_ready,
            routes=lambda: self._routes(node),
            access=self._access,
        )
        self._endpoint = endpoint  # before its start: stop() must find a server half started
        with _binding(settings.http_key.name, settings.http_host, settings.http_port):
            self.http_port = await endpoint.start(settings.http_host, settings.http_port)
        self._preparing = asyncio.create_task(_prepare(endpoint, node), name="prepare to serve")
        node.http_port = self.http_port
        server = build_server(node, self._grpc_access())
        host = f"[{settings.rpc_host}]" if ":" in settings.rpc_host else settings.rpc_host
        with _binding("dfs.journalnode.rpc-address", settings.rpc_host, settings.rpc_port):
            self.rpc_port = await self._open_grpc(server, host)
        await self._take_lanes(node)
        self._server = server
        await server.start()
        if self._door is None:
            self._watch.start()
        await self._listen_for_hadoop(node)
        node.begin_upkeep(Own(settings.rpc_host, self.rpc_port, self.hadoop_port))

    async def _open_grpc(self, server: Any, host: str) -> int:  # noqa: ANN401 - grpc has no types
        """Bind gRPC's port and return it; in permissive mode a GrpcDoor takes TLS and plain."""
        settings, access = self._settings, self._access
        address = f"{host}:{settings.rpc_port}"
        if access is None or access.tls is None:
            return int(server.add_insecure_port(address))
        # Loaded here: certificates take 13 MB of memory, and most nodes have none.
        from journal.node.faces.grpc_door import GrpcDoor, server_credentials

        access.tls.start()
        if access.policy.mode is not Mode.PERMISSIVE:
            return int(server.add_secure_port(address, server_credentials(access.tls)))
        self._door = GrpcDoor(server, access.tls, access)
        return await self._door.start(settings.rpc_host, settings.rpc_port)

    def _grpc_access(self) -> GrpcAccess | None:
        if self._access is None:
            return None
        host = self._settings.rpc_host
        return GrpcAccess(self._access, host, lambda: self.rpc_port, self._watch.admitted)

    async def _take_lanes(self, node: JournalNode) -> None:
        """Listen for write lanes; before gRPC is served, as its first NewEpoch may offer one."""
        host, port = self._settings.lane_host, self._settings.lane_port
        if host is None:
            return
        lanes = Lanes(node, self._access)
        self._lanes = lanes
        with _binding("nnha.journalnode.write-lane-address", host, port):
            self.lane_port = await run_in_thread(partial(lanes.start, host, port))
        node.lanes = lanes

    async def _listen_for_hadoop(self, node: JournalNode) -> None:
        """Listen for Hadoop RPC on a port of its own: gRPC takes no accepted connections."""
        settings = self._settings
        if settings.hadoop_host is None:
            return
        # Loaded here: most nodes serve no Java NameNodes, and need no Hadoop RPC.
        from journal.node.faces.hadoop_face import build_hadoop_server

        server = self._hadoop = build_hadoop_server(node, self._access)
        host, port = settings.hadoop_host, settings.hadoop_port
        with _binding("nnha.journalnode.hadoop-rpc-address", host, port):
            self.hadoop_port = await server.start(host, port)

    def _routes(self, node: JournalNode) -> "Sequence[web.RouteDef]":
        # Loaded here: both need aiohttp, which the endpoint loads only when it calls this.
        from journal.node.faces.jmx import JmxPage
        from journal.node.faces.transfer import SegmentServer

        return (
            *SegmentServer(node.find, self._settings.serve_bytes_per_second).routes(),
            *JmxPage(node, self._rpc_address, self._started_millis).routes(),
        )

    def _hadoop_address(self) -> str | None:
        host = self._settings.hadoop_host
        return None if host is None else str(HostPort(host, self.hadoop_port))

    def _lane_address(self) -> str | None:
        host = self._settings.lane_host
        return None if host is None else str(HostPort(host, self.lane_port))

    def _rpc_address(self) -> str:
        return str(HostPort(self._settings.rpc_host, self.rpc_port))

    def _status(self) -> dict[str, object]:
        return {
            "role": "journalnode",
            "address": self._rpc_address(),
            "hadoop_rpc_address": self._hadoop_address(),
            "write_lane_address": self._lane_address(),
            "http_address": str(HostPort(self._settings.http_host, self.http_port)),
            "journals": self.node.status(),
        }


@contextmanager
def _binding(key: str, host: str, port: int) -> Iterator[None]:
    """Raise PortTaken, with the key to change, if binding raises OSError or gRPC's RuntimeError."""
    try:
        yield
    except (OSError, RuntimeError) as failure:
        told = failure if isinstance(failure, OSError) else _why_not_bound(host, port)
        raise PortTaken(cannot_listen(key, host, port, told)) from told


def _why_not_bound(host: str, port: int) -> OSError:
    """Bind the address to get the system's error, which gRPC's RuntimeError does not contain."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as failure:
        return failure
    return OSError(errno.EADDRINUSE, "the port was taken, and is free now")


async def _prepare(endpoint: Endpoint, node: JournalNode) -> None:
    """Load aiohttp, which serves segments, when the first journal has edits; save memory before.

    A NameNode in a failover must not wait for that at its first download.
    """
    while not any(owner.state.last_written > 0 for owner in node.owners()):  # noqa: ASYNC110 - pure state
        await asyncio.sleep(PREPARE_SECONDS)
    await endpoint.prepare()

"""Where a NameNode listens, and what it serves there: the same doors before and after the load."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.listening import Door, door_of, required_door
from ha.conf.topology import HostPort
from ha.daemon.binding import listen_at
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.pages import PageAnswer, json_answer
from ha.rpc.frame_budget import FrameBudget
from ha.rpc.java_names import STANDBY_EXCEPTION
from ha.rpc.limits import RpcLimits
from ha.rpc.server import RpcProtocol, RpcServer
from ha.security.access_control import AccessControl
from ha.security.rights import WEBHDFS
from namenode_sim.process.status_page import LoadingPage, StatusPage
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.transfer.image_request import PATH as IMAGES

if TYPE_CHECKING:
    from aiohttp import web

FSCK: Final = "/fsck"
LAST_HOUR: Final = "/last-hour"


class Listeners:
    """Every port of one NameNode.  ``serve`` puts other things behind the open doors."""

    def __init__(
        self, conf: Configuration, place: NameNodeIdentity, protocols: Sequence[RpcProtocol],
        page: LoadingPage, access: AccessControl | None = None,
    ) -> None:  # fmt: skip
        self._http = _http_door(conf, place)
        self._page: LoadingPage | StatusPage = page
        self._endpoint = Endpoint(
            status=lambda: self._page.status(),
            healthy=lambda: self._page.trouble(),
            ready=lambda: self._page.not_ready(),
            role=lambda: self._page.role(),
            pages={"/jmx": self._jmx, LAST_HOUR: lambda _: json_answer(self._page.last_hour())},
            routes=self._before_the_image,
            access=access,
        )
        limits, budget = rpc_limits(conf), frame_budget(conf)
        self._servers = [
            (RpcServer(protocols, limits=limits, budget=budget, access=access), door)
            for door in _rpc_doors(conf, place)
        ]
        self._open = AsyncExitStack()

    async def start(self) -> None:
        """Listen.

        Raises:
            ExitWith: 1 with the reason, when an address cannot be had.
        """
        for server, door in self._servers:
            await listen_at(door, server.start)
            self._open.push_async_callback(server.stop)
        await listen_at(self._http, self._endpoint.start)
        self._open.push_async_callback(self._endpoint.stop)

    async def serve(
        self,
        protocols: Sequence[RpcProtocol],
        page: StatusPage,
        routes: "Callable[[], Sequence[web.RouteDef]]",
    ) -> None:
        """Serve the namespace: the image is loaded."""
        for server, _ in self._servers:
            server.serve(protocols)
        self._page = page
        await self._endpoint.replace_routes(routes)

    async def prepare(self) -> None:
        """Load aiohttp now, so that neither a transfer of an image nor a takeover waits for it."""
        await self._endpoint.prepare()

    async def stop(self) -> None:
        """Close what is open; harmless if nothing is."""
        await self._open.aclose()

    def _jmx(self, query: str) -> PageAnswer:
        return self._page.jmx(query)

    def _before_the_image(self) -> "Sequence[web.RouteDef]":
        """Refuse what needs the namespace while an image is loaded; RPC says the same."""
        from aiohttp import web

        from hadoop.webhdfs.callers import refused

        async def not_yet(_: web.Request) -> web.Response:
            raise web.HTTPServiceUnavailable(text=self._page.not_ready())

        async def elsewhere(_: web.Request) -> web.Response:
            return refused(STANDBY_EXCEPTION, self._page.not_ready() or "not ready")

        later = [web.route("*", path, not_yet) for path in (IMAGES, FSCK)]
        return [*later, web.route("*", WEBHDFS, elsewhere)]


def rpc_limits(conf: Configuration) -> RpcLimits:
    """Return what one peer of a NameNode may ask of it."""
    most = conf.get(keys.IPC_MAXIMUM_DATA_LENGTH)
    before = min(RpcLimits().max_handshake_frame_bytes, most)
    return RpcLimits(
        max_frame_bytes=most,
        max_handshake_frame_bytes=before,
        max_of_user=conf.get(keys.RPC_MAX_OF_USER),
        max_of_address=conf.get(keys.RPC_MAX_OF_ADDRESS),
    )


def frame_budget(conf: Configuration) -> FrameBudget:
    """Return the budget for all half-received frames; one of the largest size always fits."""
    largest = conf.get(keys.IPC_MAXIMUM_DATA_LENGTH)
    return FrameBudget(max(conf.get(keys.RPC_MAX_BUFFERED), largest + largest // 3 + 1))


def doors(conf: Configuration, place: NameNodeIdentity) -> list[Door]:
    return [*_rpc_doors(conf, place), _http_door(conf, place)]


def _rpc_doors(conf: Configuration, place: NameNodeIdentity) -> list[Door]:
    """Return where to serve RPC: the client port, and others that are set.

    A service or lifeline port of its own keeps ZKFCs and health probes from waiting behind clients.
    """
    found: dict[HostPort, Door] = {}
    for key in (keys.NAMENODE_RPC, keys.NAMENODE_SERVICE_RPC, keys.NAMENODE_LIFELINE_RPC):
        where = conf.get(key, **_scope(place))
        door = door_of(conf, key, **_scope(place))
        if where is not None and door is not None:
            found.setdefault(where, door)
    return list(found.values())


def _http_door(conf: Configuration, place: NameNodeIdentity) -> Door:
    return required_door(conf, keys.NAMENODE_HTTP, **_scope(place))


def _scope(place: NameNodeIdentity) -> dict[str, str]:
    return {"nameservice": place.address.nameservice, "namenode": place.address.namenode}

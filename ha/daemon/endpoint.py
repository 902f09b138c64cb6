"""The HTTP face of a daemon: /metrics for Prometheus, /health for balancers, /status for people."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence

from aiohttp import web
from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

MAX_REQUEST_BYTES = 64 * 1024
"""Our own routes take no bodies worth naming; a route that does reads its stream itself."""
SHUTDOWN_SECONDS = 1.0
"""How long requests that are under way may take when the daemon stops."""


class Endpoint:
    """One small HTTP server.

    ``status`` gives the object shown at /status.  ``healthy`` gives None while all is well, else
    the reason, which /health answers with 503.  Both are called on the event loop and must not
    block.
    """

    def __init__(
        self,
        *,
        status: Callable[[], Mapping[str, object]],
        healthy: Callable[[], str | None],
        routes: Sequence[web.RouteDef] = (),
    ) -> None:
        self._status = status
        self._healthy = healthy
        self._routes = tuple(routes)
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen on one address (port 0 = any) and return the bound port; raises ``OSError``."""
        application = web.Application(client_max_size=MAX_REQUEST_BYTES)
        application.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
                web.get("/status", self._show_status),
                *self._routes,
            ]
        )
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Close the listener and its connections; harmless when it was never started."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with contextlib.suppress(asyncio.TimeoutError):
                await runner.cleanup()

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def _health(self, _request: web.Request) -> web.Response:
        reason = self._healthy()
        if reason is None:
            return web.json_response({"healthy": True, "reason": None})
        return web.json_response({"healthy": False, "reason": reason}, status=503)

    async def _show_status(self, _request: web.Request) -> web.Response:
        text = json.dumps(self._status(), default=str)
        return web.Response(text=text, content_type="application/json")

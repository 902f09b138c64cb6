"""The part of a daemon's HTTP face that needs aiohttp; loaded when somebody asks for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import web

from ha.daemon.pages import METHODS, Page

MAX_REQUEST_BYTES = 64 * 1024
"""Our own routes take no bodies worth naming; a route that does reads its stream itself."""
KEEP_ALIVE_SECONDS = 75.0
"""How long a connection may wait for its next request; aiohttp's own limit is an hour."""
SHUTDOWN_SECONDS = 1.0
"""How long requests that are under way may take when the daemon stops."""


async def serve(pages: Mapping[str, Page], routes: Sequence[web.RouteDef]) -> web.AppRunner:
    """A server for connections that others accept; its owner cleans it up."""
    application = web.Application(client_max_size=MAX_REQUEST_BYTES)
    for path, page in pages.items():
        handler = _handler(page)
        application.add_routes([web.get(path, handler), web.options(path, handler)])
    application.add_routes(routes)
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
    )
    await runner.setup()
    return runner


def _handler(page: Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        answer = page(request.query_string)
        headers = {
            "Content-Type": answer.content_type,
            "Allow": METHODS,
            "Cache-Control": "no-cache",
        }
        body = b"" if request.method == "OPTIONS" else answer.body
        return web.Response(status=answer.status, body=body, headers=headers)

    return handle

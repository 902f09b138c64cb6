"""The part of a daemon's HTTP face that needs aiohttp; loaded when somebody asks for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar

from aiohttp import web

from ha.daemon.http.page_access import Headers, PageAccess
from ha.daemon.http.pages import METHODS, Page

MAX_REQUEST_BYTES = 64 * 1024
"""Our own routes take no bodies worth naming; a route that does reads its stream itself."""
KEEP_ALIVE_SECONDS = 75.0
"""How long a connection may wait for its next request; aiohttp's own limit is an hour."""
SHUTDOWN_SECONDS = 1.0
"""How long requests that are under way may take when the daemon stops."""


A = TypeVar("A")


async def serve(
    pages: Mapping[str, Page], routes: Sequence[web.RouteDef], access: PageAccess
) -> web.AppRunner:
    """Return a server for connections that others accept; its owner cleans it up."""
    application = web.Application(client_max_size=MAX_REQUEST_BYTES)
    for path, page in pages.items():
        handler = _handler(page, path, access)
        application.add_routes([web.get(path, handler), web.options(path, handler)])
    application.add_routes([_checked(route, access) for route in routes])
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
    )
    await runner.setup()
    return runner


def _checked(route: web.RouteDef, access: PageAccess) -> web.RouteDef:
    """Return the same route for allowed callers only; no body is read from the others either."""

    def asking(ask: Callable[[web.Request], Awaitable[A]]) -> Callable[[web.Request], Awaitable[A]]:
        async def handle(request: web.Request) -> A:
            asked = Headers(request.raw_headers)
            refusal = access.refusal(request.transport, request.method, route.path, asked)
            if refusal is not None:
                raise _REFUSALS[refusal.status](
                    headers=refusal.headers,
                    text=refusal.body.decode(),
                    content_type=refusal.content_type.partition(";")[0],
                )
            return await ask(request)

        return handle

    options = dict(route.kwargs)
    if options.get("expect_handler") is not None:
        options["expect_handler"] = asking(options["expect_handler"])
    return web.RouteDef(route.method, route.path, asking(_told(route, access)), options)


def _told(
    route: web.RouteDef, access: PageAccess
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler of a route that reports its end to the audit log."""

    async def handle(request: web.Request) -> web.StreamResponse:
        ended = access.begun(request.transport, request.method, route.path)
        status: int | None = None
        try:
            answer: web.StreamResponse = await route.handler(request)
        except web.HTTPException as no:
            status = no.status
            raise
        except Exception:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            raise
        else:
            status = answer.status
            return answer
        finally:
            ended(status)

    return handle


_REFUSALS = {401: web.HTTPUnauthorized, 403: web.HTTPForbidden, 421: web.HTTPMisdirectedRequest}


def _handler(
    page: Page, path: str, access: PageAccess
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        asked = Headers(request.raw_headers)
        answer = access.refusal(request.transport, request.method, path, asked)
        if answer is None:
            answer = access.shown(request.transport, page(request.query_string))
        headers = {
            "Content-Type": answer.content_type,
            "Allow": METHODS,
            "Cache-Control": "no-cache",
            **answer.headers,
        }
        body = b"" if request.method == "OPTIONS" else answer.body
        return web.Response(status=answer.status, body=body, headers=headers)

    return handle

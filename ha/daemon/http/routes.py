"""The part of a daemon's HTTP face that needs aiohttp; loaded when somebody asks for it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar

from aiohttp import web

from ha.daemon.http.page_access import PageAccess, shows_token
from ha.daemon.http.pages import METHODS, Headers, Page
from ha.daemon.http.proof import Proof, connected
from ha.security.access_control import AccessControl
from ha.security.caller import Caller

MAX_REQUEST_BYTES = 64 * 1024
"""Our own routes take no bodies worth naming; a route that does reads its stream itself."""
KEEP_ALIVE_SECONDS = 75.0
"""How long a connection may wait for its next request; aiohttp's own limit is an hour."""
SHUTDOWN_SECONDS = 1.0
"""How long requests that are under way may take when the daemon stops."""
MAX_FIELD_BYTES = 16 * 1024
"""Of one header: as much as a whole head may have, for tickets with many groups."""
_PROOF = web.RequestKey("proof", Proof)


A = TypeVar("A")


async def serve(
    pages: Mapping[str, Page], routes: Sequence[web.RouteDef], access: PageAccess
) -> web.AppRunner:
    """Return a server for connections that others accept; its owner cleans it up."""
    application = web.Application(client_max_size=MAX_REQUEST_BYTES)
    for path, page in pages.items():
        handler = _handler(page, path, access)
        application.add_routes([web.get(path, handler), web.options(path, handler)])
    application.add_routes([_guard(route, access) for route in routes])
    if access.proofs.takes_tickets:
        paths = dict.fromkeys(route.path for route in routes)
        taken = {route.path for route in routes if route.method in ("OPTIONS", "*")}
        options = [web.options(path, _answer_options) for path in paths if path not in taken]
        application.add_routes([_guard(route, access) for route in options])
    application.on_response_prepare.append(_add_proof)
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        max_field_size=MAX_FIELD_BYTES,
    )
    await runner.setup()
    return runner


async def _answer_options(_: web.Request) -> web.Response:
    """Answer OPTIONS, with which Java's clients prove themselves before they ask."""
    return web.Response(headers={"Allow": METHODS})


async def _add_proof(request: web.Request, response: web.StreamResponse) -> None:
    """Let an answer carry our own proof to the caller that has shown a ticket."""
    proof = request.get(_PROOF)
    if proof is not None:
        response.headers.update(proof.headers)


async def _proof_of(request: web.Request, asked: Headers, access: PageAccess) -> Proof:
    """Return what a request shows, looked at once: a token does not count again."""
    if _PROOF not in request:
        request[_PROOF] = await access.proofs.of(request.transport, request.method, asked)
    return request[_PROOF]


def caller_of(access: AccessControl, request: web.Request) -> Caller:
    """Return the caller of a request: whose ticket it shows, or whose connection it is."""
    proof = request.get(_PROOF)
    found = None if proof is None else proof.caller
    return connected(access, request.transport) if found is None else found


def _guard(route: web.RouteDef, access: PageAccess) -> web.RouteDef:
    """Return the same route for allowed callers only; no body is read from the others either."""

    def asking(ask: Callable[[web.Request], Awaitable[A]]) -> Callable[[web.Request], Awaitable[A]]:
        async def handle(request: web.Request) -> A:
            asked = Headers(request.raw_headers)
            proof = await _proof_of(request, asked, access)
            token = shows_token(request.rel_url.raw_query_string)
            refusal = access.refusal(proof, request.method, route.path, asked, shows_token=token)
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
    return web.RouteDef(route.method, route.path, asking(_with_audit(route, access)), options)


def _with_audit(
    route: web.RouteDef, access: PageAccess
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler of a route that reports its end to the audit log."""

    async def handle(request: web.Request) -> web.StreamResponse:
        proof = request.get(_PROOF)
        ended = access.begun(proof and proof.caller, request.method, route.path)
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
        proof = await _proof_of(request, asked, access)
        answer = access.refusal(proof, request.method, path, asked)
        if answer is None:
            answer = access.shown(proof, page(request.query_string))
        headers = {
            "Content-Type": answer.content_type,
            "Allow": METHODS,
            "Cache-Control": "no-cache",
            **answer.headers,
        }
        body = b"" if request.method == "OPTIONS" else answer.body
        return web.Response(status=answer.status, body=body, headers=headers)

    return handle

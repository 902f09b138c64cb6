"""The HTTP face of a daemon: /metrics for Prometheus, /health for balancers, /status for people.

/stacks shows what its threads and tasks are doing.  Plain requests for these are answered here. Any
other connection is handed to aiohttp with the bytes received, and aiohttp is loaded when the first
such one comes: it takes 11 MB, and most daemons are asked for nothing but their health.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from string import printable
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

import h11
import structlog
from prometheus_client import REGISTRY, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from ha.daemon.door.origin import Origin, Share, origin_of_ends
from ha.daemon.door.places import Standing
from ha.daemon.facts import own_facts
from ha.daemon.http.connection_table import HttpConnectionTable
from ha.daemon.http.page_access import PageAccess, shows_token
from ha.daemon.http.pages import METHODS, Headers, Page, PageAnswer, json_answer
from ha.daemon.http.probes import RoleSeen, probe_pages
from ha.daemon.http.proof import FIRST, Proof
from ha.daemon.http.stacks import stacks_page
from ha.daemon.http.stalled_readers import Reader
from ha.daemon.lazy_import import load_late
from ha.daemon.listening import Listener, listen
from ha.security.access_control import AccessControl

if TYPE_CHECKING:
    from aiohttp import web

log = structlog.get_logger()

# The creation times of the series are a third of the page, and nothing uses them.
disable_created_metrics()  # type: ignore[no-untyped-call]

SILENCE_SECONDS: Final = 75.0
"""How long a connection may say nothing, as with aiohttp, or take nothing of its answer."""
HEAD_SECONDS: Final = 20.0
"""From a request's first byte to the end of its headers; aiohttp itself would wait for ever."""
MAX_HEAD_BYTES: Final = 16 * 1024
_PLAIN_METHODS: Final = frozenset(METHODS.encode().split(b", "))
_FULL: Final = PageAnswer(
    HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"too many requests are under way\n"
)
_TOO_LARGE: Final = PageAnswer(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "text/plain", b"a head may have 16 KiB\n"
)
_LAST: Final = b"Connection: close\r\n"
_UNREADABLE: Final = h11.Request(method="GET", target="*", headers=[("Host", "")])
NOT_ALLOWED: Final = HTTPStatus.METHOD_NOT_ALLOWED
_NO_PAGES: Final[Mapping[str, Page]] = {}
_NO_ROUTES: Final[Sequence["web.RouteDef"]] = ()


class Endpoint:
    """One small HTTP server.

    ``status`` gives the object shown at /status.  ``healthy`` gives None while all is well, else
    the reason, which /health answers with 503.  Both are called on the event loop and must not
    block.  ``ready`` is the like for /readyz, the same as ``healthy`` if not given.  With ``role``
    there are /active, /standby and /isActive, too.  ``pages`` are further plain pages; ``routes``
    gives further routes when one is asked for, so that their modules can be loaded as late as
    aiohttp.  ``access`` decides who may see which page; without one everybody may see all.
    ``front`` is False where a route serves / instead of the page that says who this daemon is.
    """

    def __init__(  # noqa: PLR0913 - what is shown, and to whom
        self,
        *,
        status: Callable[[], Mapping[str, object]],
        healthy: Callable[[], str | None],
        ready: Callable[[], str | None] | None = None,
        role: Callable[[], RoleSeen] | None = None,
        pages: Mapping[str, Page] = _NO_PAGES,
        routes: Callable[[], Sequence["web.RouteDef"]] = lambda: _NO_ROUTES,
        silence_seconds: float = SILENCE_SECONDS,
        seats: HttpConnectionTable | None = None,
        access: AccessControl | None = None,
        front: bool = True,
    ) -> None:
        self._access = PageAccess(access)
        self._silence_seconds = silence_seconds
        self._status = status
        self._healthy = healthy
        self._routes = routes
        self._pages: dict[str, Page] = {
            "/metrics": lambda _: _metrics(),
            "/health": lambda _: self._health(),
            "/status": lambda _: json_answer(self._whole_status()),
            "/stacks": lambda _: stacks_page(),
            **probe_pages(ready or healthy, role),
            **pages,
            **({"/": lambda _: self._front()} if front else {}),
        }
        self._listener: Listener | None = None
        self._runner: asyncio.Task[web.AppRunner] | None = None
        self.seats = seats or HttpConnectionTable()

    async def start(self, host: str, port: int) -> int:
        """Listen on one address (port 0 = any) and return the bound port; raises ``OSError``."""
        # A browser without a certificate is to read why it sees nothing.
        self._access.listens_at(host)
        self._listener, bound = await listen(
            self._connection, host, port,
            tls=self._access.tls, demanding=False, plain=not self._access.https_only,
        )  # fmt: skip
        return bound

    async def replace_routes(self, routes: "Callable[[], Sequence[web.RouteDef]]") -> None:
        """Have these instead of those before, whose connections are closed."""
        self._routes = routes
        runner, self._runner = self._runner, None
        if runner is not None:
            await (await runner).cleanup()

    async def stop(self) -> None:
        """Close the listener and its connections; harmless when it was never started."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.stop()
        for connection in self.seats.asking:
            connection.abort()
        runner, self._runner = self._runner, None
        if runner is not None:
            await (await runner).cleanup()

    def _connection(self) -> "_Connection":
        return _Connection(
            self._pages, self.seats, self._whole_server, self._silence_seconds, self._access
        )

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the plain pages."""
        return tuple(self._pages)

    @property
    def prepared(self) -> bool:
        """Whether aiohttp is loaded, so that no request waits for it."""
        return self._runner is not None and self._runner.done()

    async def prepare(self) -> None:
        """Load aiohttp now: it takes 0.15 s, which the first who needs a route would wait for."""
        await self._whole_server()

    async def _whole_server(self) -> asyncio.Protocol:
        """Return aiohttp's protocol for one connection."""
        if self._runner is None:
            self._runner = asyncio.create_task(self._load_aiohttp(), name="load aiohttp")
        server = (await asyncio.shield(self._runner)).server
        assert server is not None
        return cast("asyncio.Protocol", server())

    async def _load_aiohttp(self) -> "web.AppRunner":
        await load_late("aiohttp.web")
        from ha.daemon.http.routes import serve

        return await serve(self._pages, self._routes(), self._access)

    def _whole_status(self) -> Mapping[str, object]:
        facts = own_facts()
        daemon = {} if facts is None else {"daemon": facts.as_json()}
        return {**self._status(), **daemon, **self._access.told()}

    def _front(self) -> PageAnswer:
        # Loaded here: most daemons are never looked at by a browser.
        from ha.daemon.http.front_page import front_page

        return front_page(self._status(), own_facts(), self.paths)

    def _health(self) -> PageAnswer:
        reason = self._healthy()
        status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
        return json_answer({"healthy": reason is None, "reason": reason}, status)


class _Connection(asyncio.Protocol):
    """One connection until it is answered or handed on."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        register: HttpConnectionTable,
        whole_server: Callable[[], Awaitable[asyncio.Protocol]],
        silence_seconds: float,
        access: PageAccess,
    ) -> None:
        self._silence_seconds = silence_seconds
        self._access = access
        self._pages = pages
        self._register = register
        self._whole_server = whole_server
        self._working: asyncio.Task[None] | None = None
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._request: h11.Request | None = None
        self._received = b""
        self.host = ""
        self.origin = Origin("", Share.OF_ADDRESS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        loop = asyncio.get_running_loop()
        self._transport = cast("asyncio.Transport", transport)
        self._patience = loop.call_later(self._silence_seconds, self.abort)
        peer = transport.get_extra_info("peername")
        self.host = str(peer[0]) if peer else ""
        self.origin = origin_of_ends(peer, transport.get_extra_info("sockname"))
        if not self._register.admit(self):
            self.abort()

    def data_received(self, data: bytes) -> None:
        is_first, self._received = not self._received, self._received + data
        request = self._plain_request(data)
        if request is not None and not isinstance(request, h11.Request):
            if is_first:
                self._abort_after(HEAD_SECONDS)
            return
        self._patience.cancel()
        if len(self._received) > MAX_HEAD_BYTES and self._head_bytes() > MAX_HEAD_BYTES:
            self._say(_TOO_LARGE, "GET")
            return
        asked = Headers((self._request or _UNREADABLE).headers)
        proofs = self._access.proofs
        if proofs.shows_any(asked):
            self._abort_after(HEAD_SECONDS)
            self._transport.pause_reading()
            self._working = asyncio.create_task(self._prove(request, asked), name="HTTP proof")
        else:
            self._go_on(request, asked, Proof(proofs.caller(self._transport)))

    async def _prove(self, request: h11.Request | None, asked: Headers) -> None:
        method = (self._request or _UNREADABLE).method.decode("ascii")
        proof = await self._access.proofs.of(self._transport, method, asked)
        self._patience.cancel()
        if not self._transport.is_closing():
            self._go_on(request, asked, proof)

    def _go_on(self, request: h11.Request | None, asked: Headers, proof: Proof) -> None:
        """Answer a request, or hand it on; None: it is none that is answered here."""
        path, _, query = request.target.decode("ascii").partition("?") if request else ("", "", "")
        page = self._pages.get(path)
        if request is not None and page is not None:
            method = request.method.decode("ascii")
            self._say(self._answer(method, path, page, query, asked, proof), method)
            return
        whole = self._request or _UNREADABLE
        method = whole.method.decode("ascii")
        path, _, query = whole.target.decode("latin-1").partition("?")
        if request is not None:  # nothing follows that would have to be read
            token = shows_token(query)
            answer = self._access.turned_away(proof, method, path, asked, shows_token=token)
            if answer is not None:
                self._say(answer, method)
                return
        self._transport.pause_reading()
        standing = self._access.standing(proof, method, path)
        self._working = asyncio.create_task(
            self._hand_on(standing, asked, proof), name="HTTP hand-over"
        )

    def _head_bytes(self) -> int:
        end = self._received.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES + 4)
        return len(self._received) if end < 0 else end

    def _say(self, answer: PageAnswer, method: str) -> None:
        # Until the last byte has gone: a client that never reads it must not keep page and
        # descriptor.
        self._abort_after(self._silence_seconds)
        self._transport.write(_encode_answer(answer, method))
        self._transport.close()

    def _plain_request(self, data: bytes) -> h11.Request | type[h11.NEED_DATA] | None:
        """Return a request without a body as soon as its head is complete; None for any other."""
        try:
            self._http.receive_data(data)
            request = self._http.next_event()
            if not isinstance(request, h11.Request):
                return h11.NEED_DATA
            self._request = request
            is_whole = isinstance(self._http.next_event(), h11.EndOfMessage)
        except h11.RemoteProtocolError:
            return None  # aiohttp answers what is wrong with it
        is_plain = is_whole and request.method in _PLAIN_METHODS
        return request if is_plain and not self._http.trailing_data[0] else None

    def _answer(
        self, method: str, path: str, page: Page, query: str, asked: Headers, proof: Proof
    ) -> PageAnswer:
        try:
            refusal = self._access.refusal(proof, method, path, asked)
            if refusal is not None:
                return refusal
            return self._access.shown(proof, page(query))
        except Exception:
            log.exception("http.page_failed", page=path, peer=self.host)
            return PageAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", b"")

    def connection_lost(self, error: Exception | None) -> None:
        self._patience.cancel()
        self._register.leave(self)

    def abort(self) -> None:
        """Close it, whatever was said."""
        if self._working is not None:
            self._working.cancel()
        self._transport.abort()

    def _abort_after(self, seconds: float) -> None:
        self._patience.cancel()
        self._patience = asyncio.get_running_loop().call_later(seconds, self.abort)

    async def _hand_on(self, standing: Standing, asked: Headers, proof: Proof) -> None:
        try:
            protocol = await self._whole_server()
        except Exception:
            log.exception("http.no_server", peer=self.host)
            self._transport.abort()
            return
        if self._transport.is_closing():
            return
        if not self._register.hand_on(self, self._transport, standing):
            self._say(_FULL, "GET")
            return
        FIRST.set([(asked, proof)])  # for the task that serves this connection
        Reader(self._transport, self._silence_seconds)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        self._transport.resume_reading()
        received = _in_ascii(self._received)
        if standing is Standing.UNPROVEN:  # it keeps no place after its answer
            line, end, rest = received.partition(b"\r\n")
            received = line + end + (_LAST if end else b"") + rest
        protocol.data_received(received)


def _in_ascii(received: bytes) -> bytes:
    """Return a request whose first line has percent signs for what is not ASCII.

    Java's WebHdfsFileSystem writes a file's name there as it is, and aiohttp would refuse it.
    """
    line, end, rest = received.partition(b"\r\n")
    with suppress(UnicodeDecodeError):
        line = quote(line.decode(), safe=printable).encode()
    return line + end + rest


def _encode_answer(answer: PageAnswer, method: str) -> bytes:
    body = b"" if method == "OPTIONS" else answer.body
    allow = f"Allow: {METHODS}\r\n" if method == "OPTIONS" or answer.status == NOT_ALLOWED else ""
    more = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"{allow}"
        f"{more}"
        "Cache-Control: no-cache\r\n"
        f"Date: {formatdate(usegmt=True)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("ascii") + (b"" if method == "HEAD" else body)


def _metrics() -> PageAnswer:
    return PageAnswer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(REGISTRY))

"""The pages, the stream of changes and the JSON of nnha web, as routes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote

from aiohttp import web

from ha.cli.explain.explanation import explain
from ha.cli.explain.history import as_json as history_json
from ha.cluster.query import NoAnswer
from ha.cluster.status_json import as_json as status_json
from ha.cluster.verdict import Condition, verdict
from ha.cluster.view import ClusterView
from ha.daemon.http.hosts import may_be_asked
from ha.notices.model import HistoryEntry
from ha.security.rights import FILES
from ha.web.blocks import blocks_of, folder_of, not_listed
from ha.web.metrics import REFUSED, Refusal
from ha.web.poller import ClusterPoller, Seen
from ha.web.render import ASSETS, DATANODES, NODE, OVERVIEW, Renderer, digest

MOST_VIEWERS: Final = 100
RETRY_MS: Final = 1000
TITLES: Final = {"/": "Cluster", "/datanodes": "DataNodes"}
"""Of the pages that follow the cluster, but for those of NameNodes."""
QUIET_SECONDS: Final = 5.0
"""After this time without a look a comment keeps proxies from closing the stream."""
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

History = Callable[[], Awaitable[tuple[HistoryEntry, ...]]]
"""All records of failovers.  Raises ``NoAnswer`` with the reason."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Document = Mapping[str, Any]
Ask = Callable[[ClusterView, str, Mapping[str, str]], Awaitable[tuple[int, Document]]]
"""What a page of the active NameNode says: a status of HTTP and a document; see ``blocks.ask``."""

_SAID: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""What of a NameNode's statuses is passed on."""


class Site:
    """What browsers ask for; ``nameservice`` is whose cluster it is."""

    def __init__(
        self,
        nameservice: str,
        looker: ClusterPoller,
        history: History,
        hosts: frozenset[str],
        *,
        ask: Ask,
        most_viewers: int = MOST_VIEWERS,
    ) -> None:
        self._ask = ask
        self._nameservice = nameservice
        self._looker = looker
        self._history = history
        self._hosts = hosts
        self._most_viewers = most_viewers
        self._renderer = Renderer()
        self._rendered: tuple[int, dict[str, Mapping[str, str]]] = (0, {})

    def routes(self) -> Sequence[web.RouteDef]:
        """Return all of them; each answers under our own names alone."""
        handlers: Mapping[str, Handler] = {
            "/": self._live,
            "/node/{namenode}": self._live,
            "/datanodes": self._live,
            "/blocks": self._blocks,
            "/block/{block}": self._blocks,
            "/file": self._blocks,
            FILES: self._files,
            "/history": self._failovers,
            "/failover/{number}": self._failovers,
            "/events": self._events,
            "/api/v1/status": self._status,
            "/api/v1/explain": self._explain,
            "/api/v1/history": self._history_json,
            "/api/v1/events": self._status_events,
            **{f"/{name}": self._asset for name in ASSETS},
        }
        return [web.get(path, self._guard(handler)) for path, handler in handlers.items()]

    def _guard(self, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not may_be_asked(request.headers.get("Host"), self._hosts):
                REFUSED.labels(Refusal.NAME.value).inc()
                text = (
                    "nnha web may not be asked under this name; nnha.web.hosts in its "
                    "configuration names more\n"
                )
                return _answer(text, "text/plain", HTTPStatus.MISDIRECTED_REQUEST)
            return await handler(request)

        return handle

    # Pages.

    async def _live(self, request: web.Request) -> web.StreamResponse:
        seen = await self._looker.fresh()
        sections = self._sections(seen, request.path)
        if sections is None:
            return self._missing(f"There is no NameNode of that name in {self._nameservice}.")
        title = _node_of(request.path) or TITLES[request.path]
        return _answer(self._renderer.page(title, seen.view, sections), "text/html")

    async def _failovers(self, request: web.Request) -> web.StreamResponse:
        """Show all that are kept, or that of a number."""
        number = request.match_info.get("number")
        try:
            entries = await self._history()
        except NoAnswer as failure:
            text = f"The history cannot be read: {failure}."
            return self._still("message", "Not known", HTTPStatus.SERVICE_UNAVAILABLE, text=text)
        if number is None:
            return self._still("history", "Failovers", entries=entries)
        for entry in entries:
            if str(entry.number) == number:
                return self._still("failover", f"Failover {number}", entry=entry)
        return self._missing(f"There is no record {number}; only the newest 100 are kept.")

    async def _blocks(self, request: web.Request) -> web.StreamResponse:
        """Show blocks and names of files, which fewer may see than the rest."""
        block, path = request.match_info.get("block"), request.query.get("path", "/")
        asked, title = {"needed": "1"}, "Blocks that lack replicas"
        if block is not None:
            asked, title = {"blockId": block}, f"Block {block}"
        elif request.path == "/file":
            asked, title = {"path": path, "blocks": "1", "openforwrite": "1"}, path
        asked |= {"form": "json"}
        return await self._of_active(
            "blocks", title, "/fsck", asked,
            lambda found: {"blocks": blocks_of(found), "more": not_listed(found)},
        )  # fmt: skip

    async def _files(self, request: web.Request) -> web.StreamResponse:
        """Show what is in a folder, a page of it."""
        path = request.match_info["path"] or "/"
        asked = {"op": "LISTSTATUS_BATCH", "startAfter": request.query.get("after", "")}
        page = f"/webhdfs/v1{quote(path, errors='replace')}"
        return await self._of_active("files", path, page, asked, partial(folder_of, path=path))

    async def _of_active(
        self, template: str, title: str, page: str, asked: Mapping[str, str],
        shown: Callable[[Document], Mapping[str, object]],
    ) -> web.StreamResponse:  # fmt: skip
        """Show what a page of the active NameNode says, or why it says nothing."""
        view = (await self._looker.fresh()).view
        state = verdict(view)
        status, found = await self._ask(view, page, asked)
        said = "" if state.condition is Condition.SERVING else f"{state.text}."
        if status == HTTPStatus.OK:
            return self._still(template, title, HTTPStatus.OK, state=said, **shown(found))
        text = f"{found.get('error', f'The NameNode answered with HTTP {status}.')} {said}"
        return self._still("message", title, status if status in _SAID else 503, text=text)

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        name = request.path.lstrip("/")
        return _answer(self._renderer.assets[name].decode(), ASSETS[name])

    # The stream.

    async def _events(self, request: web.Request) -> web.StreamResponse:
        path = unquote(request.query.get("page", "/"))
        sections = self._sections(await self._looker.fresh(), path)
        if sections is None:
            return self._missing("There is no such page to follow.")
        # A browser that comes back by itself asks as it did first, though it has received news
        # since.
        first = "Last-Event-ID" not in request.headers
        told = set(request.query.getall("shown", [])) if first else set()
        shown = {name: html for name, html in sections.items() if digest(html) in told}

        def news(seen: Seen) -> str:
            found = self._sections(seen, path) or {}
            changed = {name: html for name, html in found.items() if shown.get(name) != html}
            shown.update(changed)
            return json.dumps(changed)

        return await self._stream(request, "look", news)

    async def _status_events(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(
            request, "status", lambda seen: json.dumps(status_json(seen.view))
        )

    async def _stream(
        self, request: web.Request, event: str, news: Callable[[Seen], str]
    ) -> web.StreamResponse:
        """Send each look until the browser hangs up."""
        if self._looker.watchers >= self._most_viewers:
            REFUSED.labels(Refusal.FULL.value).inc()
            text = f"{self._most_viewers} viewers watch already\n"
            return _answer(text, "text/plain", HTTPStatus.SERVICE_UNAVAILABLE)
        headers = {**HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}
        stream = web.StreamResponse(headers=headers)
        await stream.prepare(request)
        await stream.write(f"retry: {RETRY_MS}\n\n".encode())
        number = 0
        with self._looker.watching(), suppress(ConnectionResetError):
            while True:
                try:
                    async with asyncio.timeout(QUIET_SECONDS):
                        seen = await self._looker.newer_than(number)
                except TimeoutError:
                    await stream.write(b": still here\n\n")
                    continue
                number = seen.number
                text = f"id: {number}\nevent: {event}\ndata: {news(seen)}\n\n"
                await stream.write(text.encode())
        return stream

    # JSON.

    async def _status(self, _: web.Request) -> web.StreamResponse:
        return _json(status_json((await self._looker.fresh()).view))

    async def _explain(self, _: web.Request) -> web.StreamResponse:
        return _json(explain((await self._looker.fresh()).view).as_json())

    async def _history_json(self, _: web.Request) -> web.StreamResponse:
        try:
            return _json(history_json(self._nameservice, await self._history()))
        except NoAnswer as failure:
            return _json({"error": str(failure)}, HTTPStatus.SERVICE_UNAVAILABLE)

    # Our own.

    def _sections(self, seen: Seen, path: str) -> Mapping[str, str] | None:
        """Return a page's sections, made once for each look; None where there is no such page."""
        node = _node_of(path)
        if (path not in TITLES and node is None) or not _exists(seen.view, node):
            return None
        number, made = self._rendered
        if number != seen.number:
            number, made = self._rendered = (seen.number, {})
        if path not in made:
            names = NODE if node is not None else OVERVIEW if path == "/" else DATANODES
            made[path] = self._renderer.sections(seen.view, names, node)
        return made[path]

    def _missing(self, text: str) -> web.Response:
        return self._still("message", "Not found", HTTPStatus.NOT_FOUND, text=text)

    def _still(
        self, template: str, title: str, status: int = HTTPStatus.OK, **shown: object
    ) -> web.Response:
        now = datetime.now(UTC)
        page = self._renderer.still(template, self._nameservice, now, title=title, **shown)
        return _answer(page, "text/html", status)


def _node_of(path: str) -> str | None:
    return path.removeprefix("/node/") if path.startswith("/node/") else None


def _exists(view: ClusterView, node: str | None) -> bool:
    return node is None or view.namenode(node) is not None


def _answer(text: str, content_type: str, status: int = HTTPStatus.OK) -> web.Response:
    return web.Response(
        text=text, content_type=content_type, charset="utf-8", status=status, headers=HEADERS
    )


def _json(document: Mapping[str, object], status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return _answer(json.dumps(document, indent=2) + "\n", "application/json", status)

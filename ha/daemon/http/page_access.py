"""Which caller may see which page: asked before one is made, on plain connections and aiohttp's."""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ha.daemon.door.places import Standing
from ha.daemon.http.hosts import allowed_hosts, may_be_asked
from ha.daemon.http.pages import PageAnswer, text_answer
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller, Method, Role
from ha.security.rights import HTTP, RIGHTS, WEBHDFS

if TYPE_CHECKING:
    from ha.security.tls_files import TlsFiles

_REASONS: Final = "GET reasons"
_ALIKE: Final = {"HEAD": "GET", "OPTIONS": "GET"}
"""They reveal no more than GET does."""
_PAGES: Final = RIGHTS[HTTP]
_PREFIXES: Final = {
    route.partition("{")[0]: route
    for route in (name.partition(" ")[2] for name in _PAGES)
    if "{" in route
}
_UNDER_ANY_NAME: Final = frozenset(
    {WEBHDFS, "/livez", "/readyz", "/active", "/standby", "/isActive", "/health"}
)
"""WebHDFS checks names by itself; what the others say, everybody may know."""
_MISSING: Final = text_answer("there is no such page\n", HTTPStatus.NOT_FOUND)


class Headers:
    """What a request says in its headers, as far as an answer depends on it."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        found = {name.lower(): value.decode("latin-1") for name, value in headers}
        self.host = found.get(b"host")
        self.accept = found.get(b"accept", "")


class PageAccess:
    """Asks the control of access for pages; without one everything is shown to everybody."""

    def __init__(self, access: AccessControl | None) -> None:
        self._access = access
        self._hosts: frozenset[str] = frozenset()

    def listens_at(self, host: str) -> None:
        """Let this host's name stand in requests, too."""
        more = () if self._access is None else self._access.hosts
        self._hosts = allowed_hosts(host, socket.gethostname(), more)

    @property
    def tls(self) -> "TlsFiles | None":
        """The certificates of the listener."""
        return None if self._access is None else self._access.tls

    def told(self) -> Mapping[str, object]:
        """Return the security entry of the status page; empty where everybody has access."""
        if self._access is None:
            return {}
        files = self._access.tls
        shown = {} if files is None else files.told()
        return {"security": {"mode": self._access.policy.mode.value, **shown}}

    def refusal(
        self, transport: asyncio.BaseTransport | None, method: str, path: str, asked: Headers
    ) -> PageAnswer | None:
        """Return what to answer instead of the page: 401 without proof, else 403; each says why.

        421 where a page of another site may be asking, from a browser of this machine.  Browsers
        ask for HTML, and get a page for people.
        """
        if self._access is None:
            return None
        caller = caller_of(self._access, transport)
        if self._is_misdirected(caller, path, asked.host):
            return text_answer(
                f"this daemon may not be asked under the name {asked.host!r}: call an address, its "
                "own name, or one that nnha.web.hosts in its configuration names\n",
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        denied = self._access.refusal(caller, "http", HTTP, _name(method, path))
        if denied is None:
            return None
        status = HTTPStatus.UNAUTHORIZED if denied.unproven else HTTPStatus.FORBIDDEN
        if "text/html" not in asked.accept:
            return text_answer(f"{denied.reason}\n", status)
        # Loaded here: most daemons are never looked at by a browser.
        from ha.daemon.http.front_page import refused_page

        return refused_page(status, denied.reason, certificates=self._access.policy.certificates)

    def _is_misdirected(self, caller: Caller, path: str, host: str | None) -> bool:
        """Return whether a caller whom only its account on this machine proves uses a wrong name.

        No page can have a browser leave the name out.
        """
        if host is None or caller.method is not Method.PEER_UID or path in _UNDER_ANY_NAME:
            return False
        return not may_be_asked(host, self._hosts)

    def standing(self, transport: asyncio.BaseTransport | None, method: str, path: str) -> Standing:
        """Return how much its caller has shown, by what a request asks for."""
        if self._access is None:
            return Standing.PROVEN
        caller = caller_of(self._access, transport)
        if not caller.proven or not self._access.may(caller, HTTP, _name(method, _route(path))):
            return Standing.UNPROVEN
        return Standing.KEPT if caller.roles - {Role.CLIENT} else Standing.PROVEN

    def turned_away(
        self, transport: asyncio.BaseTransport | None, method: str, path: str, asked: Headers
    ) -> PageAnswer | None:
        """Return what to answer to a request for which no route need be looked up; else None."""
        route = _route(path)
        if self._access is None or self.standing(transport, method, path) is not Standing.UNPROVEN:
            return None
        if _name(method, route) in _PAGES:
            return self.refusal(transport, method, route, asked)
        return None if caller_of(self._access, transport).roles - {Role.CLIENT} else _MISSING

    def begun(
        self, transport: asyncio.BaseTransport | None, method: str, path: str
    ) -> Callable[[int | None], None]:
        """Return the function to call with an allowed request's final status; None: unknown.

        The end is written into the audit log where the table of rights says so.
        """
        name, access = f"{method} {path}", self._access
        if access is None or not access.audits(HTTP, name):
            return lambda _: None
        caller = caller_of(access, transport)

        def ended(status: int | None) -> None:
            if status is None:
                access.ended(caller, "http", HTTP, name, Outcome.UNKNOWN)
            elif status < HTTPStatus.BAD_REQUEST:
                access.ended(caller, "http", HTTP, name, Outcome.DONE)
            else:
                access.ended(caller, "http", HTTP, name, Outcome.FAILED, f"HTTP {status}")

        return ended

    def shown(self, transport: asyncio.BaseTransport | None, answer: PageAnswer) -> PageAnswer:
        """Return a page as its caller may see it: strangers do not see why a daemon is unwell."""
        if self._access is None or answer.status < HTTPStatus.BAD_REQUEST:
            return answer
        if self._access.may(caller_of(self._access, transport), HTTP, _REASONS):
            return answer
        return PageAnswer(answer.status, answer.content_type, b"")


def _name(method: str, path: str) -> str:
    return f"{_ALIKE.get(method, method)} {path}"


def _route(path: str) -> str:
    """Return the route of a path, as rights name it."""
    return next((route for start, route in _PREFIXES.items() if path.startswith(start)), path)


def caller_of(access: AccessControl, transport: asyncio.BaseTransport | None) -> Caller:
    """Return the caller at the other end of a connection."""

    def told(what: str) -> object:
        return None if transport is None else transport.get_extra_info(what)

    return access.caller(told("peername"), told("sockname"), told("socket"), told("ssl_object"))

"""Which caller may see which page: asked before one is made, on plain connections and aiohttp's."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ha.daemon.http.pages import PageAnswer, text_answer
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller
from ha.security.rights import HTTP

if TYPE_CHECKING:
    from ha.security.tls_files import TlsFiles

_REASONS: Final = "GET reasons"
_ALIKE: Final = {"HEAD": "GET", "OPTIONS": "GET"}
"""They reveal no more than GET does."""


class PageAccess:
    """Asks the control of access for pages; without one everything is shown to everybody."""

    def __init__(self, access: AccessControl | None) -> None:
        self._access = access

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
        self, transport: asyncio.BaseTransport | None, method: str, path: str, accept: str = ""
    ) -> PageAnswer | None:
        """Return what to answer instead of the page: 401 without proof, else 403; each says why.

        ``accept`` is the request's header: browsers ask for HTML, and get a page for people.
        """
        if self._access is None:
            return None
        name = f"{_ALIKE.get(method, method)} {path}"
        denied = self._access.refusal(caller_of(self._access, transport), "http", HTTP, name)
        if denied is None:
            return None
        status = HTTPStatus.UNAUTHORIZED if denied.unproven else HTTPStatus.FORBIDDEN
        if "text/html" not in accept:
            return text_answer(f"{denied.reason}\n", status)
        # Loaded here: most daemons are never looked at by a browser.
        from ha.daemon.http.front_page import refused_page

        return refused_page(status, denied.reason, certificates=self._access.policy.certificates)

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


def caller_of(access: AccessControl, transport: asyncio.BaseTransport | None) -> Caller:
    """Return the caller at the other end of a connection."""

    def told(what: str) -> object:
        return None if transport is None else transport.get_extra_info(what)

    return access.caller(told("peername"), told("sockname"), told("socket"), told("ssl_object"))

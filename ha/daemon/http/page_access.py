"""Which caller may see which page: asked before one is made, on plain connections and aiohttp's."""

import re
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ha.daemon.door.places import Standing
from ha.daemon.http.hosts import allowed_hosts, may_be_asked
from ha.daemon.http.pages import Headers, PageAnswer, text_answer
from ha.daemon.http.proof import ASK, Proof, Proofs
from ha.record import replace
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller, Method, Role
from ha.security.decision import Denied, claim
from ha.security.rights import CLIENT_PROTOCOL, HTTP, RIGHTS, WEBHDFS

if TYPE_CHECKING:
    from ha.security.page_store import PageStore
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
_TOKEN: Final = re.compile(r"(^|&)delegation=", re.IGNORECASE)
_MISSING: Final = text_answer("there is no such page\n", HTTPStatus.NOT_FOUND)


class PageAccess:
    """Asks the control of access for pages; without one everything is shown to everybody."""

    def __init__(self, access: AccessControl | None) -> None:
        self._access = access
        self._hosts: frozenset[str] = frozenset()
        self.proofs = Proofs(access)

    def listens_at(self, host: str) -> None:
        """Let this host's name stand in requests, too."""
        more = () if self._access is None else self._access.hosts
        self._hosts = allowed_hosts(host, socket.gethostname(), more)

    @property
    def tls(self) -> "TlsFiles | PageStore | None":
        """The certificates of the listener."""
        return None if self._access is None else self._access.https or self._access.tls

    @property
    def https_only(self) -> bool:
        """Whether the listener takes TLS and nothing else."""
        return self._access is not None and self._access.https is not None

    def told(self) -> Mapping[str, object]:
        """Return the security entry of the status page; empty where everybody has access."""
        if self._access is None:
            return {}
        files = self._access.tls
        shown = {} if files is None else files.told()
        return {"security": {"mode": self._access.policy.mode.value, **shown}}

    def refusal(
        self, proof: Proof, method: str, path: str, asked: Headers, *, shows_token: bool = False
    ) -> PageAnswer | None:
        """Return what to answer instead of the page: 401 without proof, else 403; each says why.

        401 asks for a ticket where one could help.  421 where a page of another site may be
        asking, from a browser of this machine.  Browsers ask for HTML, and get a page for people.
        """
        caller = proof.caller
        if self._access is None or caller is None:
            return None
        if proof.refused:
            return text_answer(f"{proof.refused}\n", HTTPStatus.FORBIDDEN)
        if self._is_misdirected(caller, path, asked.host):
            return text_answer(
                f"this daemon may not be asked under the name {asked.host!r}: call an address, its "
                "own name, or one that nnha.web.hosts in its configuration names\n",
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        denied = self._access.refusal(caller, "http", HTTP, _name(method, path))
        if denied is None and path == WEBHDFS and not shows_token:
            denied = self._lacks_ticket(caller)
        if denied is None:
            return None
        asks = self.proofs.takes_tickets and caller.method in (Method.SIMPLE, Method.PEER_UID)
        status = HTTPStatus.UNAUTHORIZED if denied.unproven or asks else HTTPStatus.FORBIDDEN
        answer = self._refusal(status, denied.reason, asked)
        return replace(answer, headers={**answer.headers, **ASK}) if asks else answer

    def _lacks_ticket(self, caller: Caller) -> Denied | None:
        """Return the refusal of a caller of WebHDFS that must show a ticket first; else None.

        Its calls are refused later, too, but in words of JSON that ask for no ticket.
        """
        access = self._access
        if access is None or not self.proofs.takes_tickets:
            return None
        # By the kernel's word Java's client would be let in as the user of its process.
        caller = access.without_kernel(caller)
        if caller.proven:
            return None
        found = claim(access.policy, caller, caller.name, None, None, CLIENT_PROTOCOL)
        return found if isinstance(found, Denied) else None

    def _refusal(self, status: HTTPStatus, reason: str, asked: Headers) -> PageAnswer:
        if self._access is None or "text/html" not in asked.accept:
            return text_answer(f"{reason}\n", status)
        # Loaded here: most daemons are never looked at by a browser.
        from ha.daemon.http.front_page import refused_page

        return refused_page(status, reason, certificates=self._access.policy.certificates)

    def _is_misdirected(self, caller: Caller, path: str, host: str | None) -> bool:
        """Return whether a caller whom only its account on this machine proves uses a wrong name.

        No page can have a browser leave the name out.
        """
        if host is None or caller.method is not Method.PEER_UID or path in _UNDER_ANY_NAME:
            return False
        return not may_be_asked(host, self._hosts)

    def standing(self, proof: Proof, method: str, path: str) -> Standing:
        """Return how much its caller has shown, by what a request asks for."""
        caller = proof.caller
        if self._access is None or caller is None:
            return Standing.PROVEN
        if (
            proof.refused
            or not caller.proven
            or not self._access.may(caller, HTTP, _name(method, _route(path)))
        ):
            return Standing.UNPROVEN
        return Standing.KEPT if caller.roles - {Role.CLIENT} else Standing.PROVEN

    def turned_away(
        self, proof: Proof, method: str, path: str, asked: Headers, *, shows_token: bool = False
    ) -> PageAnswer | None:
        """Return what to answer to a request for which no route need be looked up; else None."""
        route, caller = _route(path), proof.caller
        if caller is None or self.standing(proof, method, path) is not Standing.UNPROVEN:
            return None
        if _name(method, route) in _PAGES:
            return self.refusal(proof, method, route, asked, shows_token=shows_token)
        return None if caller.roles - {Role.CLIENT} else _MISSING

    def begun(self, caller: Caller | None, method: str, path: str) -> Callable[[int | None], None]:
        """Return the function to call with an allowed request's final status; None: unknown.

        The end is written into the audit log where the table of rights says so.
        """
        name, access = f"{method} {path}", self._access
        if access is None or caller is None or not access.audits(HTTP, name):
            return lambda _: None

        def ended(status: int | None) -> None:
            if status is None:
                access.ended(caller, "http", HTTP, name, Outcome.UNKNOWN)
            elif status < HTTPStatus.BAD_REQUEST:
                access.ended(caller, "http", HTTP, name, Outcome.DONE)
            else:
                access.ended(caller, "http", HTTP, name, Outcome.FAILED, f"HTTP {status}")

        return ended

    def shown(self, proof: Proof, answer: PageAnswer) -> PageAnswer:
        """Return a page as its caller may see it: strangers do not see why a daemon is unwell."""
        answer = replace(answer, headers={**answer.headers, **proof.headers})
        if self._access is None or proof.caller is None or answer.status < HTTPStatus.BAD_REQUEST:
            return answer
        if self._access.may(proof.caller, HTTP, _REASONS):
            return answer
        return replace(answer, body=b"")


def shows_token(query: str) -> bool:
    """Return whether a request shows a delegation token.

    WebHDFS judges it; in front of that it keeps a caller from being asked for a ticket.
    """
    return _TOKEN.search(unquote(query)) is not None


def _name(method: str, path: str) -> str:
    return f"{_ALIKE.get(method, method)} {path}"


def _route(path: str) -> str:
    """Return the route of a path, as rights name it."""
    return next((route for start, route in _PREFIXES.items() if path.startswith(start)), path)

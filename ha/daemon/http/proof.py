"""The caller of a request: the connection's, or the one whose ticket stands in its head."""

import asyncio
import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ha.daemon.http.pages import Headers
from ha.daemon.http.proof_cookie import ProofCookies
from ha.record import dataclass, field
from ha.security.access_control import AccessControl
from ha.security.caller import Caller, Method, Role
from ha.security.decision import Denied
from ha.security.rights import HTTP
from ha.security.sasl import steps
from ha.security.sasl.mechanism import Protection, Proven, SaslFailure
from ha.security.sasl.negotiate_header import header, token_shown
from ha.security.sasl.way import Step

if TYPE_CHECKING:
    from ha.security.sasl.way import Way

ASK: Final = {"WWW-Authenticate": header(b"")}


@dataclass(frozen=True, slots=True)
class Proof:
    """The caller of one request; None where access is not controlled.

    ``headers`` go out with its answer.  ``refused``: why what it showed is no proof, in words that
    it may read.
    """

    caller: Caller | None
    headers: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""


FIRST: ContextVar[list[tuple[Headers, Proof]]] = ContextVar("FIRST")
"""Of a connection that is handed on: the proof of the request that came with it.

A token counts once, so no second look at it can be taken.
"""


def connected(access: AccessControl, transport: asyncio.BaseTransport | None) -> Caller:
    """Return the caller at the other end of a connection."""

    def told(what: str) -> object:
        return None if transport is None else transport.get_extra_info(what)

    return access.caller(told("peername"), told("sockname"), told("socket"), told("ssl_object"))


class Proofs:
    """Looks at what requests to one daemon show."""

    def __init__(self, access: AccessControl | None) -> None:
        self._access = access
        self._cookies = ProofCookies(os.urandom(32), time.time)

    @property
    def takes_tickets(self) -> bool:
        """Whether a request can show more than its connection does."""
        return self._access is not None and self._access.web_way is not None

    def caller(self, transport: asyncio.BaseTransport | None) -> Caller | None:
        """Return the caller at the other end of a connection."""
        return None if self._access is None else connected(self._access, transport)

    def shows_any(self, asked: Headers) -> bool:
        """Return whether a request shows something that takes time to look at."""
        return self.takes_tickets and bool(asked.authorization or asked.cookie)

    async def of(
        self, transport: asyncio.BaseTransport | None, method: str, asked: Headers
    ) -> Proof:
        """Return what a request shows; a ticket counts before what is known of its connection."""
        first = FIRST.get([])
        if first and first[0][0].is_like(asked):
            return first.pop()[1]
        caller, access = self.caller(transport), self._access
        if access is None or caller is None or access.web_way is None:
            return Proof(caller)
        if caller.refused:  # its certificate was revoked, say: a ticket does not help it
            return Proof(caller)
        encrypted = transport is not None and transport.get_extra_info("ssl_object") is not None
        try:
            shown = await self._read_ticket(access.web_way, caller, asked)
            if shown is None:
                return Proof(caller)
            found = await _admit_ticket(access, access.web_way, caller, shown.name)
        except SaslFailure as failure:
            access.not_proven(caller, Method.KERBEROS, str(failure), "http")
            return Proof(caller, refused=failure.public)
        if isinstance(found, Denied):
            return Proof(caller, refused=found.reason)
        headers = {"WWW-Authenticate": header(shown.token)} if shown.token else {}
        if method == "OPTIONS":
            cookie = self._cookies.made(found.name, shown.name, caller.host, encrypted=encrypted)
            headers |= {} if cookie is None else {"Set-Cookie": cookie}
        if access.policy.demands_certificates and not encrypted:
            found = replace(found, roles=found.roles & {Role.CLIENT})
        return Proof(found, headers)

    async def _read_ticket(self, way: "Way", caller: Caller, asked: Headers) -> Proven | None:
        """Return whose ticket a request shows; raise SaslFailure where it is none."""
        token = token_shown(asked.authorization)
        if token is None:
            principal = self._cookies.principal_in(asked.cookie, caller.host)
            return None if principal is None else Proven(principal, Protection.AUTHENTICATION)
        outcome = await steps.take(Step(way, way.make(), token))
        if isinstance(outcome, Proven):
            return outcome
        raise outcome if isinstance(outcome, SaslFailure) else SaslFailure("a second challenge")


async def _admit_ticket(
    access: AccessControl, way: "Way", caller: Caller, principal: str
) -> Caller | Denied:
    """Return the caller as the holder of a ticket; raise SaslFailure where it has no short name."""
    user, real = way.user_of(principal)
    held = Caller(user, way.method, frozenset(), caller.address, principal=principal, real=real)
    return await access.admitted(held, "", HTTP)

"""Our proof to pages that ask for a ticket: one more request, which carries it (RFC 4559).

A server that asks for none gets none, so pages that are open, and those of servers without
Kerberos, cost nothing more.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from ha.security.sasl.mechanism import SaslFailure
from ha.security.sasl.negotiate_header import header, token_answered

if TYPE_CHECKING:
    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse

    from ha.security.kerberos.own import OwnKerberos
    from ha.security.sasl.spnego import SpnegoInitiator

ASKED_BY: Final = "WWW-Authenticate"
TICKET_SECONDS: Final = 20.0
"""A silent KDC keeps no caller without a deadline of its own for longer."""


class NotProven(ConnectionError):
    """We have no ticket for a server that asks for one, or it has not proved itself in return."""


class Ticket:
    """Our proof for one request.  ``headers`` go out with it."""

    def __init__(self, initiator: "SpnegoInitiator", token: bytes) -> None:
        self._initiator = initiator
        self.headers = {"Authorization": header(token)}

    def check(self, status: int, answered: Sequence[str]) -> None:
        """Take the server's proof; raise NotProven where one lacks that has let us in."""
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return  # the caller says what it said
        try:
            self._initiator.finish(token_answered(answered) or b"")
        except SaslFailure as failure:
            raise NotProven(f"the server does not prove itself: {failure}") from failure


async def ticket_for(host: str, status: int, asked: Sequence[str]) -> Ticket | None:
    """Return a proof where a server's answer asks for one and we have Kerberos; else None.

    Raises:
        NotProven: there are no tickets.
    """
    if status != HTTPStatus.UNAUTHORIZED:
        return None
    # Loaded here: most questions are not answered like this.
    from ha.security.kerberos.own import own_kerberos

    own = own_kerberos()
    if own is None or not own.web:
        return None
    try:
        if token_answered(asked) is None:
            return None
        async with asyncio.timeout(TICKET_SECONDS):
            return await asyncio.to_thread(_ticket, own, host)
    except TimeoutError:
        raise NotProven(f"no ticket for {host} came in {TICKET_SECONDS:g} s") from None
    except SaslFailure as failure:
        raise NotProven(f"it asks for a ticket: {failure}") from failure


def _ticket(own: "OwnKerberos", host: str) -> Ticket:
    initiator = own.web_initiator(host)
    return Ticket(initiator, initiator.token())


async def prove_ourselves(
    request: "ClientRequest", handler: "ClientHandlerType"
) -> "ClientResponse":
    """Ask once more with a ticket where a server wants one: a middleware of aiohttp's clients.

    For requests without a body.  Raises NotProven.
    """
    response = await handler(request)
    ticket = await ticket_for(
        request.url.host or "", response.status, response.headers.getall(ASKED_BY, [])
    )
    if ticket is None:
        return response
    response.release()
    request.headers.update(ticket.headers)
    response = await handler(request)
    ticket.check(response.status, response.headers.getall(ASKED_BY, []))
    return response

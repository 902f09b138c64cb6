"""Asks another process for one page by HTTP: a question or two are not worth a client of 11 MB."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import h11

from ha.conf.topology import HostPort
from ha.daemon.http.negotiate import ASKED_BY, ticket_for
from ha.record import dataclass
from ha.security.caller import Role
from ha.security.own_tls import context_for, falls_back

_MAX_HEAD_BYTES: Final = 64 * 1024
_MOST_HEADERS: Final = 100
_PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came: ``headers`` by their names in lower case, the body whole or cut as asked."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def challenges(self) -> Sequence[str]:
        """How the server wants its caller to prove itself, or what proves the server."""
        return [value for name, value in self.headers.items() if name == ASKED_BY.lower()]


async def http_get(
    address: HostPort,
    target: str,
    *,
    most_bytes: int,
    deadline_seconds: float | None = None,
    cut: bool = False,
    role: Role | None = None,
) -> HttpAnswer:
    """GET one page; a redirection is an answer like any other.

    ``target`` is the path with its query.  A body beyond ``most_bytes`` is an error; with ``cut``
    it is taken as far as it goes, there or where the other side broke off.  Without a deadline the
    caller has one.  Where this process has certificates, the server must have one of that role
    (None: any role of the cluster).

    Raises:
        TimeoutError: it was not there in time.
        OSError: nothing listens, or the connection broke before the end of the answer.
        ValueError: the answer is no HTTP or too long, or the address cannot be one.
    """
    async with asyncio.timeout(deadline_seconds):
        answer = await _get(address, target, most_bytes, {}, cut=cut, role=role)
        ticket = await ticket_for(address.host, answer.status, answer.challenges)
        if ticket is None:
            return answer
        answer = await _get(address, target, most_bytes, ticket.headers, cut=cut, role=role)
        ticket.check(answer.status, answer.challenges)
        return answer


async def _get(
    address: HostPort,
    target: str,
    most_bytes: int,
    more: Mapping[str, str],
    *,
    cut: bool,
    role: Role | None,
) -> HttpAnswer:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
    async with _connected(address, role) as (reader, writer):
        own = {"Host": str(address), "Accept-Encoding": "identity", "Connection": "close"}
        headers = {**own, **more}
        try:
            request = h11.Request(method="GET", target=target, headers=list(headers.items()))
            writer.write(connection.send(request) or b"")
            connection.send(h11.EndOfMessage())
            await writer.drain()
            return await _answer(connection, reader, most_bytes, cut=cut)
        except h11.ProtocolError as failure:
            unread, ended = connection.trailing_data
            if ended and (not unread or unread.startswith(b"HTTP/")):
                raise ConnectionError(
                    f"it hung up in the middle of its answer: {failure}"
                ) from None
            raise ValueError(f"the answer is no HTTP: {unread[:80]!r}: {failure}") from failure


async def _open(
    address: HostPort, secured: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(address.host, address.port, ssl=secured)
    except OSError as failure:
        if not falls_back(failure):
            raise
    return await asyncio.open_connection(address.host, address.port)


@asynccontextmanager
async def _connected(
    address: HostPort, role: Role | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    try:
        reader, writer = await _open(address, context_for(role))
    except OverflowError as failure:
        raise ValueError(f"{address} is no address: {failure}") from failure
    try:
        yield reader, writer
    finally:
        writer.close()


async def _answer(
    connection: h11.Connection, reader: asyncio.StreamReader, most_bytes: int, *, cut: bool
) -> HttpAnswer:
    head, body = None, bytearray()
    while len(body) <= most_bytes:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            piece = await reader.read(_PIECE_BYTES)
            if not piece and cut and head is not None:
                break
            if not piece and head is None and not connection.trailing_data[0]:
                raise ConnectionError("it hung up without an answer")
            connection.receive_data(piece)
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            break
    else:
        if not cut:
            raise ValueError(f"the answer has more than {most_bytes} bytes")
    assert head is not None
    if len(head.headers) > _MOST_HEADERS:
        raise ValueError(f"the answer has more than {_MOST_HEADERS} headers")
    found = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
    reason = head.reason.decode("latin-1").strip()
    return HttpAnswer(head.status_code, reason, found, bytes(body[:most_bytes]))

"""Asks another process for one page by HTTP: a question or two are not worth a client of 11 MB.

HTTP/1.0, so that the answer comes in one piece and ends with its connection.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from errno import ECONNREFUSED
from typing import Final

from ha.conf.topology import HostPort
from ha.security.caller import Role
from ha.security.own_tls import context_for, falls_back

_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: ([^\r\n]*))?\r?\n")
_MOST_HEADERS: Final = 100
_PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came: ``headers`` by their names in lower case, the body whole or cut as asked."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


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
    async with asyncio.timeout(deadline_seconds), _connected(address, role) as (reader, writer):
        writer.write(
            f"GET {target} HTTP/1.0\r\nHost: {address}\r\nAccept-Encoding: identity\r\n\r\n".encode(
                "ascii"
            )
        )
        await writer.drain()
        return await _answer(reader, most_bytes, cut=cut)


async def _opened(
    address: HostPort, secured: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(address.host, address.port, ssl=secured)
    except OSError as failure:
        if secured is None or not falls_back(failure):
            raise
    return await asyncio.open_connection(address.host, address.port)


@asynccontextmanager
async def _connected(
    address: HostPort, role: Role | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    try:
        reader, writer = await _opened(address, context_for(role))
    except OverflowError as failure:
        raise ValueError(f"{address} is no address: {failure}") from failure
    except OSError as failure:
        # Where a name has several addresses, asyncio makes one text of all failures.
        if failure.errno is None and f"[Errno {ECONNREFUSED}]" in str(failure):
            raise ConnectionRefusedError(ECONNREFUSED, str(failure)) from failure
        raise
    try:
        yield reader, writer
    finally:
        writer.close()


async def _answer(reader: asyncio.StreamReader, most_bytes: int, *, cut: bool) -> HttpAnswer:
    first = await _line(reader)
    if not first:
        raise ConnectionError("it hung up without an answer")
    status = _STATUS.fullmatch(first)
    if status is None:
        raise ValueError(f"the answer is no HTTP: {first[:80]!r}")
    headers = await _headers(reader)
    if "transfer-encoding" in headers:
        raise ValueError("the answer comes in pieces, which HTTP/1.0 does not know")
    body = await _body(reader, _length(headers), most_bytes, cut=cut)
    reason = (status[2] or b"").decode("latin-1").strip()
    return HttpAnswer(int(status[1]), reason, headers, body)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ValueError as failure:
        raise ValueError("the answer has a header that does not end") from failure


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = await _line(reader)
        if line in (b"\r\n", b"\n"):
            return found
        if not line.endswith(b"\n"):
            raise ConnectionError("it hung up in the middle of its answer")
        name, _, value = line.decode("latin-1").partition(":")
        found[name.strip().lower()] = value.strip()
    raise ValueError(f"the answer has more than {_MOST_HEADERS} headers")


def _length(headers: Mapping[str, str]) -> int | None:
    """Return the length of the body in bytes; None: to the end of the connection."""
    told = headers.get("content-length")
    if told is None:
        return None
    if not (told.isascii() and told.isdecimal()) or len(told) > 18:
        raise ValueError(f"the answer has a Content-Length that is no number: {told[:40]!r}")
    return int(told)


async def _body(
    reader: asyncio.StreamReader, length: int | None, most_bytes: int, *, cut: bool
) -> bytes:
    body = bytearray()
    while length is None or len(body) < length:
        piece = await reader.read(_PIECE_BYTES)
        if not piece and length is not None and not cut:
            raise ConnectionError(f"it hung up after {len(body)} of {length} bytes")
        if not piece:
            break
        body += piece
        if len(body) > most_bytes:
            if cut:
                break
            raise ValueError(f"the answer has more than {most_bytes} bytes")
    return bytes(body[:most_bytes] if length is None else body[: min(length, most_bytes)])

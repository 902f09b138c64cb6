"""One page of another process: what comes, what is refused, and what is reported of it."""

import asyncio
import socket
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from ha.conf.topology import HostPort
from ha.daemon import event_loop
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.http_get import HttpAnswer, http_get
from ha.names import Names
from tests.stand_in import HOST, Speak, say_nothing, stand_in

ANSWERS: Mapping[str, tuple[bytes, HttpAnswer]] = {
    "to the end of the connection": (
        b"HTTP/1.1 200 OK\r\nDate: now\r\n\r\nall of it",
        HttpAnswer(200, "OK", {"date": "now"}, b"all of it")),
    "as long as it says": (
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nall of it",
        HttpAnswer(200, "OK", {"content-length": "3"}, b"all")),
    "in pieces": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        HttpAnswer(200, "OK", {"transfer-encoding": "chunked"}, b"x")),
    "a redirection": (
        b"HTTP/1.0 302 Found\r\nLocation:/there\r\n\r\n",
        HttpAnswer(302, "Found", {"location": "/there"}, b"")),
    "lines of another system, and no reason": (
        b"HTTP/1.0 204\nA: b\n\n", HttpAnswer(204, "", {"a": "b"}, b"")),
}  # fmt: skip

NONE: Mapping[str, tuple[bytes, type[Exception], str]] = {
    "nothing": (b"", ConnectionError, "hung up without an answer"),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", ValueError, "no HTTP: b'SSH"),
    "a head without end": (b"HTTP/1.0 200 OK\r\nA: b\r\n", ConnectionError, "in the middle"),
    "a header without end": (
        b"HTTP/1.0 200 OK\r\nA: " + b"b" * 100_000, ValueError, "too long"),
    "headers without end": (
        b"HTTP/1.0 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", ValueError, "more than 100 headers"),
    "less than it says": (
        b"HTTP/1.0 200 OK\r\nContent-Length: 30\r\n\r\nless", ConnectionError,
        "4 bytes, expected 30"),
    "a length that is none": (
        b"HTTP/1.0 200 OK\r\nContent-Length: -3\r\n\r\nx", ValueError, "bad Content-Length"),
    "too much": (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 101, ValueError, "more than 100 bytes"),
}  # fmt: skip


def saying(answer: bytes) -> Speak:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    return speak


async def got(port: int, *, deadline_seconds: float = 30.0, cut: bool = False) -> HttpAnswer:
    return await http_get(
        HostPort(HOST, port), "/page?a=b",
        most_bytes=100, deadline_seconds=deadline_seconds, cut=cut,
    )  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
async def test_an_answer(case: str) -> None:
    said, expected = ANSWERS[case]
    async with stand_in(saying(said)) as port:
        assert await got(port) == expected


@pytest.mark.parametrize("case", NONE)
async def test_what_is_no_answer_is_told(case: str) -> None:
    said, kind, words = NONE[case]
    async with stand_in(saying(said)) as port:
        with pytest.raises(kind, match=words) as told:
            await got(port)
    assert not isinstance(told.value, TimeoutError)


@pytest.mark.parametrize("said", [b"x" * 101, b"x" * 100])
async def test_a_page_is_cut_where_that_is_asked(said: bytes) -> None:
    """Cut it also where its sender breaks off: half of a dying process's stacks are useful."""
    head = b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\n"
    async with stand_in(saying(head + said)) as port:
        assert (await got(port, cut=True)).body == b"x" * 100


async def test_who_is_silent_is_waited_for_as_long_as_is_said() -> None:
    async with stand_in(say_nothing) as port:
        with pytest.raises(TimeoutError):
            await got(port, deadline_seconds=0.05)


@pytest.mark.parametrize("port", [70_000, -1])
async def test_an_address_that_cannot_be_is_told(port: int) -> None:
    with pytest.raises((ValueError, OSError)):
        await got(port)


@pytest.mark.parametrize("last", ["127.0.0.2", "::1"])
async def test_a_refusal_by_all_addresses_of_a_name_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """Asyncio raises an error of no kind where several addresses fail."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]

    def look(host: str, *_: object) -> list[object]:
        return [
            found
            for address in ("127.0.0.1", last)
            for found in socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)
        ]

    monkeypatch.setattr(event_loop, "NAMES", Names(look))
    with pytest.raises(ConnectionRefusedError):
        await http_get(HostPort("two", port), "/", most_bytes=1, deadline_seconds=30)


async def test_our_daemons_and_aiohttps_servers_answer_it() -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)  # of a length that it does not know yet
        await response.write(request.query["a"].encode())
        return response

    whole = web.Application()
    whole.add_routes([web.get("/page", page)])
    async with TestServer(whole) as server:
        assert (await got(server.port or 0)).body == b"b"
    small = Endpoint(status=lambda: {"role": "x"}, healthy=lambda: None)
    port = await small.start(HOST, 0)
    try:
        answer = await http_get(HostPort(HOST, port), "/status", most_bytes=100)
    finally:
        await small.stop()
    assert (answer.status, answer.body.strip()) == (200, b'{"role": "x"}')
    assert "date" in answer.headers

"""What a stranger sends writes no traceback into the log; our own faults do."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
from aiohttp import web
from prometheus_client import REGISTRY

from ha.daemon.http.endpoint import Endpoint
from ha.daemon.logs import is_own_fault

MALFORMED = {
    "no HTTP": b"GET /none?b&c HTT\r\n\r\n",
    "an overlong 0 in the path": b"GET /n\xc0\x80 HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": b"POST /none HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
}


class Lines(logging.Handler):
    """What a daemon's log would get of libraries' lines."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(is_own_fault)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Install the only handler, as in a daemon: another one would count as well."""
    root, handler = logging.getLogger(), Lines()
    kept = root.handlers[:]
    root.handlers[:] = [handler]
    yield handler
    root.handlers[:] = kept


async def status_of(port: int, said: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    async with asyncio.timeout(30):
        answer = await reader.read(12)
    writer.close()
    return answer.removeprefix(b"HTTP/1.1 ").removeprefix(b"HTTP/1.0 ")


def counted() -> float:
    name = "nnha_malformed_requests_total"
    return REGISTRY.get_sample_value(name, {"library": "aiohttp"}) or 0.0


@pytest.mark.parametrize("said", MALFORMED.values(), ids=list(MALFORMED))
async def test_a_malformed_request_is_counted_and_not_logged(said: bytes, lines: Lines) -> None:
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    port, before = await endpoint.start("127.0.0.1", 0), counted()
    try:
        assert await status_of(port, said) == b"400"
    finally:
        await endpoint.stop()
    assert lines.seen == []
    assert counted() == before + 1


async def test_a_fault_of_our_own_is_logged(lines: Lines) -> None:
    async def broken(_: web.Request) -> web.Response:
        raise KeyError("ours")

    endpoint = Endpoint(
        status=dict, healthy=lambda: None, routes=lambda: [web.get("/broken", broken)]
    )
    port = await endpoint.start("127.0.0.1", 0)
    try:
        assert await status_of(port, b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n") == b"500"
    finally:
        await endpoint.stop()
    assert lines.seen == ["Error handling request from 127.0.0.1"]

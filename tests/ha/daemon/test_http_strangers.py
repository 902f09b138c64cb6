"""What strangers may do to a daemon's pages: ask for a moment, under its own name, in few words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from ha.conf.keys.security import Mode
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.stalled_readers import Reader
from ha.security.access_control import AccessControl
from ha.security.caller import Role
from tests.ha.rpc.test_tls import Unwritten
from tests.ha.security.authority import Authority

SECONDS = 30.0
ROUTE = "/getJournal"


async def _route(_: web.Request) -> web.Response:
    return web.Response(text="edits")


@asynccontextmanager
async def pages(uid: int) -> AsyncIterator[tuple[Endpoint, int]]:
    """Serve a page and a route; the kernel says that all callers are this user."""
    access = AccessControl(
        Mode.AUTO, target="t", audit=Unwritten(), own_uid=0, uid_of=lambda *_: uid,
        hosts=["Alias.Example"],
    )  # fmt: skip
    endpoint = Endpoint(
        status=dict, healthy=lambda: None, access=access, routes=lambda: [web.get(ROUTE, _route)]
    )
    port = await endpoint.start("127.0.0.1", 0)
    try:
        yield endpoint, port
    finally:
        await endpoint.stop()


async def answered(port: int, said: str) -> bytes:
    """Return all bytes up to the end of the connection, which the daemon has to close."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said.replace("\n", "\r\n").encode())
        return await asyncio.wait_for(reader.read(), SECONDS)
    finally:
        writer.close()


NAMES: dict[str, tuple[str, str, int]] = {
    "an address": ("/status", "127.0.0.1:9", 200),
    "localhost": ("/status", "LOCALHOST", 200),
    "a name of the configuration": ("/status", "alias.example:8480", 200),
    "a stranger's name for this address": ("/status", "evil.example", 421),
    "the same for what aiohttp serves": (ROUTE, "evil.example", 421),
    "what aiohttp serves, under an address": (ROUTE, "[::1]:9", 200),
    "a probe under any name": ("/livez", "evil.example", 200),
}


@pytest.mark.parametrize("case", NAMES)
async def test_a_page_of_another_site_reads_nothing_here(case: str) -> None:
    path, host, status = NAMES[case]
    async with pages(uid=0) as (_, port):
        said = f"GET {path} HTTP/1.1\nHost: {host}\nConnection: close\n\n"
        assert (await answered(port, said)).startswith(b"HTTP/1.1 %d " % status)


async def test_who_names_no_host_is_no_browser() -> None:
    async with pages(uid=0) as (_, port):
        assert (await answered(port, "GET /status HTTP/1.0\n\n")).startswith(b"HTTP/1.1 200 ")


HEADS: dict[str, tuple[str, str]] = {
    "a page, in one header": ("/livez", "X: " + "y" * 20_000 + "\n"),
    "a page, in many headers": ("/livez", "A: b\n" * 4000),
    "a route": (ROUTE, "X: " + "y" * 20_000 + "\n"),
}


@pytest.mark.parametrize("case", HEADS)
async def test_a_long_head_is_refused_also_where_it_comes_in_one_piece(case: str) -> None:
    path, headers = HEADS[case]
    async with pages(uid=0) as (_, port):
        answer = await answered(port, f"GET {path} HTTP/1.1\nHost: localhost\n{headers}\n")
        assert answer.startswith(b"HTTP/1.1 431 ")


REQUESTS: dict[str, tuple[str, int]] = {
    "a page that there is not": ("GET /nothing", 404),
    "one that only looks like a route": ("GET /getJournal/x", 404),
    "a route that is for others": (f"GET {ROUTE}", 403),
    "a page that is for others": ("GET /stacks", 403),
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_a_client_without_the_right_is_answered_and_gone(case: str) -> None:
    asked, status = REQUESTS[case]
    async with pages(uid=1234) as (endpoint, port):
        answer = await answered(port, f"{asked} HTTP/1.1\nHost: localhost\n\n")
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert not endpoint.prepared, "nothing was loaded for it"


KEPT_OPEN: dict[str, str] = {
    "a method that no page has": "DELETE /nothing HTTP/1.1\nHost: localhost\n\n",
    "a body": "PUT /imagetransfer HTTP/1.1\nHost: localhost\nContent-Length: 1\n\nx",
    "its own word": "DELETE /x HTTP/1.1\nConnection: keep-alive\nHost: localhost\n\n",
    "no request at all": "\x01\x02\n\n",
}


@pytest.mark.parametrize("case", KEPT_OPEN)
async def test_nor_does_it_keep_a_place_of_those_that_take_long(case: str) -> None:
    async with pages(uid=1234) as (_, port):
        assert (await answered(port, KEPT_OPEN[case])).startswith((b"HTTP/1.1 4", b"HTTP/1.0 400 "))


async def test_who_has_the_right_keeps_its_connection() -> None:
    async with pages(uid=0) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(f"GET {ROUTE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            async with asyncio.timeout(SECONDS):
                assert await reader.readuntil(b"edits")
        writer.close()


async def test_a_reader_over_tls_that_has_gone_is_no_error(tmp_path: Path) -> None:
    files = Authority(tmp_path).holder(Role.NAMENODE, "nn1")
    access = AccessControl(
        Mode.STRICT, target="t", audit=Unwritten(), own_uid=1, tls=files, uid_of=lambda *_: 1
    )
    served: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    async def serve(request: web.Request) -> web.Response:
        assert request.transport is not None
        served.set_result(request.transport)
        return web.Response(text="edits")

    endpoint = Endpoint(
        status=dict, healthy=lambda: None, access=access, routes=lambda: [web.get(ROUTE, serve)]
    )
    port = await endpoint.start("127.0.0.1", 0)
    async with asyncio.timeout(SECONDS):
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=files.client(None), server_hostname="localhost"
        )
        writer.write(f"GET {ROUTE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        transport = await served
        writer.transport.abort()
        while (left := transport.get_extra_info("socket")) is not None and left.fileno() >= 0:
            await asyncio.sleep(0)
        Reader(transport, SECONDS)
        await endpoint.stop()

"""How a page of Hadoop's DataNode is had by HTTP, and when it is not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from namenode_sim.datanode_protocol import drain_check
from namenode_sim.datanode_protocol.drain_check import MAX_PAGE_BYTES, read_page
from namenode_sim.datanode_protocol.errors import PageNotHad
from namenode_sim.datanodes.model import DatanodeId

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def datanode(answer: Answer) -> AsyncIterator[DatanodeId]:
    """Serve a DataNode's /jmx with that answer."""
    application = web.Application()
    application.add_routes([web.get("/jmx", answer)])
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield DatanodeId("uuid", "127.0.0.1", "host", 1, runner.addresses[0][1], 2)
    finally:
        await runner.cleanup()


async def test_a_page_is_asked_for_one_bean() -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(text=request.query["qry"])

    async with datanode(echo) as found:
        query = "Hadoop:service=DataNode,name=DataNodeActivity-*-9866"
        assert await read_page(found, query) == query.encode()


async def _elsewhere(_: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/jmx?qry=elsewhere")


async def _with_a_login(_: web.Request) -> web.StreamResponse:
    raise web.HTTPUnauthorized


async def _endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(bytes(MAX_PAGE_BYTES // 4))


async def _stuck(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.Event().wait()
    return response


REFUSED: dict[str, tuple[Answer, str]] = {
    "redirected": (_elsewhere, "it answered 302"),
    "with a login": (_with_a_login, "it answered 401"),
    "endless": (_endless, f"more than {MAX_PAGE_BYTES} bytes"),
    "stuck": (_stuck, "TimeoutError"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_page_is_not_to_be_had(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_check, "PAGE_SECONDS", 3.0 if case != "stuck" else 0.2)
    answer, why = REFUSED[case]
    async with datanode(answer) as found:
        with pytest.raises(PageNotHad, match=why):
            await read_page(found, "x")


@pytest.mark.parametrize("port", [0, 1])
async def test_nobody_serves_it(port: int) -> None:
    with pytest.raises(PageNotHad):
        await read_page(DatanodeId("uuid", "127.0.0.1", "host", 1, port, 2), "x")

"""/livez, /readyz, /active, /standby and /isActive: each question, each method, each answer.

A connection that comes while its server stops is dropped, not forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.probes import RoleSeen
from ha.rpc.server import RpcServer
from tests.stand_in import HOST, TURNS_OF_AN_ACCEPT, hung_up_on_at_the_stop, say_nothing, stand_in

ALLOW = "Allow: GET, HEAD, OPTIONS"


class Subject:
    def __init__(self) -> None:
        self.unready: str | None = None
        self.unwell: str | None = None
        self.role = RoleSeen("standby", 0.5)


@asynccontextmanager
async def serving(subject: Subject) -> AsyncIterator[int]:
    endpoint = Endpoint(
        status=dict,
        healthy=lambda: subject.unwell,
        ready=lambda: subject.unready,
        role=lambda: subject.role,
    )
    port = await endpoint.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await endpoint.stop()


async def ask(port: int, path: str, method: str = "GET", *, pieces: int = 1) -> tuple[int, str]:
    """Return the status and the whole answer.  In several pieces aiohttp answers instead of us."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    async with asyncio.timeout(30):
        writer.write(asked[:-2] if pieces > 1 else asked)
        if pieces > 1:
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(asked[-2:])
        said = (await reader.read()).decode()
    writer.close()
    return int(said.split()[1]), said


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("pieces", [1, 2], ids=["plain", "by aiohttp"])
async def test_roles_have_one_status_whoever_asks_however(method: str, pieces: int) -> None:
    subject = Subject()
    async with serving(subject) as port:
        for state, expected in {
            "active": (200, 503, 200),
            "standby": (503, 200, 405),
            "recovering the journal": (503, 503, 405),
        }.items():
            subject.role = RoleSeen(state)
            for path, status in zip(("/active", "/standby", "/isActive"), expected, strict=True):
                got, said = await ask(port, path, method, pieces=pieces)
                assert got == status, (state, path)
                head, _, body = said.partition("\r\n\r\n")
                assert (method == "GET") is bool(body)
                if method == "OPTIONS" or status == 405:
                    assert ALLOW in head


async def test_is_active_says_what_hadoops_servlet_says() -> None:
    subject = Subject()
    async with serving(subject) as port:
        assert (await ask(port, "/isActive"))[1].endswith("I am not Active!")
        subject.role = RoleSeen("active")
        assert (await ask(port, "/isActive"))[1].endswith("I am Active!")


async def test_a_standby_may_be_asked_to_be_near() -> None:
    subject = Subject()
    async with serving(subject) as port:
        assert (await ask(port, "/standby?max_lag=1s"))[0] == 200
        assert (await ask(port, "/standby?max_lag=500ms"))[0] == 200
        assert (await ask(port, "/standby?max_lag=499ms"))[0] == 503
        code, said = await ask(port, "/standby?max_lag=soon")
        assert code == 400
        assert "max_lag" in said
        subject.role = RoleSeen("standby", None)
        assert (await ask(port, "/standby"))[0] == 200
        assert (await ask(port, "/standby?max_lag=1h"))[0] == 503
        subject.role = RoleSeen("active")
        assert (await ask(port, "/standby?max_lag=1h"))[0] == 503


async def test_alive_is_not_ready_and_ready_is_not_well() -> None:
    subject = Subject()
    async with serving(subject) as port:
        for path in ("/livez", "/readyz", "/health"):
            assert (await ask(port, path))[0] == 200
        subject.unready = "the journal has not been read yet"
        code, said = await ask(port, "/readyz")
        assert code == 503
        assert "has not been read" in said
        assert (await ask(port, "/health"))[0] == 200
        subject.unready, subject.unwell = None, "disk full"
        assert (await ask(port, "/readyz"))[0] == 200
        assert (await ask(port, "/health"))[0] == 503
        assert (await ask(port, "/livez"))[0] == 200


async def test_a_daemon_without_a_role_has_no_pages_for_one() -> None:
    endpoint = Endpoint(status=dict, healthy=lambda: "sick")
    port = await endpoint.start("127.0.0.1", 0)
    try:
        assert (await ask(port, "/active"))[0] == 404
        assert (await ask(port, "/isActive"))[0] == 404
        assert (await ask(port, "/livez"))[0] == 200
        assert (await ask(port, "/readyz"))[0] == 503  # as ill as it is
    finally:
        await endpoint.stop()


Begun = tuple[int, Callable[[], Awaitable[None]]]


async def _endpoint() -> Begun:
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    return await endpoint.start(HOST, 0), endpoint.stop


async def _rpc_server() -> Begun:
    server = RpcServer([])
    return await server.start(HOST, 0), server.stop


async def _stand_in() -> Begun:
    stack = AsyncExitStack()
    return await stack.enter_async_context(stand_in(say_nothing)), stack.aclose


@pytest.mark.parametrize("turns", range(TURNS_OF_AN_ACCEPT))
@pytest.mark.parametrize("begin", [_endpoint, _rpc_server, _stand_in])
async def test_a_newcomer_is_hung_up_on(begin: Callable[[], Awaitable[Begun]], turns: int) -> None:
    port, stop = await begin()
    await hung_up_on_at_the_stop(port, stop, turns)

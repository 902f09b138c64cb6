"""The HTTP endpoint: health codes, status JSON, metrics, extra routes."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from ha.daemon.http.connection_table import SHARE_OF_ADDRESS, HttpConnectionTable
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.pages import PageAnswer


class Subject:
    """What the endpoint reports about."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def status(self) -> dict[str, object]:
        return {"role": "test", "reason": self.reason}

    def healthy(self) -> str | None:
        return self.reason


@asynccontextmanager
async def serving(
    subject: Subject, routes: tuple[web.RouteDef, ...] = ()
) -> AsyncIterator[aiohttp.ClientSession]:
    endpoint = Endpoint(status=subject.status, healthy=subject.healthy, routes=lambda: routes)
    port = await endpoint.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session
    finally:
        await endpoint.stop()


async def test_health_is_200_while_well_and_503_with_the_reason_otherwise() -> None:
    subject = Subject()
    async with serving(subject) as session:
        async with session.get("/health") as answer:
            assert answer.status == 200
        subject.reason = "disk full"
        async with session.get("/health") as answer:
            assert answer.status == 503
            assert (await answer.json())["reason"] == "disk full"


async def test_status_is_asked_anew_for_each_request() -> None:
    subject = Subject()
    async with serving(subject) as session:
        subject.reason = "changed"
        async with session.get("/status") as answer:
            assert await answer.json() == {"role": "test", "reason": "changed"}


async def test_metrics_are_in_prometheus_form() -> None:
    async with serving(Subject()) as session, session.get("/metrics") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        assert "nnha_" in await answer.text() or "python_info" in await answer.text()


async def test_extra_routes_are_served_beside_our_own() -> None:
    async def hello(_request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async with (
        serving(Subject(), (web.get("/hello", hello),)) as session,
        session.get("/hello") as answer,
    ):
        assert await answer.text() == "hello"


async def test_a_port_that_is_taken_is_told_at_once_and_stop_is_harmless() -> None:
    subject = Subject()
    first = Endpoint(status=subject.status, healthy=subject.healthy)
    second = Endpoint(status=subject.status, healthy=subject.healthy)
    port = await first.start("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match=str(port)):
            await second.start("127.0.0.1", port)
        await second.stop()
    finally:
        await first.stop()


async def test_a_request_that_is_not_plain_is_answered_as_well() -> None:
    subject = Subject()
    endpoint = Endpoint(status=subject.status, healthy=subject.healthy)
    port = await endpoint.start("127.0.0.1", 0)
    try:
        for pieces, wanted in {
            (b"GET /health HTTP/1.1\r\nHost: x\r\n", b"\r\n"): b"HTTP/1.1 200",
            (b"GET /health?verbose HTTP/1.1\r\nHost: x\r\n\r\n",): b"HTTP/1.1 200",
            (b"HEAD /health HTTP/1.1\r\nHost: x\r\n\r\n",): b"HTTP/1.1 200",
            (b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n",): b"HTTP/1.1 404",
            (b"POST /health HTTP/1.1\r\nHost: x\r\n\r\n",): b"HTTP/1.1 405",
            (b"\x00\xff garbage\r\n\r\n",): b"HTTP/1.0 400",
        }.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.02)
            assert (await reader.read(12)) == wanted
            writer.close()
    finally:
        await endpoint.stop()


async def test_who_never_reads_the_answer_is_hung_up_on() -> None:
    big = PageAnswer(200, "text/plain", b"x" * 64 * 1024 * 1024)
    endpoint = Endpoint(
        status=dict, healthy=lambda: None, pages={"/big": lambda _: big}, silence_seconds=0.2
    )
    port = await endpoint.start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as deaf:
        deaf.sendall(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(30):
            while not endpoint.seats.asking:
                await asyncio.sleep(0.002)
            while endpoint.seats.asking:
                await asyncio.sleep(0.01)
    await endpoint.stop()


def test_health_status_and_metrics_need_no_aiohttp() -> None:
    said = """
import asyncio, sys
from ha.daemon.http.endpoint import Endpoint

async def main():
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    port = await endpoint.start("127.0.0.1", 0)
    for page in ("health", "status", "metrics"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /{page} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()
    await endpoint.stop()
    assert "aiohttp" not in sys.modules

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", said], check=True, timeout=60)


@pytest.mark.parametrize("piece", [b"GET /status HTTP/1.1\r\nX-Slow: ", b"POST /putImage HT", b"G"])
async def test_a_request_that_never_ends_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, piece: bytes
) -> None:
    monkeypatch.setattr("ha.daemon.http.endpoint.HEAD_SECONDS", 0.2)
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    port = await endpoint.start("127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(piece)
        async with asyncio.timeout(30.0):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
    finally:
        await endpoint.stop()


async def test_thousands_of_connections_leave_the_daemon_its_descriptors_and_its_probes() -> None:
    endpoint = Endpoint(status=dict, healthy=lambda: None, seats=HttpConnectionTable(4, 3))
    port = await endpoint.start("127.0.0.1", 0)
    writers: list[asyncio.StreamWriter] = []

    async def answer(said: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        writer.write(said)
        try:
            return await asyncio.wait_for(reader.read(12), 30.0)
        except ConnectionResetError:
            return b""

    plain, kept = b"GET /health HTTP/1.0\r\n\r\n", b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"
    try:
        for _ in range(3):  # aiohttp keeps these open
            assert await answer(kept) == b"HTTP/1.1 404"
        with capture_logs() as lines:
            assert [await answer(kept) for _ in range(3)] == [b"HTTP/1.1 503"] * 3
            for _ in range(20):
                writers.append((await asyncio.open_connection("127.0.0.1", port))[1])
                writers[-1].write(b"GET /health HTT")
                assert await answer(plain) == b"HTTP/1.1 200"
        assert [line["event"] for line in lines] == ["http.full"]
        for writer in writers:
            writer.transport.abort()
        async with asyncio.timeout(30.0):
            while await answer(kept) != b"HTTP/1.1 404":
                await asyncio.sleep(0.01)
    finally:
        for writer in writers:
            writer.transport.abort()
        await endpoint.stop()


async def test_who_has_more_than_its_share_of_long_requests_gives_way() -> None:
    seats = HttpConnectionTable(100, 50)
    asking = [Asking("127.0.0.1") for _ in range(50)]
    for one in asking:
        assert seats.admit(one, 0.0)
        assert seats.hand_on(one, one.transport, 0.0)
    other = Asking("10.0.0.2")
    assert seats.admit(other, 0.0)
    assert seats.hand_on(other, other.transport, 0.0)
    assert [one.transport.is_closing() for one in asking] == [True] + [False] * 49


def test_an_address_has_a_share_of_half_requests_and_of_long_ones() -> None:
    seats = HttpConnectionTable()
    asking = [Asking("10.0.0.1") for _ in range(SHARE_OF_ADDRESS + 2)]
    other = Asking("10.0.0.2")
    for one in (other, *asking):
        assert seats.admit(one, 0.0)
    assert [one.transport.closed for one in asking] == [True] * 2 + [False] * SHARE_OF_ADDRESS
    assert not other.transport.closed
    for one in asking[2:]:
        assert seats.hand_on(one, one.transport, 0.0)
    late = Asking("10.0.0.1")
    assert seats.admit(late, 0.0), "a short question is answered all the same"
    assert not seats.hand_on(late, late.transport, 0.0)
    asking[2].abort()
    again = Asking("10.0.0.1")
    assert seats.admit(again, 0.0)
    assert seats.hand_on(again, again.transport, 0.0)


def test_this_machine_has_no_share_of_its_own() -> None:
    seats = HttpConnectionTable()
    asking = [Asking(host) for host in ("127.0.0.1", "::1") for _ in range(3 * SHARE_OF_ADDRESS)]
    assert all(seats.admit(one, 0.0) for one in asking)
    assert not any(one.transport.closed for one in asking)


class Asking:
    def __init__(self, host: str) -> None:
        self.host = host
        self.transport = Aborted()

    def abort(self) -> None:
        self.transport.abort()


class Aborted:
    def __init__(self) -> None:
        self.closed = False

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

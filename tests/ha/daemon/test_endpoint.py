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

from ha.daemon.door.door import DoorLimits
from ha.daemon.door.origin import Origin, Share
from ha.daemon.door.places import Standing
from ha.daemon.http.connection_table import HttpConnectionTable
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.pages import PageAnswer
from tests.log_lines import captured


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
    endpoint = Endpoint(
        status=dict, healthy=lambda: None, seats=HttpConnectionTable(few(1), few(3))
    )
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
        with captured("door.") as lines:
            assert [await answer(kept) for _ in range(3)] == [b"HTTP/1.1 503"] * 3
            for _ in range(20):
                writers.append((await asyncio.open_connection("127.0.0.1", port))[1])
                writers[-1].write(b"GET /health HTT")
                assert await answer(plain) == b"HTTP/1.1 200"
        assert [line["door"] for line in lines] == ["http_long", "http"], "each is said once"
        for writer in writers:
            writer.transport.abort()
        async with asyncio.timeout(30.0):
            while await answer(kept) != b"HTTP/1.1 404":
                await asyncio.sleep(0.01)
    finally:
        for writer in writers:
            writer.transport.abort()
        await endpoint.stop()


def few(most: int) -> DoorLimits:
    return DoorLimits(most=most, unproven=most, unproven_of_origin=most, of_origin=most)


HERE, THERE = Origin("uid 1000", Share.OF_USER), Origin("10.0.0.5", Share.OF_ADDRESS)


def long_ones(seats: HttpConnectionTable, standing: Standing, *origins: Origin) -> "list[Asking]":
    """Return those that aiohttp took, of a newcomer from each origin."""
    asking = [Asking(origin) for origin in origins]
    assert all(seats.admit(one) for one in asking)
    return [one for one in asking if seats.hand_on(one, one.transport, standing)]


def test_transfers_find_places_where_clients_and_strangers_have_all() -> None:
    seats = HttpConnectionTable(
        long=DoorLimits(most=6, unproven=4, unproven_of_origin=2, of_origin=2)
    )
    strangers = long_ones(seats, Standing.UNPROVEN, HERE, HERE, HERE, THERE)
    assert len(strangers) == 3, "each origin has its share, and no answer is cut for the next"
    clients = long_ones(seats, Standing.PROVEN, HERE, HERE, HERE, THERE)
    assert len(clients) == 3
    transfers = long_ones(seats, Standing.KEPT, *[THERE] * 7)
    assert [one.transport.closed for one in strangers] == [True] * 3
    assert [one.transport.closed for one in clients] == [True] * 3
    assert len(transfers) == 6, "no transfer is cut for the next"


def test_half_requests_give_way_oldest_first_those_of_the_largest_origin() -> None:
    seats = HttpConnectionTable(DoorLimits(most=9, unproven=5, unproven_of_origin=3, of_origin=3))
    crowd = [Asking(origin) for origin in (THERE, HERE, HERE, HERE, HERE)]
    assert all(seats.admit(one) for one in crowd)
    assert [one.transport.closed for one in crowd] == [False, True, False, False, False]
    others = [Asking(Origin(f"10.0.1.{n}", Share.OF_ADDRESS)) for n in range(3)]
    assert all(seats.admit(one) for one in others)
    assert [one.transport.closed for one in crowd] == [False, True, True, True, False]


def test_who_could_be_anybody_on_this_machine_gives_way_to_who_is_known() -> None:
    seats = HttpConnectionTable(long=few(4))
    anybody = Origin("127.0.0.1", Share.UNLIMITED)
    first = long_ones(seats, Standing.PROVEN, *[anybody] * 5)
    assert len(first) == 4
    assert len(long_ones(seats, Standing.PROVEN, HERE)) == 1
    assert [one.transport.closed for one in first] == [True, False, False, False]


class Asking:
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
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

"""Readers of long answers: one that stops is disconnected, a slow one gets the whole answer."""

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from prometheus_client import REGISTRY

from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.stalled_readers import Reader
from journal.model import TxId
from journal.node.faces.transfer import SegmentServer
from journal.proto import journal_pb2 as pb
from namenode_sim.image.files import image_name, write_digest
from namenode_sim.transfer.image_server import ImageServer
from tests.journal.core.requests_of import NAMESPACE, Writer, record
from tests.journal.node.process import JID, node_and_client
from tests.log_lines import captured
from tests.worlds.files import info

DEADLINE_SECONDS = 30.0
LIMIT_SECONDS = 0.4
SMALL_BUFFER = 8 * 1024
MORE_THAN_BUFFERS = 2 * 1024 * 1024


@asynccontextmanager
async def serving(
    routes: Sequence[web.RouteDef], send_buffer: int = SMALL_BUFFER
) -> AsyncIterator[int]:
    endpoint = Endpoint(
        status=dict, healthy=lambda: None, routes=lambda: routes, silence_seconds=LIMIT_SECONDS
    )
    port = await endpoint.start("127.0.0.1", 0)
    assert endpoint._listener is not None
    for listener in endpoint._listener.sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    try:
        yield port
    finally:
        await endpoint.stop()


@asynccontextmanager
async def asking(port: int, path: str, more: str = "") -> AsyncIterator[socket.socket]:
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
        yield client


def hangups() -> float:
    return REGISTRY.get_sample_value("nnha_http_hangups_total", {"cause": "unread"}) or 0.0


def is_open(path: Path) -> bool:
    return any(
        os.path.realpath(descriptor) == str(path) for descriptor in Path("/proc/self/fd").iterdir()
    )


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {DEADLINE_SECONDS:g} s: {what}") from None


async def assert_hung_up_on(port: int, path: str, file: Path) -> None:
    """Check that a client that reads nothing is hung up on, and that nothing of it is kept."""
    before = hangups()
    with captured("http.hung_up") as lines:
        async with asking(port, path) as client:
            await until(lambda: is_open(file), "the file is being served")
            await until(lambda: hangups() == before + 1, "the reader is hung up on")
            await until(lambda: not is_open(file), "the file is closed")
            me = "{}:{}".format(*client.getsockname())
    assert [(line["cause"], line["peer"]) for line in lines] == [("unread", me)]
    assert lines[0]["unread_bytes"] > 0


async def test_who_reads_nothing_of_an_image_is_hung_up_on(tmp_path: Path) -> None:
    image = tmp_path / "current" / image_name(TxId(5))
    image.parent.mkdir()
    image.write_bytes(bytes(MORE_THAN_BUFFERS))
    write_digest(image, "0" * 32)
    async with serving(ImageServer(info(), lambda: [tmp_path]).routes()) as port:
        await assert_hung_up_on(port, "/imagetransfer?getimage=1&txid=latest", image)


async def test_who_reads_nothing_of_a_segment_is_hung_up_on(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (daemon, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.start(writer, 1)
        ops = b"".join(record(txid, size=MORE_THAN_BUFFERS // 8) for txid in range(1, 9))
        batch = pb.Batch(segment_first_txid=1, first_txid=1, count=8, records=ops)
        await client.write([pb.WriteRequest(info=client.info(writer), batch=batch)])
        content = hashlib.sha256(ops).digest()
        ends = pb.FinalizeLogSegmentRequest(
            info=client.info(writer), first_txid=1, last_txid=8, digest=content
        )
        await client.call("FinalizeLogSegment", ends)
        file = tmp_path / JID / "current" / f"edits_{1:019d}-{8:019d}"
        served = SegmentServer(daemon.node.find).routes()
        async with serving(served) as port:
            query = f"jid={JID}&segmentTxId=1&storageInfo={NAMESPACE.storage_info()}"
            await assert_hung_up_on(port, f"/getJournal?{query}", file)


async def test_a_slow_reader_gets_all_of_one_large_piece() -> None:
    """Take many times the limit for all of it, and for what the kernel reads ahead of us."""
    body = bytes(SMALL_BUFFER * 70)

    async def one_piece(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body)
        return response

    loop = asyncio.get_running_loop()
    before, received = hangups(), b""
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        serving([web.get("/piece", one_piece)], SMALL_BUFFER * 24) as port,
        asking(port, "/piece", "Connection: close\r\n") as client,
    ):
        began = loop.time()
        while piece := await loop.sock_recv(client, SMALL_BUFFER):
            received += piece
            await asyncio.sleep(LIMIT_SECONDS / 8)
        assert loop.time() - began > 3 * LIMIT_SECONDS
    assert received.endswith(b"\r\n\r\n" + body)
    assert hangups() == before


async def test_who_waits_for_an_answer_does_not_stand_still() -> None:
    async def late(_request: web.Request) -> web.Response:
        await asyncio.sleep(3 * LIMIT_SECONDS)
        return web.Response(text="at last")

    loop = asyncio.get_running_loop()
    received = b""
    async with (
        asyncio.timeout(DEADLINE_SECONDS),
        serving([web.get("/late", late)]) as port,
        asking(port, "/late", "Connection: close\r\n") as client,
    ):
        while piece := await loop.sock_recv(client, SMALL_BUFFER):
            received += piece
    assert received.endswith(b"at last")


async def test_what_was_closed_with_bytes_unsent_is_given_up_as_well() -> None:
    """Give up after aiohttp's close, too: the unsent bytes still keep the descriptor."""
    through = asyncio.Event()

    async def short(_request: web.Request) -> web.Response:
        asyncio.get_running_loop().call_soon(through.set)
        return web.Response(body=bytes(SMALL_BUFFER * 7))

    before = hangups()
    async with (
        serving([web.get("/short", short)]) as port,
        asking(port, "/short", "Connection: close\r\n"),
    ):
        await until(through.is_set, "the answer is made")
        await until(lambda: hangups() == before + 1, "the reader is hung up on")


async def test_a_transport_without_a_socket_is_closed() -> None:
    """A connection over TLS that has closed has none; a look at it must not end in an error."""
    Reader(asyncio.Transport(), LIMIT_SECONDS)

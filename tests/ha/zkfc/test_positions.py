"""Where a NameNode is in the edits, by its own pages: our /status, or Hadoop's bean."""

import asyncio
import json
from contextlib import suppress

import pytest

from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from ha.zkfc.surroundings.positions import MAX_ANSWER_BYTES, Position, position_of
from tests.ha.zkfc.zkfc_world import until
from tests.stand_in import HOST, stand_in


async def test_the_position_comes_from_the_namenodes_status_page() -> None:
    shown: dict[str, object] = {"epoch": 7, "last_txid": 1234, "more": "x" * 100_000}
    endpoint = Endpoint(status=lambda: shown, healthy=lambda: None)
    port = await endpoint.start("127.0.0.1", 0)
    try:
        address = HostPort("127.0.0.1", port)
        assert await position_of(address, deadline_seconds=5.0) == Position(7, 1234)
        shown.update(epoch=None, last_txid=True)
        assert await position_of(address, deadline_seconds=5.0) == Position(None, None)
    finally:
        await endpoint.stop()
    with pytest.raises(OSError):  # noqa: PT011 - refused, whatever the platform calls it
        await position_of(address, deadline_seconds=5.0)


BEAN = {
    "JournalTransactionInfo": '{"LastAppliedOrWrittenTxId":"1234","MostRecentCheckpointTxId":"9"}'
}


@pytest.mark.parametrize(
    ("beans", "expected"),
    [([BEAN], Position(None, 1234)), ([], None), ([{}], None), (None, None)],
    ids=["a bean", "no bean yet", "another bean", "neither page"],
)
async def test_hadoops_namenode_tells_its_position_in_a_bean(
    beans: list[object] | None, expected: Position | None
) -> None:
    """Read the bean: there is no /status, and no epoch."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if beans is not None and asked.startswith(b"GET /jmx?qry="):
            writer.write(
                b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + json.dumps({"beans": beans}).encode()
            )
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n")
        writer.close()

    async with stand_in(serve) as port:
        address = HostPort(HOST, port)
        if expected is not None:
            assert await position_of(address, deadline_seconds=30.0) == expected
        else:
            with pytest.raises(ValueError, match=r"bean|neither"):
                await position_of(address, deadline_seconds=30.0)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\nX: " + b"x" * 2 * MAX_ANSWER_BYTES,
        b"HTTP/1.0 200 OK\r\nX: y\r\n\r\n" + b"[" * 200_000,
    ],
    ids=["an endless header", "too deep an object"],
)
async def test_a_status_page_that_nobody_can_read_costs_the_position_only(answer: bytes) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        gone.set()

    async with stand_in(serve) as port:
        address = HostPort(HOST, port)
        with pytest.raises(ValueError, match="status page"):
            await position_of(address, deadline_seconds=30.0)
        await until(gone.is_set, "the server has hung up")

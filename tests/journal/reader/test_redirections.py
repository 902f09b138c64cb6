"""A JournalNode that sends a reader elsewhere is not followed."""

import asyncio

import pytest

from journal.errors import Unavailable
from journal.links.settings import ReaderSettings
from journal.model import TxId
from journal.reader.fetch import http_session, read_segment
from journal.reader.frame_stream import FrameReader
from tests.stand_in import stand_in


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect"])
async def test_a_segment_is_fetched_from_no_other_place_than_asked(status: str) -> None:
    asked = list[bytes]()

    async def send_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        head = f"HTTP/1.1 {status}\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        writer.close()

    async with stand_in(send_on) as port, http_session(ReaderSettings()) as session:
        segment = read_segment(
            session, f"http://127.0.0.1:{port}/getJournal",
            FrameReader(TxId(1), wanted=TxId(1), last=TxId(2)),
            chunk_bytes=1000,
        )  # fmt: skip
        with pytest.raises(Unavailable, match=f"answered {status}"):
            await anext(segment)
    assert asked == [b"GET /getJournal HTTP/1.1\r\n"]

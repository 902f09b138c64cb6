"""A peer's status page may hold any JSON; no command fails because of it."""

import asyncio
import json

import pytest

from ha.cluster.certificates import Held
from ha.cluster.query import Look, NoAnswer, fetch
from ha.conf.topology import HostPort
from ha.notices.codec import entries, entry
from tests.stand_in import HOST, stand_in


@pytest.mark.parametrize("value", ["1e999", "NaN", "-Infinity", "1" + "0" * 400, "true", '"1"'])
def test_what_is_no_number_for_us_is_not_known(value: str) -> None:
    assert entry(float, json.loads(value)) is None


def test_every_text_can_be_written_to_a_file() -> None:
    page = json.loads(r'{"reason": "\ud800!", "warnings": ["\udfff", 3]}')
    assert entry(str, page["reason"]) == "?!"
    assert entries(Held, {"trusts": page["warnings"]}, ["trusts"]) == {"trusts": ("?",)}


@pytest.mark.parametrize("body", [b"[" * 100_000, b"[1]", b"{", b""])
async def test_a_page_that_is_no_status_is_an_answer_with_an_error(body: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with stand_in(speak) as port:
        with pytest.raises(NoAnswer, match="answers with an error: "):
            await Look(30.0).ask(fetch(HostPort(HOST, port)))

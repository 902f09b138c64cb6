"""Reads epoch and last transaction from a NameNode's /status; a missing value is None."""

import asyncio
import json
from dataclasses import dataclass
from typing import Final

from ha.conf.topology import HostPort

MAX_ANSWER_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Position:
    """Where a NameNode's journal stands."""

    epoch: int | None = None
    last_txid: int | None = None


async def position_of(address: HostPort, *, deadline_seconds: float) -> Position:
    """The position as the NameNode's status page has it.

    Raises OSError, TimeoutError, EOFError or ValueError where there is no such page: Hadoop's
    NameNodes have none.
    """
    async with asyncio.timeout(deadline_seconds):
        # One question to a neighbour: an HTTP client of 11 MB would live on for it.
        reader, writer = await asyncio.open_connection(
            address.host, address.port, limit=MAX_ANSWER_BYTES
        )
        try:
            writer.write(f"GET /status HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
            status = await reader.readline()
            if status.split()[1:2] != [b"200"]:
                raise ValueError(f"not a status page: {status[:80]!r}")
            await reader.readuntil(b"\r\n\r\n")
            body = await _bounded(reader)
        except asyncio.LimitOverrunError as failure:
            raise ValueError(f"its status page's header does not end: {failure}") from failure
        finally:
            writer.close()
    try:
        found = json.loads(body)
    except RecursionError as failure:
        raise ValueError("its status page is nested too deeply") from failure
    if not isinstance(found, dict):
        raise ValueError("its status page is no JSON object")  # noqa: TRY004 - the answer's fault
    return Position(_whole(found.get("epoch")), _whole(found.get("last_txid")))


async def _bounded(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while data := await reader.read(MAX_ANSWER_BYTES):
        body += data
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError(f"its status page has more than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
